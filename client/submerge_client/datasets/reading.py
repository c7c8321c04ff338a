"""read(): one table from one or more files; it chooses the loader of each."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from submerge import UsageError
from submerge_client.datasets import intel_lab, npy, text
from submerge_client.datasets.source import Source, binary, foreign
from submerge_client.datasets.table import Table, stack

Format = Literal["npy", "log", "text"]


def read(
    paths: Sequence[Path], *, quantity: str = "temperature", skip: Collection[str] = ()
) -> Table:
    """Read one file, or several of the same columns, below one another.

    paths : Whitespace matrices, CSV, `.npy` or Intel Lab logs, plain or gzip.
    quantity : What to take from an Intel Lab log; other files have one quantity only.
    skip : Columns to leave out, by name; their content is not read.

    Raises UsageError if a file is no table of finite numbers, or the files differ in columns. One
    line: the place, what was expected, what came, what to do.
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
