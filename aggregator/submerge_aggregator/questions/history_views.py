"""What an operator sees of histories: plain values for JSON and tables."""

from __future__ import annotations

from dataclasses import dataclass

MOST_PUSHED_BYTES = 64 << 20
"""Longest model file that a root takes: ten thousand chunks, and a scatter of 2,000 channels, are
less. It has to arrive within the time of a request, and a store reads it at each start."""


@dataclass(frozen=True, slots=True)
class HistoryView:
    """A history that a root merges beside its rows.

    rows : That were learnt of it.
    counts_for : Rows that it counts for now, after its cap and the half-life.
    most_rows : Its cap; None without one.
    left : Share of its weight that the half-life leaves at its age, from 0 to 1.
    first_s, last_s : Times of its first and last row, seconds since 1970; None where rows have no
        times.
    origin : Empty for files, else the fleet that it was saved from.
    pushed_s : When it was pushed, seconds since 1970.
    current : Of the schema that the group has now: others are kept, and in no model.
    """

    group: str
    name: str
    rows: int
    counts_for: float
    most_rows: float | None
    left: float
    first_s: float | None
    last_s: float | None
    machines: tuple[str, ...]
    files: tuple[str, ...]
    chunks: int
    origin: str
    pushed_s: float
    current: bool


@dataclass(frozen=True, slots=True)
class PushedView:
    """What a push has changed.

    replaces : Names of the histories whose place it took.
    learnt : Readings that the group's model has learnt in all.
    limits : Whether the group's model has limits.
    half_life_s : Of the group; 0 if it does not forget.
    """

    history: HistoryView
    replaces: tuple[str, ...]
    learnt: int
    limits: bool
    half_life_s: float
