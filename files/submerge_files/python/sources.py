"""Where rows come from: files that are opened, or a frame."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from submerge import UsageError
from submerge.condition import InState
from submerge_files.python.frame_rows import FrameRows, frame_of
from submerge_files.reader import ReadingOptions, Recordings, open_recordings
from submerge_files.reader.formats.remote_path import is_remote, path_of
from submerge_files.workers import Workers

Source = FrameRows | Recordings

ARGUMENTS = frozenset(("columns", "time", "node-by", "sort", "when"))
"""Options of the commands that are arguments here."""


def named(text: str) -> str:
    """Return a sentence that names arguments in place of options, where there are any."""

    def name(found: re.Match[str]) -> str:
        option = found[1]
        return option.replace("-", "_") if option in ARGUMENTS else f"submerge fit --{option}"

    return re.sub(r"--([a-z][a-z-]*)", name, re.sub(r"--skip [^)]*\)", "columns)", text))


@contextmanager
def arguments_named() -> Iterator[None]:
    """Make errors name arguments."""
    try:
        yield
    except UsageError as error:
        error.args = (named(str(error)),)
        raise


def paths_of(rows: Any) -> list[Path] | None:
    """Return the files that are meant; None if rows are no paths."""
    every = rows if isinstance(rows, list | tuple) else [rows]
    if not every or not all(isinstance(each, str | Path) or is_remote(each) for each in every):
        return None
    return [path_of(str(each)) for each in every]


def source_of(
    rows: Any,
    names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    time: str | None = None,
    *,
    node_by: str = "",
    sort: bool = False,
    states: Sequence[InState] = (),
) -> Source:
    """Open files, or take a frame; options as in `Model.fit`."""
    paths = paths_of(rows)
    if paths is not None:
        return opened(paths, names, columns, time, node_by=node_by, sort=sort, states=states)
    if node_by or sort:
        raise UsageError(
            "node_by and sort are for files: learn one machine's frame, in order of time"
        )
    return FrameRows(frame_of(rows, names), columns, time, states=states)


def opened(
    paths: Sequence[Path],
    names: Sequence[str] | None,
    columns: Sequence[str] | None,
    time: str | None,
    *,
    node_by: str = "",
    sort: bool = False,
    states: Sequence[InState] = (),
    workers: Workers | None = None,
) -> Recordings:
    """Open files; options as in `Model.fit`."""
    if names is not None:
        raise UsageError("names are for an array: files have headings; leave names out")
    if isinstance(columns, str):
        raise UsageError(f"expected a list of columns, got {columns!r}: write [{columns!r}]")
    options = ReadingOptions(
        tuple(columns or ()), time=time or "", node_by=node_by, sort=sort, states=(*states,)
    )
    return open_recordings(paths, options, workers)
