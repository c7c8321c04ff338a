"""TableFile: what a file of any format looks like to those who choose columns and read rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from submerge import Array
from submerge_client.datasets.source import Place

HEAD_ROWS = 256  # rows that show what a column holds

BLOCK_ROWS = 4096
"""Most rows of a block, of formats that can be read in blocks: two are in memory (`ahead`)."""


MOST_NUMBERS = 1 << 22  # most numbers of a block: blocks of wide tables have fewer rows


def block_rows(width: int) -> int:
    """Return how many rows of `width` columns are read at once."""
    return max(1, min(BLOCK_ROWS, MOST_NUMBERS // max(1, width)))


class Kind(Enum):
    """What a column holds, by its type or its first rows."""

    NUMBERS = "numbers"
    TIMES = "times"
    TEXT = "text"
    EMPTY = "nothing"
    OTHER = "values that are neither numbers nor text"


@dataclass(frozen=True)
class ColumnHead:
    """A column and its first `HEAD_ROWS` values as text, "" for a gap, none for OTHER."""

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    typed: bool = False  # times by their type, read as numbers, in seconds
    heading: bool = True

    @property
    def of_frame(self) -> bool:
        """Whether pandas wrote it as the index of a frame, of which some rows may be gone."""
        return self.name.startswith("__index_level_")

    @property
    def full(self) -> tuple[str, ...]:
        """The first values without the gaps."""
        return tuple(value for value in self.values if value)


class RawRows(NamedTuple):
    """Rows of a file that follow one another: numbers (n, columns), and columns of n texts."""

    numbers: Array
    texts: tuple[Any, ...]  # lists, or arrays of pyarrow's: `words` makes a list of both

    def first(self, n: int) -> RawRows:
        """Return the first n of the rows."""
        return RawRows(self.numbers[:n], tuple(column[:n] for column in self.texts))

    def last(self, n: int) -> RawRows:
        """Return the last of the rows, n at most."""
        begin = max(0, len(self.numbers) - n)
        return RawRows(self.numbers[begin:], tuple(column[begin:] for column in self.texts))


def words(texts: Any) -> list[str]:
    """Return a column of texts as a list, "" for null."""
    if isinstance(texts, list):
        return texts
    return ["" if text is None else str(text).strip() for text in texts.to_pylist()]


@dataclass(frozen=True, eq=False)
class TableFile:
    """A file that was opened; its rows can be read from the start any number of times."""

    path: Path  # as the caller named it
    columns: tuple[ColumnHead, ...]  # in the file's order, with the first values of `head` rows
    head: int
    whole: bool  # whether the file has no rows but these
    notes: tuple[str, ...]  # what was left out or guessed on opening it
    named: bool  # whether it has headings

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what settled how it is read; of the first values one says their type."""
        columns = tuple(replace(each, values=each.full[:1]) for each in self.columns)
        return self.__dict__ | {"columns": columns}

    def place(self, column: int) -> Place:
        return Place(self.path, column=column + 1, name=self.columns[column].name)

    def at(self, row: int) -> str:
        """Return where a row is, counted from 1: "line 7" or "row 6"."""
        return f"row {row}"

    def blocks(
        self, numbers: Sequence[int], texts: Sequence[int], begin: int = 0
    ) -> Iterator[RawRows]:
        """Read columns, by their places, as numbers and as text, from a row on."""
        raise NotImplementedError


def names_of(file: TableFile) -> tuple[str, ...]:
    return tuple(column.name for column in file.columns)
