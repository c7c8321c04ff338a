"""stacked(): all rows of some files below one another, in memory, without their times."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge import Array, UsageError
from submerge_files.reader.column_ranges import ColumnRanges
from submerge_files.reader.formats.intel_lab import USUAL
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.tables import TableFile
from submerge_files.reader.options import ReadingOptions
from submerge_files.reader.plan import FileReading
from submerge_files.reader.selection import channels_of, clock_of
from submerge_files.reader.time_form import DAY_FIRST


@dataclass(frozen=True, eq=False)
class Stacked:
    """Readings (n, dim), a column a channel, NaN for a gap; notes on what was left out."""

    names: tuple[str, ...]
    rows: Array
    notes: tuple[str, ...]


def stacked(paths: Sequence[Path], *, quantity: str = USUAL, skip: Collection[str] = ()) -> Stacked:
    """Read one file, or several of the same columns, in the order in which they are named."""
    if not paths:
        raise UsageError("expected at least one file to read, got none; name one")
    options = ReadingOptions(skip=tuple(skip))
    tables = [_read(open_file(path, quantity=quantity), options) for path in paths]
    for path, table in zip(paths, tables, strict=True):
        if table.names != tables[0].names:
            raise UsageError(f"{path}: expected the columns of {paths[0]}: read them one by one")
    rows = np.concatenate([table.rows for table in tables])
    return Stacked(tables[0].names, rows, tuple(note for table in tables for note in table.notes))


def _read(file: TableFile, options: ReadingOptions) -> Stacked:
    clock, notes, others = clock_of(file, options)
    channels, left_out = channels_of(file, options, {*(clock.places if clock else ()), *others})
    if clock is not None and clock.either:
        clock = clock.in_order(DAY_FIRST)  # only whether each row has a time counts
    rows = np.concatenate([span.rows for span in FileReading(file, tuple(channels), clock).spans()])
    gaps = int(np.isnan(rows).sum())
    said = [f"{gaps} of {rows.size} values missing in {file.path.name}"] if gaps else []
    names = tuple(file.columns[i].name for i in channels)
    ranges = ColumnRanges(names, "write NA for it", "leave these rows out")
    ranges.add(rows)
    return Stacked(names, rows, (*file.notes, *notes, *left_out, *said, *ranges.notes()))
