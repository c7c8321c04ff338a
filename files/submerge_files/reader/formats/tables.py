"""TableFile: what a file of any format looks like to those who choose columns and read rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

from submerge import Array

HEAD_ROWS = 256
"""Rows that show what a column holds."""

BLOCK_ROWS = 4096
"""Most rows of a block, of formats that can be read in blocks: two are in memory (`ahead`)."""


MOST_NUMBERS = 1 << 22
"""Most numbers of a block: blocks of wide tables have fewer rows."""


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
    """A column and its first `HEAD_ROWS` values as text, "" for a gap, none for OTHER.

    `typed` columns hold times by their type, and are read as numbers, in seconds.
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    typed: bool = False
    heading: bool = True

    @property
    def full(self) -> tuple[str, ...]:
        """The first values without the gaps."""
        return tuple(value for value in self.values if value)


class RawRows(NamedTuple):
    """Rows of a file: numbers (n, columns), the n fields of each text column, places as counted."""

    numbers: Array
    texts: tuple[list[str], ...]
    places: Sequence[int]

    def after(self, row: int) -> RawRows:
        """Return the rows from one of them on."""
        texts = tuple(fields[row:] for fields in self.texts)
        return RawRows(self.numbers[row:], texts, self.places[row:])


class TableFile(Protocol):
    """A file that was opened; its rows can be read from the start any number of times."""

    @property
    def path(self) -> Path:
        """As the caller named it."""

    @property
    def named(self) -> bool:
        """Whether it has headings."""

    @property
    def unit(self) -> str:
        """What a place is: "line" or "row"."""

    @property
    def columns(self) -> tuple[ColumnHead, ...]:
        """In the file's order."""

    @property
    def head(self) -> int:
        """How many rows the columns' first values are."""

    @property
    def whole(self) -> bool:
        """Whether the file has no rows but these."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or guessed on opening it."""

    def blocks(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[RawRows]:
        """Read columns, by their places, as numbers and as text, some thousand rows at once."""


def names_of(file: TableFile) -> tuple[str, ...]:
    """Return the names of a file's columns."""
    return tuple(column.name for column in file.columns)
