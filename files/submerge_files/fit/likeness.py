"""A fit with the schema of a model, so that the fleet that the model is of can take the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from submerge import Schema, UsageError
from submerge.headings import called, heading_of
from submerge_client.config.hints import nearest
from submerge_files import model_file
from submerge_files.reader import ReadingOptions, Recordings, open_recordings
from submerge_files.reader.parts import Digests, digests_here


def schema_like(path: Path) -> Schema:
    """Return the schema of a saved model.

    Raises
    ------
    UsageError
        If it has no names, a kernel, or no scaling yet: rows of files cannot be learnt so.
    """
    saved = model_file.read(path)
    schema = saved.schema
    if isinstance(schema.channels, int):
        raise UsageError(f"{path} has no names of channels: columns cannot be found by them")
    if not schema.linear:
        raise UsageError(f"{path} is of a group with a kernel: fit learns rows as they are")
    if saved.learnt is not None and saved.learnt.lags > 1:
        raise UsageError(f"{path} is of rows with lags: fit learns rows one by one")
    if schema.center == "none":
        raise UsageError(f"{path} is measured about zero: fit learns rows about a mean")
    return schema


def open_like(
    paths: Sequence[Path],
    options: ReadingOptions,
    like: Path | None,
    digests: Digests = digests_here,
) -> tuple[Recordings, Schema | None]:
    """Return recordings, and the schema to learn them under, with its channels in its order.

    like : a saved model that has the schema; None opens them as they are, without one
    digests : as in `open_recordings`

    Raises
    ------
    UsageError
        As `open_recordings` and `schema_like`, or if they have other channels.
    """
    if like is None:
        return open_recordings(paths, options, digests), None
    schema = schema_like(like)
    if not options.columns:
        options = replace(options, columns=tuple(map(heading_of, schema.named)))
    recordings = open_recordings(paths, options, digests)
    names = called(schema.named, recordings.headings)
    lacking = [name for name in schema.names if name not in names]
    extra = [name for name in names if name not in schema.names]
    if lacking:
        near = nearest(lacking[0], extra)
        hint = f"is it {near}?" if near else "leave --columns and --skip out"
        raise UsageError(f"expected the channels of {like}, got none for {lacking[0]}: {hint}")
    if extra:
        raise UsageError(
            f"expected the channels of {like}, got {extra[0]} as well: leave --columns out"
        )
    return recordings.ordered(schema.named), schema
