"""read(): files in, one table out; which loader takes which file."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from pathlib import Path

from submerge import UsageError
from submerge_fleet.datasets import intel_lab, npy, text
from submerge_fleet.datasets.source import Source, binary
from submerge_fleet.datasets.table import Table, stacked


def read(
    paths: Sequence[Path], *, quantity: str = "temperature", skip: Collection[str] = ()
) -> Table:
    """Read one file, or several of the same columns, below one another.

    Parameters
    ----------
    paths : sequence of Path
        Whitespace matrices, CSV, `.npy` or Intel Lab logs, plain or gzip.
    quantity : {"temperature", "humidity", "light", "voltage", "all"}
        What to take from an Intel Lab log; other files have one quantity only.
    skip : collection of str
        Columns to leave out, by name; what stands in them is not looked at.

    Raises
    ------
    UsageError
        If a file is no table of finite numbers, or the files differ in columns.
        One line: the place, what was expected, what came, what to do.
    """
    if quantity not in intel_lab.CHOICES:
        near = difflib.get_close_matches(quantity, intel_lab.CHOICES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"quantity must be one of {', '.join(intel_lab.CHOICES)}, got {quantity!r}{hint}"
        )
    if not paths:
        raise UsageError("expected at least one file to read, got none; name one")
    return stacked(paths, [_read(Source.of(path), quantity, skip) for path in paths])


def _read(source: Source, quantity: str, skip: Collection[str]) -> Table:
    try:
        return _recognized(source, quantity, skip)
    except UsageError:
        # A damaged gzip yields wrong rows first and its checksum last: blame the damage.
        source.check_whole()
        raise


def _recognized(source: Source, quantity: str, skip: Collection[str]) -> Table:
    # The suffix counts where the content does not: a broken .npy should be called that.
    if npy.recognizes(source.head) or ".npy" in source.path.suffixes[-2:]:
        return npy.read(source).without(source.path, skip)
    # Before the search for zero bytes: in a log they break one line, not the file.
    if intel_lab.recognizes(source.head):
        return intel_lab.read(source, quantity).without(source.path, skip)
    if b"\0" in source.head:
        raise binary(source.path, source.head, "a zero byte")
    return text.read(source, skip)
