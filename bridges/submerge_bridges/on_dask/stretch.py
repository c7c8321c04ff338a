"""Stretch: some rows of one file that follow one another, as a piece of work.

A stretch begins at a whole number of chunks (`history.chunk_keys`), so that chunks have the same
keys wherever they are read. Parquet is read from the row group that a stretch begins in; other
files are one stretch each, and so are files whose column names machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from submerge.history.chunk_keys import ROWS
from submerge_files.reader.file_rows import FileReading, Span
from submerge_files.reader.formats.arrow_file import ArrowFile
from submerge_files.reader.formats.tables import TableFile
from submerge_files.reader.parts import MachinePart

MOST_ROWS = 16 * ROWS
"""Rows of a stretch, where a file can be read from its middle."""


class Stretch(NamedTuple):
    """Rows of one machine in one file.

    begin, end : Rows of the file, from 0; `end` is -1 for its end.
    """

    part: MachinePart
    begin: int = 0
    end: int = -1


def stretches_of(part: MachinePart, most: int = MOST_ROWS) -> list[Stretch]:
    """Return the stretches of a part, in order; `most` is a multiple of a chunk's rows."""
    file, whole = part.reading.file, part.reading.machine is None
    rows = file.rows if isinstance(file, ArrowFile) and whole else 0
    if rows <= most:
        return [Stretch(part)]
    return [Stretch(part, at, min(at + most, rows)) for at in range(0, rows, most)]


def spans_in(
    stretch: Stretch, changed: Callable[[FileReading], FileReading] = lambda each: each
) -> Iterator[tuple[Span, TableFile]]:
    """Yield the rows of a stretch."""
    part, begin, end = stretch
    at = begin
    for span in changed(part.reading).spans(begin):
        n = len(span.numbers)
        if 0 <= end < at + n:
            span = span.only(slice(0, end - at))
        at += n
        if span.machines is not None and not part.whole:
            span = span.only(np.flatnonzero(span.machines == part.machine))
        if len(span.numbers):
            yield span, part.reading.file
        if 0 <= end <= at:
            return
