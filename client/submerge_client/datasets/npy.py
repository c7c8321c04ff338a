"""NumPy's `.npy`: one matrix of real numbers. No pickles, so no code runs."""

from __future__ import annotations

from tokenize import TokenError
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from submerge import Array
from submerge_client.datasets.source import Source, refusal
from submerge_client.datasets.table import Table

REAL = "biuf"
"""Kinds of dtype that are real numbers: bool, integers, floats."""

UNREADABLE = (ValueError, TypeError, KeyError, SyntaxError, TokenError, RecursionError, MemoryError)
"""Errors of NumPy for a damaged header, which it parses as a Python literal."""


def recognizes(head: bytes) -> bool:
    """Return whether `head` is the start of a `.npy` file."""
    return head.startswith(npy.MAGIC_PREFIX)


def header(source: Source) -> tuple[tuple[int, int], np.dtype[np.generic]]:
    """Return shape and dtype of a matrix of real numbers, or refuse the file."""
    with source.unpacked() as stream:
        try:
            shape, dtype = _header(stream)
        except UNREADABLE as error:
            raise refusal(
                source.path,
                expected="a .npy file",
                got="a header that cannot be read",
                hint="write it again with numpy.save",
            ) from error
    if dtype.kind not in REAL:
        raise refusal(
            source.path,
            expected="a matrix of real numbers",
            got=f"dtype {dtype}",
            hint="convert it with astype(float)",
        )
    if len(shape) != 2:
        raise refusal(
            source.path,
            expected="a matrix (two dimensions)",
            got=f"shape {shape}",
            hint="reshape it to (rows, columns)",
        )
    return (shape[0], shape[1]), dtype


def read(source: Source) -> Table:
    """Read a matrix, converted to float64."""
    shape, _ = header(source)
    with source.unpacked() as stream:
        try:
            stored = npy.read_array(stream, allow_pickle=False)
        except ValueError as error:
            raise refusal(
                source.path,
                expected=f"numbers for shape {shape}",
                got="a file that breaks off",
                hint="copy or write it again",
            ) from error
        except MemoryError as error:
            raise refusal(
                source.path,
                expected="a matrix that fits into memory",
                got=f"shape {shape}",
                hint="cut it, or write it again if that is not its shape",
            ) from error
    # A longdouble may overflow here; it is refused below, with its place.
    with np.errstate(over="ignore"):
        rows: Array = np.ascontiguousarray(stored, dtype=np.float64)
    infinite = np.argwhere(np.isinf(rows))
    if len(infinite):
        row, column = infinite[0]
        raise refusal(
            f"{source.path}, row {row + 1}, column {column + 1}",
            expected="a finite number",
            got=str(stored[row, column]),
            hint="write NaN for a missing value",
        )
    return Table.of(source.path, rows)


def _header(stream: BinaryIO) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    version = npy.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = npy.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = npy.read_array_header_2_0(stream)
    else:
        # Version 3 exists for structured dtypes with names outside Latin-1.
        raise ValueError(f"version {version[0]}.{version[1]}, no plain matrix")
    return shape, dtype
