"""A model as a file (form 3): what scores, what merges, and how many directions score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from submerge import PeerError, Schema, UsageError
from submerge.condition import InState
from submerge.history.fit import Fitted
from submerge.history.knowledge import Learnt
from submerge.protocol.messages import Model
from submerge_aggregator.questions.views import ShownRank
from submerge_client.files import atomic_write, writing_to
from submerge_proto.files import learnt as learnt_file


class SavedModel(NamedTuple):
    """A model and its schema, for people `whence`; what merges is None from a message."""

    whence: str
    model: Model
    schema: Schema
    shown: ShownRank | None = None
    learnt: Learnt | None = None

    @property
    def known(self) -> Learnt:
        """What a file has of it; of a message, less."""
        return self.learnt or Learnt(self.model)


def decoded(data: bytes, whence: str, *, sent: bool = False) -> SavedModel:
    """Return the model in the bytes of a file; `sent`: by an aggregator, also in a message's."""
    learnt = shown = None
    try:
        if data.startswith(learnt_file.MARK):
            learnt, *ranks = learnt_file.unpacked(data)
            model, schema = learnt.model, Schema.parse(learnt.model.schema)
            shown = ShownRank(ranks[0], ranks[1] or None) if ranks[0] else None
        else:
            model, schema = learnt_file.model_of(data)
            if not sent:
                raise learnt_file.of_earlier_form(1)
        if model.rank:
            shown = ShownRank(model.rank, None if shown is None else shown.linear_rank)
    except PeerError as error:
        # Of bytes that are no message at all the codec has nothing to explain.
        why = "" if str(error).startswith("expected a watch") else f" ({error})"
        raise UsageError(
            f"{whence} is not a model file{why}: expected what `submerge fit` or"
            " `submerge model save` writes"
        ) from error
    return SavedModel(whence, model, schema, shown, learnt)


def reread(learnt: Learnt) -> SavedModel:
    """Return a model as its file would hold it."""
    return decoded(learnt_file.packed(learnt), "the model")


def read(path: Path) -> SavedModel:
    return decoded(bytes_of(path), str(path))


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file, if they are not too many for a model."""
    most = learnt_file.MOST_BYTES
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"expected a saved model in {path}, got: {error.strerror}") from error
    if len(data) > most:
        raise UsageError(f"expected a saved model of at most {most:,} bytes in {path}, got more")
    return data


def save(path: Path, learnt: Learnt, shown: ShownRank | None = None) -> int:
    """Write what was learnt, whole or not at all; return the length of the file in bytes."""
    # Only a new file or an older model may be written: a slip must not destroy another file.
    if path.exists():
        check_older(path)
    ranks = (0, None) if shown is None else (shown.rank, shown.linear_rank)
    data = learnt_file.packed(learnt, rank=ranks[0], linear_rank=ranks[1] or 0)
    with writing_to(f"the model to {path}"):
        atomic_write(path, data)
    return len(data)


def check_older(path: Path) -> None:
    """Refuse to replace a file that is no saved model; raises UsageError if it is not one."""
    try:
        read(path)
    except UsageError as error:
        raise UsageError(
            f"{path} exists and is no saved model: name another file, or remove it"
        ) from error


def check_target(path: Path) -> None:
    """Refuse a place where a model cannot go, before the work."""
    if not path.parent.is_dir():
        raise UsageError(f"expected a folder {path.parent} for {path.name}, got none: make it")
    if path.exists():
        check_older(path)


def learnt_of(fitted: Fitted, states: Sequence[InState] = ()) -> Learnt:
    """Return what a model file holds of a history, of which rows in some states were read."""
    when = fitted.first.settings.when
    return Learnt(
        fitted.model,
        fitted.scatter,
        fitted.folds.moments,
        fitted.sketches,
        fitted.chunks,
        monitors=tuple(sorted(fitted.states.items())),
        period_s=fitted.first.period_s,
        when=" and ".join(map(str, [*states, *([when] if when else [])])),
    )
