"""Sweep: what a row costs at every tenth number of columns from 20 to 1,000.

submerge learns streams of each width with its default settings, in calls of 1, 50 and 500. None is
to cost more than 1.3 times what a line through its six neighbours says (least squares, of
logarithms), so that no user falls off a cliff. Widths take turns, up and down; time is processor
time, the least of the turns. Those that are furthest above their line are then measured again, in
turn with their neighbours, and the ratio is the median. Reading is not part of a row, but a column.
"""

import statistics
from collections.abc import Mapping
from functools import partial

import numpy as np

import measure
from report import Table, command
from submerge import SAPCA

RANK = 10
FIRST, LAST, STEP = 20, 1000, 10
CALLS = {1: 1_000, 50: 2_500, 500: 5_000}
"""Size of a call, and rows of a pass."""

ALLOWED = 1.3
SIDE = 3  # neighbours on either side that the line goes through
AGAIN = 4  # widths measured again, by size of calls
SHOWN = (20, 50, 100, 150, 200, 250, 290, 300, 350, 390, 400, 410, 420, 500, 700, 1000)


def us_per_row(dim: int, call: int, rows: int) -> float:
    """Return microseconds of processor time a row."""
    stream, engine = measure.synth(rows, dim, alpha=1.0, seed=dim), SAPCA(RANK)

    def learn() -> None:
        for first in range(0, rows, call):
            engine.partial_fit(stream[first : first + call])

    return measure.clocked(learn, tuple) / rows * 1e6


def read_ms(dim: int) -> float:
    """Return milliseconds of processor time of a reading."""
    engine = SAPCA(RANK).partial_fit(measure.synth(520, dim, alpha=1.0, seed=dim))
    return measure.clocked(lambda: engine.subspace, tuple) * 1e3


def swept(call: int, rows: int, dims: list[int], turns: int) -> dict[int, float]:
    """Return the least time a row of each width."""
    order = [dim for turn in range(turns) for dim in (dims, dims[::-1])[turn % 2]]
    found: dict[int, list[float]] = {dim: [] for dim in dims}
    for dim in measure.progress(order, f"sweep: calls of {call}"):
        found[dim].append(us_per_row(dim, call, rows))
    return {dim: min(times) for dim, times in found.items()}


def neighbours(dim: int, dims: list[int]) -> list[int]:
    """Return the widths that a line goes through."""
    at = dims.index(dim)
    return [d for d in dims[max(0, at - SIDE) : at + SIDE + 1] if d != dim]


def over(dim: int, times: Mapping[int, float]) -> float:
    """Return how many times the line through its neighbours a width costs."""
    near = neighbours(dim, list(times))
    slope, level = np.polyfit(np.log(near), np.log([times[d] for d in near]), 1)
    return float(times[dim] / np.exp(level + slope * np.log(dim)))


def again(dim: int, dims: list[int], call: int, turns: int) -> float:
    """Return the same of times that are measured in turn."""
    some = sorted([dim, *neighbours(dim, dims)])
    return statistics.median(over(dim, swept(call, CALLS[call], some, 2)) for _ in range(turns))


def room(quick: bool) -> list[Table]:
    """Sweep for each size of calls; `quick` takes every eighth width."""
    dims = list(range(FIRST, LAST + 1, STEP * (8 if quick else 1)))
    times = {call: swept(call, rows, dims, 2 if quick else 4) for call, rows in CALLS.items()}
    worst = []
    for call, by_dim in times.items():
        first = sorted(dims, key=partial(over, times=by_dim))[::-1][:AGAIN]
        ratios = {dim: again(dim, dims, call, 1 if quick else 3) for dim in first}
        dim = max(ratios, key=ratios.__getitem__)
        met = "yes" if ratios[dim] <= ALLOWED else "NO"
        worst.append((call, dim, by_dim[dim], over(dim, by_dim), ratios[dim], ALLOWED, met))
    return [
        Table(
            f"Furthest above its neighbours, of {len(dims)} widths, {FIRST} to {LAST}, r = {RANK}",
            {
                "call": "d",
                "columns": "d",
                "µs/row": ".2f",
                "over the line": ".2f",
                "again": ".2f",
                "allowed": ".1f",
                "met": "",
            },
            worst,
        ),
        Table(
            "Some of the widths, µs a row",
            {"d": "d"} | {f"calls of {call}": ".2f" for call in times} | {"read, ms": ".2f"},
            [
                (dim, *(by_dim[dim] for by_dim in times.values()), read_ms(dim))
                for dim in dims
                if quick or dim in SHOWN
            ],
        ),
    ]


if __name__ == "__main__":
    command(room)
