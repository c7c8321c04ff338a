"""A model as a file: the very bytes that travel, read back as distrustfully as they came in."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NamedTuple

from submerge import PeerError, Schema, UsageError
from submerge.messages import Model
from submerge.summaries import Subspaces
from submerge_proto import codec


class Named(NamedTuple):
    """A model, its schema, and where it is from, for people."""

    whence: str
    model: Model
    schema: Schema


def decoded(data: bytes, whence: str) -> Named:
    """Return the model that some bytes are.

    Raises
    ------
    UsageError
        If they are none that this version reads.
    """
    try:
        model = codec.decode("watch", data)
        if not isinstance(model, Model):
            raise PeerError("these bytes are a hello")
        schema = Schema.parse(model.schema)
        # Any rank does: what is asked is whether it is of the schema's dimensions.
        if model.summary is not None and not Subspaces().fits(schema, model.summary):
            raise PeerError("a summary of other dimensions than its schema's")
    except PeerError as error:
        raise UsageError(
            f"expected a saved model in {whence}, got something else: {error}"
        ) from error
    return Named(whence, model, schema)


def read(path: Path) -> Named:
    """Return the model in a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"expected a saved model in {path}, got: {error.strerror}") from error
    return decoded(data, str(path))


def save(path: Path, data: bytes) -> None:
    """Write a model's bytes, whole or not at all.

    Only a new file or an older model may be written: a slip of the finger must not cost
    anyone what stood there.
    """
    if path.exists():
        try:
            read(path)
        except UsageError as error:
            raise UsageError(
                f"{path} exists and is no saved model: name another file, or remove it"
            ) from error
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno == errno.ENOSPC:
            raise  # nobody's input: the command says so
        raise UsageError(f"cannot write the model to {path}: {error.strerror}") from error
