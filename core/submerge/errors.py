"""Whose fault it was, what was expected, what came.

Every error that submerge raises on purpose is a `SubmergeError`. A `UsageError`
is the caller's mistake and names the mend; a `PeerError` is foreign bytes, and
changes nothing but a counter. Nothing here is raised for a bug of ours.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

Kind = Literal[
    "malformed",
    "oversize",
    "version",
    "name",
    "shape",
    "range",
    "not_finite",
    "unsorted",
    "not_orthonormal",
    "energy",
    "sketch",
    "schema",
]
"""What is wrong with foreign bytes: the words by which refusals are counted."""

KINDS: dict[Kind, str] = {
    "malformed": "cut short, damaged, or another kind of message",
    "oversize": "larger, or of more parts, than any such message is",
    "version": "another version of the protocol: update the older one",
    "name": "a node, group, fence or fingerprint that cannot be one",
    "shape": "lengths that contradict one another, or more dimensions than there are",
    "range": "a number that cannot be true: negative, or larger than sums can bear",
    "not_finite": "NaN or infinity",
    "unsorted": "singular values or priorities out of order",
    "not_orthonormal": "columns that are no basis",
    "energy": "less energy than the singular values hold",
    "sketch": "scores in a form that no scores have",
    "schema": "a schema that cannot be read, or numbers that do not fit it",
}
"""Each in a line, for people."""


class SubmergeError(Exception):
    """Anything that submerge refuses to do."""


class UsageError(SubmergeError, ValueError):
    """The caller asked for something that has no answer."""


class ShapeError(UsageError):
    """An array of the wrong shape.

    Attributes
    ----------
    expected, got : str
        The shapes, as text: `(n, 48)` and `(7, 46)`.
    """

    def __init__(self, what: str, *, expected: str, got: object) -> None:
        self.expected = expected
        self.got = str(got)
        super().__init__(f"{what} must have shape {expected}, got {got}")


class ValuesError(UsageError):
    """Readings that are not finite numbers of a usable size.

    Attributes
    ----------
    row, column : int
        Where the first one stands, from zero.
    """

    def __init__(self, message: str, *, row: int, column: int) -> None:
        self.row = row
        self.column = column
        super().__init__(message)


class SchemaMismatch(UsageError):
    """Two summaries of different things: they never merge.

    Attributes
    ----------
    expected, got : str
        The fingerprints.
    """

    def __init__(self, *, expected: str, got: str) -> None:
        self.expected = expected
        self.got = got
        super().__init__(
            f"subspaces of different schemas never merge: expected {expected[:12]}, got {got[:12]}"
        )


class NothingLearnt(UsageError):
    """A question that needs at least one sample came before the first."""


class PeerError(SubmergeError):
    """Foreign bytes that do not say what they should.

    Attributes
    ----------
    kind : Kind
        What is wrong with them, in a word that can be counted.
    """

    def __init__(self, message: str, *, kind: Kind = "malformed") -> None:
        self.kind: Kind = kind
        super().__init__(message)


def whole(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return `value` as an int, or refuse what is no whole number from `least` to `most`."""
    fine = isinstance(value, Integral) and not isinstance(value, bool)
    if not fine or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name} must be a whole number {bounds}, got {value!r}")
    return int(value)
