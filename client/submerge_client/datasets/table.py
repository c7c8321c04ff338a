"""Table: the result of every loader, and the checks of one.

A table has at least one row and two columns of different names. Its numbers are finite or NaN:
the loaders check that, because only they know the place.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge import Array
from submerge_client.datasets.source import Place, refusal


@dataclass(frozen=True, eq=False)
class Table:
    """Readings (n, dim), a column a channel, NaN for a gap; notes on what was left out."""

    names: tuple[str, ...]
    rows: Array
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, path: Path, rows: Array, *, names: Sequence[str] = (), notes: Sequence[str] = ()
    ) -> Table:
        """Return the table read from `path`, or refuse one that PCA cannot use."""
        n, dim = rows.shape
        names = tuple(name or f"x{i}" for i, name in enumerate(names or [""] * dim))
        if dim < 2:
            raise refusal(
                path,
                expected="at least two columns",
                got="a matrix of one column" if dim else "a matrix without columns",
                hint="PCA needs channels to compare",
            )
        if n == 0:
            raise refusal(
                path,
                expected="rows of numbers",
                got=f"a matrix of {dim} columns without rows",
                hint="check how it was written",
            )
        check_distinct(path, names)
        return cls(names, rows, (*notes, *_gaps(path, names, rows)))

    def without(self, path: Path, skip: Collection[str]) -> Table:
        """Return the table of the other columns."""
        if not skip:
            return self
        used = columns_but(path, self.names, skip)
        names = [self.names[i] for i in used]
        return Table.of(path, self.rows[:, used], names=names, notes=self.notes)


def check_distinct(path: Path, names: Sequence[str]) -> None:
    """Refuse columns of the same name."""
    first: dict[str, int] = {}
    for column, name in enumerate(names, 1):
        if first.setdefault(name, column) != column:
            raise refusal(
                path,
                expected="different names for all columns",
                got=f"{name!r} for columns {first[name]} and {column}",
                hint="rename one",
            )


def columns_but(path: Path, names: Sequence[str], skip: Collection[str]) -> list[int]:
    """Return the indices of all columns but those in `skip`, which must exist."""
    for name in skip:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            raise refusal(
                path,
                expected=f"a column {name!r} to skip",
                got="no such column",
                hint=f"did you mean {near[0]!r}?" if near else "check its name",
            )
    return [i for i, name in enumerate(names) if name not in skip]


def stack(paths: Sequence[Path], tables: Sequence[Table]) -> Table:
    """Return one table of all rows; the columns must be the same."""
    first = tables[0]
    for path, table in zip(paths, tables, strict=True):
        if len(table.names) != len(first.names):
            raise refusal(
                path,
                expected=f"{len(first.names)} columns as in {paths[0]}",
                got=str(len(table.names)),
                hint="read them one by one",
            )
        for column, (ours, theirs) in enumerate(zip(first.names, table.names, strict=True), 1):
            if ours != theirs:
                raise refusal(
                    Place(path, column=column),
                    expected=f"the name {ours!r} as in {paths[0]}",
                    got=repr(theirs),
                    hint="files that are read together need the same columns in the same order",
                )
    if len(tables) == 1:
        return first
    notes = tuple(note for table in tables for note in table.notes)
    return Table(first.names, np.vstack([table.rows for table in tables]), notes)


def counted(number: int, one: str, many: str = "") -> str:
    """Return `1 row`, `2 rows`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _gaps(path: Path, names: Sequence[str], rows: Array) -> list[str]:
    missing = np.isnan(rows)
    total = int(np.count_nonzero(missing))
    if total == 0:
        return []
    verb = "is" if total == 1 else "are"
    notes = [f"{total} of {counted(missing.size, 'value')} {verb} missing in {path.name}"]
    silent = [names[int(column)] for column in np.flatnonzero(missing.all(axis=0))]
    if silent:
        notes.append(f"no value at all in {path.name} for {', '.join(silent)}")
    return notes
