"""Columns of numbers that are hardly readings: counters, times, labels, and copies of others."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from submerge_files.reader.formats.tables import ColumnHead
from submerge_files.reader.time_signs import scale_of, values_of

FEWEST = 20
"""Values that show it."""

INDEX = frozenset(
    ("id", "index", "idx", "row", "rownum", "row_id", "no", "nr", "#", "unnamed: 0", "level_0")
)
"""Names of columns that number the rows."""

LABELS = frozenset("label labels anomaly is_anomaly fault is_fault failure target class".split())  # noqa: SIM905
"""Names of columns that say which rows are faults."""


def counts(column: ColumnHead) -> bool:
    """Return whether a column numbers the rows."""
    try:
        values = [float(value) for value in column.values]
    except ValueError:
        return False
    return all(value == values[0] + i for i, value in enumerate(values))


def is_index(column: ColumnHead) -> bool:
    """Return whether a column numbers the rows, and is called so or nothing."""
    called = not column.heading or column.name.strip().casefold() in INDEX
    return called and counts(column)


def doubts(columns: Sequence[ColumnHead]) -> Iterator[str]:
    """Yield a sentence for each channel that is hardly one."""
    seen: dict[tuple[str, ...], str] = {}
    for column in columns:
        several = len({*column.full}) > 1 and len(column.full) >= FEWEST
        skip = f"leave it out (--skip {shlex.quote(column.name)})"
        if several and counts(column):
            yield f"column {column.name} counts the rows: if it is no reading, {skip}"
        elif several and _are_times(column):
            yield f"column {column.name} looks like times: name it as such (--time), or {skip}"
        elif column.name.strip().casefold() in LABELS:
            yield (
                f"column {column.name} is learnt as a channel: if it says which rows are faults,"
                f" {skip} and name their times (--labels)"
            )
        elif several and column.values in seen:
            yield (
                f"columns {seen[column.values]} and {column.name} have the same values in the first"
                f" rows: if they are one sensor, {skip}"
            )
        seen.setdefault(column.values, column.name)


def _are_times(column: ColumnHead) -> bool:
    values = values_of(column)
    rises = bool((values[1:] > values[:-1]).all())
    return rises and scale_of(values) is not None and float(values[0]) >= 1e9
