"""pieces_of(): the rows of opened files in pieces that other processes can read, each by itself.

A piece is `Recordings` of one machine and file: an opened file travels as a value. It begins at a
whole number of chunks (`history.chunk_keys`), so that keys are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from submerge import UsageError
from submerge.history.chunk_keys import ROWS
from submerge_files.reader import Recordings
from submerge_files.reader.file_rows import FileReading
from submerge_files.reader.formats.arrow_file import ArrowFile

MOST_ROWS = 16 * ROWS  # rows of a piece, where a file can be read from its middle


def pieces_of(recordings: Recordings) -> list[Recordings]:
    """Return the rows of files, machine by machine and in order."""
    check_apart(recordings)
    return [
        recordings.of([replace(part, reading=piece)])
        for part in recordings.parts
        for piece in _pieces(part.reading)
    ]


def check_apart(recordings: Recordings) -> None:
    """Refuse rows that have to be sorted or put together: that needs all of them in one place."""
    for wanted, name in (recordings.options.sort, "--sort"), (recordings.options.long, "--long"):
        if wanted:
            raise UsageError(
                f"expected rows in the order of time, one for each time, got {name}: workers"
                " read files apart; write them so before, or leave --dask out"
            )


def _pieces(whole: FileReading) -> Iterator[FileReading]:
    """Yield a file in pieces, if it can be read from the middle."""
    file = whole.file
    apart = isinstance(file, ArrowFile) and whole.machine is None and not whole.states
    rows = file.rows if apart and isinstance(file, ArrowFile) else 0
    if rows <= MOST_ROWS:
        yield whole
        return
    for at in range(0, rows, MOST_ROWS):
        yield replace(whole, begin=at, end=min(at + MOST_ROWS, rows))
