"""Flow: a file's rows a block at a time, as a sensor yields them.

1. Text is read on demand: a gigabyte takes no more memory than a kilobyte.
2. An Intel Lab log and a `.npy` are read at once and held in memory: a log has one mote after
   another, so its first row is complete only when its last line is read.
3. Columns are chosen before rows are read; other columns may have any content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from submerge import Array
from submerge_client.datasets import intel_lab, npy, text, text_form
from submerge_client.datasets.reading import check_quantity, format_of
from submerge_client.datasets.source import Source
from submerge_client.datasets.table import Table, check_distinct


@dataclass(frozen=True)
class Flow:
    """One file, opened but not yet read.

    path : as the caller named it
    names : of the columns; `x0, x1, ...` if the file has none
    named : whether the file has names
    notes : what was left out or guessed, a sentence each
    """

    path: Path
    names: tuple[str, ...]
    named: bool
    notes: tuple[str, ...]
    _read: Callable[[Sequence[int]], Iterator[Array]]

    @classmethod
    def of(cls, path: Path, *, quantity: str = "temperature") -> Flow:
        """Open a file, and refuse one that is no table.

        path : A whitespace matrix, CSV, `.npy` or Intel Lab log, plain or gzip.
        quantity : What to take from an Intel Lab log.

        Raises UsageError, in one line: the place, what was expected, what came, what to do.
        """
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
        form = text_form.form_of(source)
        check_distinct(source.path, form.columns)

        def read(used: Sequence[int]) -> Iterator[Array]:
            with source.damage_first():
                yield from text.blocks(source, form, used)

        notes = tuple(text_form.remarks(source, form))
        return cls(source.path, form.columns, bool(form.names), notes, read)

    @classmethod
    def _held(cls, source: Source, table: Table, *, named: bool) -> Flow:
        def read(used: Sequence[int]) -> Iterator[Array]:
            for begin in range(0, len(table.rows), text.BLOCK):
                yield table.rows[begin : begin + text.BLOCK, list(used)]

        return cls(source.path, table.names, named, table.notes, read)

    def blocks(self, used: Sequence[int]) -> Iterator[Array]:
        """Read the file from its start: the columns `used`, in that order, (n, len(used)).

        Raises UsageError at the first value that is no finite number, after the rows before its
        block.
        """
        return self._read(used)
