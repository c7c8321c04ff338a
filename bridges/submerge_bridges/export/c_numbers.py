"""Numbers and names as C reads them back."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError

LONGEST_LITERAL = 500
"""Longest name, in bytes, that is written as a string: C99 promises room for 4,095 in one."""

PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.:/()[]%")
"""Bytes that are written as they are. Others are octal escapes, of three digits each."""

A_LINE = 4
"""Numbers in a line."""


class CNumbers:
    """Writes numbers as double, or as float if `single`."""

    def __init__(self, single: bool) -> None:
        self._single = single

    def number(self, value: float) -> str:
        """Return a finite number.

        Raises
        ------
        UsageError
            If it does not fit float.
        """
        if not self._single:
            return repr(float(value))
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.float32(value)
        if not np.isfinite(rounded):
            raise UsageError(
                f"the model holds {value:.4g}, which does not fit float: leave --float32 out"
            )
        text = f"{rounded:.9g}"
        return f"{text}f" if "." in text or "e" in text else f"{text}.0f"

    def reading(self, value: float) -> str:
        """Return a reading, which may be no number."""
        if np.isnan(value):
            return "NAN"
        return self.number(value) if np.isfinite(value) else ("-INFINITY", "INFINITY")[value > 0]

    def row(self, values: Iterable[float]) -> str:
        """Return numbers in braces."""
        return f"{{{', '.join(map(self.number, values))}}}"

    def array(self, declared: str, values: Array) -> str:
        """Return the definition of an array, all its numbers one after the other."""
        each = [self.number(value) for value in np.ravel(values).tolist()]
        lines = [", ".join(each[i : i + A_LINE]) for i in range(0, len(each), A_LINE)]
        return f"{declared} = {{\n    " + ",\n    ".join(lines) + "\n};"


def c_string(name: str) -> str:
    """Return a name as a string of ASCII, for a pointer to characters that never change."""
    data = name.encode()
    if len(data) > LONGEST_LITERAL:
        signed = (each - 256 * (each > 127) for each in data)
        return f"(const char[]){{{', '.join(map(str, signed))}, 0}}"
    return '"' + "".join(chr(each) if each in PLAIN else f"\\{each:03o}" for each in data) + '"'
