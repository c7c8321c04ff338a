"""Errors that say whose fault it was, what was expected and what was received.

A `UsageError` is the caller's mistake and names the remedy. A `PeerError` means invalid bytes from
a peer, and changes nothing but a counter. Nothing here is raised for a bug in submerge itself.
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
"""What is wrong with a peer's bytes: refusals are counted under these words."""

KINDS: dict[Kind, str] = {
    "malformed": "cut short, damaged, or another kind of message",
    "oversize": "larger, or of more parts, than any such message",
    "version": "another version of the protocol: update the older one",
    "name": "not a valid node, group, fence or fingerprint",
    "shape": "lengths that contradict one another, or more dimensions than there are",
    "range": "a number out of range: negative, or too large to sum",
    "not_finite": "NaN or infinity",
    "unsorted": "singular values or priorities out of order",
    "not_orthonormal": "columns that are not an orthonormal basis",
    "energy": "less energy than the singular values hold",
    "sketch": "a quantile sketch that no scores have",
    "schema": "an unreadable schema, or numbers that do not fit it",
}
"""One line of explanation for each kind."""


class SubmergeError(Exception):
    """Base of all errors that submerge raises on purpose."""


class UsageError(SubmergeError, ValueError):
    """The caller's mistake: an argument or a request that cannot be served."""


class ShapeError(UsageError):
    """An array of the wrong shape.

    Attributes
    ----------
    expected, got : str
        The shapes as text, such as `(n, 48)` and `(7, 46)`.
    """

    def __init__(self, what: str, *, expected: str, got: object) -> None:
        self.expected = expected
        self.got = str(got)
        super().__init__(f"{what} must have shape {expected}, got {got}")


class ValuesError(UsageError):
    """Readings that are not finite numbers of a usable size, the first at (row, column), from 0."""

    def __init__(self, message: str, *, row: int, column: int) -> None:
        self.row = row
        self.column = column
        super().__init__(message)


class SchemaMismatch(UsageError):
    """Two summaries of different schemas, which never merge.

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
    """A request that needs at least one sample came before the first."""


class PeerError(SubmergeError):
    """Invalid bytes from a peer, a file or a store.

    Attributes
    ----------
    kind : Kind
        What is wrong with them: refusals are counted by it.
    """

    def __init__(self, message: str, *, kind: Kind = "malformed") -> None:
        self.kind: Kind = kind
        super().__init__(message)


def whole(name: str, value: Any, *, least: int, most: int | None = None) -> int:
    """Return `value` as an int; refuse anything but a whole number from `least` to `most`."""
    # Most are plain ints, and asking an abstract class takes longer than all the rest.
    fine = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    if not fine or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name} must be a whole number {bounds}, got {value!r}")
    return int(value)
