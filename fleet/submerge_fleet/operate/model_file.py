"""A model as a file: the bytes of its message, checked as strictly as a message.

One line stands before them: nodes score with fewer directions than a model holds, and in a kernel
group only their configuration says with how many of the readings:

    submerge model 2 {"rank": 8, "linear_rank": null}

Form 1 is the bytes alone: no message begins like that line.
"""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import NamedTuple

from submerge import PeerError, Schema, UsageError
from submerge.errors import whole
from submerge.protocol.messages import Model
from submerge.protocol.summaries import Subspaces
from submerge_aggregator.questions.views import ShownRank
from submerge_client.atomic_file import atomic_write
from submerge_proto.wire import codec

FORM = 2
MARK = b"submerge model "
LONGEST_LINE = 200


class SavedModel(NamedTuple):
    """A model, its schema, and where it comes from, for people.

    shown : ShownRank or None
        What nodes score with; None if that is not known.
    """

    whence: str
    model: Model
    schema: Schema
    shown: ShownRank | None = None


def decoded(data: bytes, whence: str) -> SavedModel:
    """Return the model in some bytes: a file's, of either form, or a message's.

    Raises
    ------
    UsageError
        If they hold no model that this version reads.
    """
    try:
        shown, data = _split_line(data)
        model = codec.decode("watch", data)
        if not isinstance(model, Model):
            raise PeerError("these bytes are a hello")
        schema = Schema.parse(model.schema)
        # The rank does not matter: this checks the dimensions against the schema's.
        if model.summary is not None and not Subspaces(schema.dim).fits(schema, model.summary):
            raise PeerError("a summary of other dimensions than its schema's")
        if model.rank:
            shown = ShownRank(model.rank, None if shown is None else shown.linear_rank)
    except PeerError as error:
        # Of bytes that are no message at all the codec has nothing to explain.
        why = "" if str(error).startswith("expected a watch") else f" ({error})"
        raise UsageError(
            f"{whence} is not a model file{why}: expected what `submerge model save` writes"
        ) from error
    return SavedModel(whence, model, schema, shown)


def read(path: Path) -> SavedModel:
    """Return the model in a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"expected a saved model in {path}, got: {error.strerror}") from error
    return decoded(data, str(path))


def save(path: Path, data: bytes, shown: ShownRank | None = None) -> None:
    """Write a model's bytes, whole or not at all.

    Only a new file or an older model may be written: a slip must not destroy another file.
    """
    if path.exists():
        try:
            read(path)
        except UsageError as error:
            raise UsageError(
                f"{path} exists and is no saved model: name another file, or remove it"
            ) from error
    if shown is not None:
        about = {"rank": shown.rank, "linear_rank": shown.linear_rank}
        data = b"%s%d %s\n%s" % (MARK, FORM, json.dumps(about).encode(), data)
    try:
        atomic_write(path, data)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise  # not a mistake in the input: the command reports a full disk
        raise UsageError(f"cannot write the model to {path}: {error.strerror}") from error


def _split_line(data: bytes) -> tuple[ShownRank | None, bytes]:
    """Take the first line off, if there is one."""
    if not data.startswith(MARK):
        return None, data
    line = data[:LONGEST_LINE].partition(b"\n")[0]
    form, _, about = line.removeprefix(MARK).partition(b" ")
    if form != b"%d" % FORM:
        raise PeerError(f"form {form.decode(errors='replace')!r} of it: update submerge")
    try:
        said = json.loads(about)
        rank, linear = whole("rank", said["rank"], least=1), said["linear_rank"]
        if linear is not None:
            whole("linear_rank", linear, least=1)
    except (ValueError, KeyError, TypeError, RecursionError, UsageError) as error:
        raise PeerError("a first line that cannot be read") from error
    return ShownRank(rank, linear), data[len(line) + 1 :]
