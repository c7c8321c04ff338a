"""read(): one table from one or more files; it chooses the loader of each."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from submerge import Array, UsageError
from submerge_client.datasets import intel_lab, npy, text
from submerge_client.datasets.source import Source, binary, foreign
from submerge_client.datasets.table import Table, check_distinct, stack

Format = Literal["npy", "log", "text"]


def read(
    paths: Sequence[Path], *, quantity: str = "temperature", skip: Collection[str] = ()
) -> Table:
    """Read one file, or several of the same columns, below one another, without those to skip.

    An Intel Lab log gives a `quantity`. UsageError if a file is no table of finite numbers, or the
    files differ in columns: the place, what was expected, what came, what to do.
    """
    check_quantity(quantity)
    if not paths:
        raise UsageError("expected at least one file to read, got none; name one")
    return stack(paths, [_read(Source.of(path), quantity, skip) for path in paths])


def _read(source: Source, quantity: str, skip: Collection[str]) -> Table:
    with source.damage_first():
        match format_of(source):
            case "npy":
                return npy.read(source).without(source.path, skip)
            case "log":
                return intel_lab.read(source, quantity).without(source.path, skip)
            case "text":
                return text.read(source, skip)


def format_of(source: Source) -> Format:
    """Recognise a file by its content, or refuse it."""
    # The suffix counts as well: a broken .npy should be reported as one.
    if npy.recognizes(source.head) or ".npy" in source.path.suffixes[-2:]:
        return "npy"
    # Before the search for zero bytes: in a log they break one line, not the file.
    if intel_lab.recognizes(source.head):
        return "log"
    if foreign(source.head) or b"\0" in source.head:
        raise binary(source.path, source.head, "a zero byte")
    return "text"


def check_quantity(quantity: str) -> None:
    """Refuse a quantity that no Intel Lab log has, whatever the files are."""
    if quantity not in intel_lab.CHOICES:
        near = difflib.get_close_matches(quantity, intel_lab.CHOICES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"quantity must be one of {', '.join(intel_lab.CHOICES)}, got {quantity!r}{hint}"
        )


@dataclass(frozen=True)
class Flow:
    """One file, opened but not yet read; its columns are `x0, x1, ...` if it has no names.

    Notes say what was left out or guessed, a sentence each.
    """

    path: Path
    names: tuple[str, ...]
    named: bool
    notes: tuple[str, ...]
    _read: Callable[[Sequence[int]], Iterator[Array]]

    @classmethod
    def of(cls, path: Path, *, quantity: str = "temperature") -> Flow:
        """Open a file, and refuse one that is no table."""
        check_quantity(quantity)
        source = Source.of(path)
        with source.damage_first():
            match format_of(source):
                case "npy":
                    return cls._held(source, npy.read(source), named=False)
                case "log":
                    return cls._held(source, intel_lab.read(source, quantity), named=True)
                case "text":
                    return cls._streamed(source)

    @classmethod
    def _streamed(cls, source: Source) -> Flow:
        form = text.form_of(source)
        check_distinct(source.path, form.columns)

        def read(used: Sequence[int]) -> Iterator[Array]:
            with source.damage_first():
                yield from text.blocks(source, form, used)

        notes = tuple(text.remarks(source, form))
        return cls(source.path, form.columns, bool(form.names), notes, read)

    @classmethod
    def _held(cls, source: Source, table: Table, *, named: bool) -> Flow:
        def read(used: Sequence[int]) -> Iterator[Array]:
            for begin in range(0, len(table.rows), text.BLOCK):
                yield table.rows[begin : begin + text.BLOCK, list(used)]

        return cls(source.path, table.names, named, table.notes, read)

    def blocks(self, used: Sequence[int]) -> Iterator[Array]:
        """Read columns (n, len(used)) from the start; UsageError at a value that is none."""
        return self._read(used)
