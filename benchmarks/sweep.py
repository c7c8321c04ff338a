"""Sweep: what a row costs at every dimension from 40 to 256.

submerge learns streams of each dimension with its default settings, in calls of 1, 50 and 500.
No dimension is to cost more than twice its neighbour, so that no user falls off a cliff. The
dimensions take turns, up and down; time is processor time, the least of the turns. The pairs of
neighbours that differ most are then measured again, in turn, and the ratio is their median.
"""

import statistics
from functools import partial
from itertools import pairwise

import measure
from report import Table, command
from submerge import SAPCA

RANK = 10
FIRST, LAST = 40, 256
CALLS = {1: 2_000, 50: 6_000, 500: 10_000}
"""Size of a call, and rows of a pass."""

ALLOWED = 2.0
AGAIN = 5  # pairs measured again, by size of calls
SHOWN = (40, 48, 56, 60, 61, 64, 80, 100, 128, 160, 190, 200, 201, 220, 240, 256)

Pair = tuple[int, int]


def learn(stream: measure.Array, call: int) -> None:
    """Learn a stream and read it."""
    engine = SAPCA(RANK)
    for first in range(0, len(stream), call):
        engine.partial_fit(stream[first : first + call])
    _ = engine.shown


def us_per_row(dim: int, call: int, rows: int) -> float:
    """Return microseconds of processor time a row."""
    stream = measure.synth(rows, dim, alpha=1.0, seed=dim)
    return measure.clocked(learn, lambda: (stream, call)) / rows * 1e6


def swept(call: int, rows: int, dims: list[int], turns: int) -> dict[int, float]:
    """Return the least time a row of each dimension."""
    order = [dim for turn in range(turns) for dim in (dims, dims[::-1])[turn % 2]]
    found: dict[int, list[float]] = {dim: [] for dim in dims}
    for dim in measure.progress(order, f"sweep: calls of {call}"):
        found[dim].append(us_per_row(dim, call, rows))
    return {dim: min(times) for dim, times in found.items()}


def again(pair: Pair, call: int, rows: int, turns: int) -> float:
    """Return how many times the dearer of two dimensions costs the other, measured in turn."""
    runs = {dim: partial(us_per_row, dim, call, rows) for dim in pair}
    ratios = [runs[pair[1]]() / runs[pair[0]]() for _ in range(turns)]
    ratio = statistics.median(ratios)
    return max(ratio, 1 / ratio)


def room(quick: bool) -> list[Table]:
    """Sweep for each size of calls; `quick` takes every eighth dimension."""
    dims = list(range(FIRST, LAST + 1, 8 if quick else 1))
    turns = 2
    times = {
        call: swept(call, rows // (2 if quick else 1), dims, turns) for call, rows in CALLS.items()
    }
    worst = []
    for call, by_dim in times.items():
        pairs = sorted(
            pairwise(dims), key=lambda p, t=by_dim: -max(t[p[0]] / t[p[1]], t[p[1]] / t[p[0]])
        )
        ratios = {
            pair: again(pair, call, CALLS[call], 3 if quick else 9)
            for pair in measure.progress(pairs[:AGAIN], f"sweep: again, calls of {call}")
        }
        pair = max(ratios, key=lambda p, r=ratios: r[p])
        low, high = (by_dim[dim] for dim in pair)
        met = "yes" if ratios[pair] <= ALLOWED else "NO"
        worst.append((call, "{} and {}".format(*pair), low, high, ratios[pair], ALLOWED, met))
    shown = [dim for dim in dims if quick or dim in SHOWN]
    return [
        Table(
            f"Worst neighbours of {len(dims)} dimensions, {FIRST} to {LAST}, r = {RANK}",
            {
                "call": "d",
                "dimensions": "",
                "µs/row": ".2f",
                "and": ".2f",
                "ratio": ".2f",
                "allowed": ".1f",
                "met": "",
            },
            worst,
        ),
        Table(
            "Some of the dimensions, µs a row",
            {"d": "d"} | {f"calls of {call}": ".2f" for call in times},
            [(dim, *(by_dim[dim] for by_dim in times.values())) for dim in shown],
        ),
    ]


if __name__ == "__main__":
    command(room)
