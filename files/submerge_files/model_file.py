"""A model as a file: what scores, what merges, and with how many directions nodes score.

Form 3 is written: `submerge_proto.files.learnt` makes its bytes. Earlier forms hold the model
alone, and are read: form 1 is the bytes of its message, form 2 has one line before them:

    submerge model 2 {"rank": 8, "linear_rank": null}

No message begins like that line. All are checked as strictly as a message.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NamedTuple

from submerge import PeerError, Schema, UsageError
from submerge.errors import whole
from submerge.history.knowledge import Learnt
from submerge.protocol.messages import Model
from submerge_aggregator.questions.views import ShownRank
from submerge_client.atomic_file import atomic_write
from submerge_proto.files import learnt as learnt_file


class SavedModel(NamedTuple):
    """A model, its schema, and where it comes from, for people.

    shown : ShownRank or None
        What nodes score with; None if that is not known.
    learnt : Learnt or None
        What merges, and the model again; None from a file of form 1 or 2, or from a message.
    """

    whence: str
    model: Model
    schema: Schema
    shown: ShownRank | None = None
    learnt: Learnt | None = None


def decoded(data: bytes, whence: str) -> SavedModel:
    """Return the model in some bytes: a file's, of any form, or a message's.

    Raises
    ------
    UsageError
        If they hold no model that this version reads.
    """
    learnt = None
    try:
        form = learnt_file.form_of(data)
        if form == learnt_file.FORM:
            learnt, *ranks = learnt_file.unpacked(data)
            model, schema = learnt.model, Schema.parse(learnt.model.schema)
            shown = ShownRank(ranks[0], ranks[1] or None) if ranks[0] else None
        else:
            shown = None
            if form == 2:
                shown, data = _split_line(data)
            model, schema = learnt_file.model_of(data)
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


def read(path: Path) -> SavedModel:
    """Return the model in a file."""
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
    """Write what was learnt, whole or not at all; return the length of the file in bytes.

    Only a new file or an older model may be written: a slip must not destroy another file.

    shown : what nodes score with, for a model that does not say it
    """
    if path.exists():
        check_older(path)
    ranks = (0, None) if shown is None else (shown.rank, shown.linear_rank)
    data = learnt_file.packed(learnt, rank=ranks[0], linear_rank=ranks[1] or 0)
    try:
        atomic_write(path, data)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise  # not a mistake in the input: the command reports a full disk
        raise UsageError(f"cannot write the model to {path}: {error.strerror}") from error
    return len(data)


def check_older(path: Path) -> None:
    """Refuse to replace a file that is no saved model.

    Raises
    ------
    UsageError
        If it is not one.
    """
    try:
        read(path)
    except UsageError as error:
        raise UsageError(
            f"{path} exists and is no saved model: name another file, or remove it"
        ) from error


def _split_line(data: bytes) -> tuple[ShownRank, bytes]:
    """Take the first line off a file of form 2."""
    said, data = learnt_file.first_line(data)
    try:
        rank, linear = whole("rank", said["rank"], least=1), said["linear_rank"]
        if linear is not None:
            linear = whole("linear_rank", linear, least=1)
    except (KeyError, TypeError, UsageError) as error:
        raise PeerError("a first line that cannot be read") from error
    return ShownRank(rank, linear), data
