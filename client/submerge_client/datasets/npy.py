"""NumPy's `.npy`: one matrix of real numbers. No pickles, so no code runs."""

from __future__ import annotations

from dataclasses import dataclass
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.lib import format as npy

from submerge import Array, UsageError
from submerge_client.datasets.source import Source, refusal

REAL = "biuf"
"""Kinds of dtype that are real numbers: bool, integers, floats."""

UNREADABLE = (ValueError, TypeError, KeyError, SyntaxError, TokenError, RecursionError, MemoryError)
"""Errors of NumPy for a damaged file; it parses the header as a Python literal."""


def recognizes(source: Source) -> bool:
    """Return whether a file is `.npy`, by its content or name: a broken one is reported as one."""
    return source.head.startswith(npy.MAGIC_PREFIX) or ".npy" in source.path.suffixes[-2:]


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix (n, columns) in a file; of a plain one, blocks alone are in memory."""

    source: Source
    shape: tuple[int, int]
    _unpacked: Any = None

    @classmethod
    def of(cls, source: Source) -> Matrix:
        """Look at the shape and type; a packed file is read."""
        stored = _stored(source)
        if stored.dtype.kind not in REAL:
            expected, got = "a matrix of real numbers", f"dtype {stored.dtype}"
            raise refusal(source.path, expected=expected, got=got, hint="use astype(float)")
        if stored.ndim != 2:
            expected, got = "a matrix (two dimensions)", f"shape {stored.shape}"
            raise refusal(source.path, expected=expected, got=got, hint="reshape it to two")
        if len(stored) == 0:
            got = f"a matrix of {stored.shape[1]} columns without rows"
            hint = "check how it was written"
            raise refusal(source.path, expected="rows of numbers", got=got, hint=hint)
        return cls(source, stored.shape, stored if source.packed else None)

    def block(self, begin: int, end: int) -> Array:
        """Return some rows as float64, NaN for a gap."""
        # Mapped for each block: pages of a mapping that stays count as resident.
        stored = _stored(self.source) if self._unpacked is None else self._unpacked
        # A longdouble may overflow here; it is refused below, with its place.
        with np.errstate(over="ignore"):
            rows: Array = np.array(stored[begin:end], dtype=np.float64, order="C")
        infinite = np.argwhere(np.isinf(rows))
        if len(infinite):
            row, column = infinite[0]
            raise refusal(
                f"{self.source.path}, row {begin + row + 1}, column {column + 1}",
                expected="a finite number",
                got=str(stored[begin + row, column]),
                hint="write NaN for a missing value",
            )
        return rows


def _stored(source: Source) -> Any:
    """Return the array of a file: mapped, or unpacked."""
    try:
        if not source.packed:
            return npy.open_memmap(source.path, mode="r")
        with source.unpacked() as stream:
            stored = npy.read_array(stream, allow_pickle=False)
            while stream.read(1 << 20):  # to the end, where the checksum is
                pass
            return stored
    except UsageError:
        raise
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise refusal(
            source.path,
            expected="a whole .npy file of numbers",
            got=f"one that NumPy cannot read ({reason})",
            hint="copy it again, or write its numbers with numpy.save (astype(float))",
        ) from error
