"""TextFile: CSV, TSV and whitespace tables, whose columns' kinds are found in their first rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from submerge_client.datasets import text, text_form
from submerge_client.datasets.fields import cure, is_missing, is_number, unit
from submerge_client.datasets.instants import is_time
from submerge_client.datasets.source import Place, Source, refusal, shown
from submerge_client.datasets.table import check_distinct
from submerge_files.reader.formats.tables import HEAD_ROWS, ColumnHead, Kind, RawRows, block_rows


@dataclass(frozen=True, eq=False)
class TextFile:
    """A table in text. Its fields are those of `TableFile`."""

    path: Path
    columns: tuple[ColumnHead, ...]
    head: int
    whole: bool
    notes: tuple[str, ...]
    _source: Source
    _form: text_form.TextForm
    unit: str = "line"

    @classmethod
    def of(cls, source: Source) -> TextFile:
        """Look at the first rows of a file.

        Raises
        ------
        UsageError
            If they are no table.
        """
        with source.damage_first():
            form = text_form.form_of(source)
            check_distinct(source.path, form.columns)
            rows = text.sample(source, form, HEAD_ROWS + 1)
        whole, rows = len(rows) <= HEAD_ROWS, rows[:HEAD_ROWS]
        headings = form.names or ("",) * form.width
        columns = tuple(
            _column(name, [row[i].strip() for row in rows], bool(headings[i]))
            for i, name in enumerate(form.columns)
        )
        _check_first(source.path, form.skip + 1, columns)
        notes = tuple(text_form.remarks(source, form))
        return cls(source.path, columns, len(rows), whole, notes, source, form)

    @property
    def named(self) -> bool:
        """Whether the file has headings."""
        return bool(self._form.names)

    def blocks(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[RawRows]:
        """Read columns as numbers and as text."""
        with self._source.damage_first():
            most = block_rows(len(self.columns))
            for piece in text.pieces(self._source, self._form, numbers, texts, most=most):
                yield RawRows(*piece)


def _check_first(path: Path, line: int, columns: Sequence[ColumnHead]) -> None:
    """Refuse a row of units below the headings."""
    first = [c.values[0] for c in columns if c.kind == Kind.NUMBERS and len(c.full) > 2]
    units = [value for value in first if value and not is_number(value) and not cure(value)]
    if len(units) > 1 and len(units) == len(first) - first.count(""):
        raise refusal(
            Place(path, line),
            expected="numbers below the headings",
            got=f"a row of text ({shown(units[0])}, ...)",
            hint="if it holds units, write them into the headings and remove it",
        )


def _column(name: str, fields: Sequence[str], heading: bool) -> ColumnHead:
    values = tuple("" if is_missing(field) else field for field in fields)
    return ColumnHead(name, _kind([value for value in values if value]), values, heading=heading)


def _kind(full: Sequence[str]) -> Kind:
    """Return what fields are, as most of them are; the others are found when they are read."""
    if not full:
        return Kind.EMPTY
    numbers = sum(map(is_number, full))
    if numbers == len(full):
        return Kind.NUMBERS
    if all(map(is_time, full)):
        return Kind.TIMES
    if 2 * (numbers + _nearly(full)) > len(full):
        return Kind.NUMBERS
    return Kind.TEXT


def _nearly(full: Sequence[str]) -> int:
    """Return how many fields are numbers in a spelling that we do not read."""
    units = Counter(unit(field) for field in full if not is_number(field))
    # Names such as 7a, 7b and 8c have many "units"; a column of readings has one.
    several = len(units) > 2
    return sum(not is_number(f) and bool(cure(f)) and not (several and unit(f)) for f in full)
