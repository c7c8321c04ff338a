"""Recorded: rows of one machine that follow one another, as they were recorded."""

from __future__ import annotations

from dataclasses import dataclass

from submerge._linalg import Array


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Rows of one machine, in the order of time.

    Attributes
    ----------
    machine : str
        Which machine they are of. Rows of one machine come together, and one machine after another.
    rows : (n, channels)
        In their units; NaN is a gap.
    times : (n,) or None
        Seconds since 1970, never falling; None if nothing says when they were.
    file : str
        Where they are from, for people.
    first : int
        The number of the first of them in its file, from 1.
    """

    machine: str
    rows: Array
    times: Array | None
    file: str = ""
    first: int = 1
