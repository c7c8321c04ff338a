"""Flow: the columns of a file as rows of numbers, block by block."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from submerge import Array
from submerge_client.datasets import npy, text
from submerge_client.datasets.source import ZERO, Source, binary, foreign, refusal


@dataclass(frozen=True)
class Flow:
    """One file, opened but not yet read; its columns are `x0, x1, ...` if it has no names."""

    path: Path
    names: tuple[str, ...]
    named: bool
    notes: tuple[str, ...]  # what was left out or guessed, a sentence each
    _read: Callable[[Sequence[int]], Iterator[Array]]

    @classmethod
    def of(cls, path: Path) -> Flow:
        """Open a file, and refuse one that is no table."""
        source = Source.of(path)
        with source.damage_first():
            if npy.recognizes(source):
                return cls._of_matrix(npy.Matrix.of(source))
            check_text(source)
            form = text.form_of(source)
            check_distinct(path, form.columns)

        def read(used: Sequence[int]) -> Iterator[Array]:
            with source.damage_first():
                for piece in text.pieces(source, form, used):
                    yield piece.rows

        return cls(path, form.columns, bool(form.names), form.notes, read)

    @classmethod
    def _of_matrix(cls, matrix: npy.Matrix) -> Flow:
        n, width = matrix.shape

        def read(used: Sequence[int]) -> Iterator[Array]:
            for begin in range(0, n, text.BLOCK):
                yield matrix.block(begin, begin + text.BLOCK)[:, list(used)]

        return cls(matrix.source.path, tuple(f"x{i}" for i in range(width)), False, (), read)

    def blocks(self, used: Sequence[int]) -> Iterator[Array]:
        """Read columns (n, len(used)) from the start; UsageError at a value that is none."""
        return self._read(used)


def check_text(source: Source) -> None:
    """Refuse a file whose first bytes are not those of text."""
    if foreign(source.head) or b"\0" in source.head:
        raise binary(source.path, source.head, ZERO)


def check_distinct(path: Path, names: Sequence[str]) -> None:
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


def counted(number: int, one: str, many: str = "") -> str:
    """Return `1 row`, `2 rows`."""
    return f"{number} {one if number == 1 else many or one + 's'}"
