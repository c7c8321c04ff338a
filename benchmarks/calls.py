"""Calls: the cost of a row when rows come singly, by 10, 50 or 500, beside other libraries.

Each contender learns one stream with rank 10, in calls of one size, and is read once at the end.
Time is processor time: that of the calls, a row, plus that of the reading, divided by the stream's
rows; the least of a few passes, in turn. The first call is not counted, nor the first ten of one
row. A slow contender learns only the head of the stream in a pass, as many rows as fit half a
second; its excess is over the optimum of those rows. submerge has its default settings in every
cell. At 10,000 columns oneDAL would keep 800 MB, and is left out, as are four lines of NumPy
(C += B'B), which neither check nor center rows: the least that exact learning costs. A cell has a
`<` where a peer is faster than submerge at the same precision, or slower by less than 3 %; below
the tables is why.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

import measure
import onedal_rivals
import rivals
from report import Table, command

RANK = 10
CALLS = (1, 10, 50, 500)
DIMS = (24, 48, 64, 100, 150, 200, 250, 290, 300, 350, 400, 500, 1000, 10_000)
MOST_ROWS, LEAST_ROWS, NUMBERS = 40_000, 2_000, 8_000_000  # of a stream
PASS_S = 0.5
LEAST_CALLS = 4  # timed ones
CLOSE = 1.03
"""Peers within 3 % of ours are marked too: another run may have them ahead."""

OURS, OURS_SINGLE = "submerge", "submerge f32"
FOUR, ASKED, ASKED_TO, ASKED_FROM = "C += B'B", 1.5, 400, 10
"""Four lines of NumPy: so many times their time, to so many columns, in calls of so many rows."""

ONEDAL, ONEDAL_SINGLE, INTELEX = "oneDAL", "oneDAL f32", "sklearn-intelex"
SKLEARN, ALGORITHM3 = "scikit-learn", "Algorithm 3"
GENSIM, GENSIM_GRAM = "gensim, svd", "gensim, Gram"

QUADRATIC = frozenset((ONEDAL, ONEDAL_SINGLE, INTELEX))
"""Peers whose memory is O(dim^2)."""

REASONS = {
    ONEDAL: "oneDAL keeps the whole d x d matrix whatever d is (O(d^2) memory, and d^3 work when"
    " it is read), where submerge keeps to its memory budget.",
    ONEDAL_SINGLE: "oneDAL f32 multiplies and adds in float32, where submerge multiplies in"
    " float32 and adds blocks in float64; and it keeps the whole d x d matrix whatever d is.",
    INTELEX: "sklearn-intelex is oneDAL behind scikit-learn's interface, with its O(d^2) memory;"
    " it decomposes at each call.",
    GENSIM_GRAM: "gensim by Gram is gensim's merge with the Gram matrix of submerge's own kernel."
    " It neither centers rows nor keeps spare directions, energy or bounds, and its error is"
    " larger.",
}
"""Why a peer is faster somewhere; one that is and is not here is named as unexplained."""


class Contender(NamedTuple):
    """How to make one, and the type of the rows that it gets."""

    make: Callable[[], rivals.Rival]
    dtype: type = np.float64


class Cell(NamedTuple):
    """One contender at one dim and size of calls: seconds a row, and excess."""

    seconds: float
    excess: float | None


class FourLines:
    """What others compare with: the sum of products, about zero."""

    def __init__(self) -> None:
        self._scatter: measure.Array | None = None

    def partial_fit(self, block: measure.Array) -> None:
        """Add a block's products."""
        if self._scatter is None:
            self._scatter = np.zeros((block.shape[1],) * 2)
        self._scatter += block.T @ block

    def basis(self) -> measure.Array:
        """Return the directions."""
        return np.linalg.eigh(self._scatter)[1][:, ::-1][:, :RANK]


class Failure(NamedTuple):
    """What a contender raised instead."""

    error: str


Results = dict[tuple[int, int], dict[str, Cell | Failure]]
"""By dim and size of calls, then by contender."""


def contenders(dim: int) -> dict[str, Contender]:
    """Return who runs at a dimension."""
    field = {
        OURS: Contender(lambda: rivals.Submerge(RANK)),
        OURS_SINGLE: Contender(lambda: rivals.Submerge(RANK, dtype=np.float32), np.float32),
    }
    if dim < DIMS[-1] and onedal_rivals.available():
        field |= {
            ONEDAL: Contender(lambda: onedal_rivals.OneDal(RANK)),
            ONEDAL_SINGLE: Contender(lambda: onedal_rivals.OneDal(RANK, np.float32), np.float32),
            INTELEX: Contender(lambda: rivals.Gathered(onedal_rivals.Intelex(RANK), RANK)),
        }
    if dim < DIMS[-1]:
        field[FOUR] = Contender(FourLines)
    return field | {
        SKLEARN: Contender(lambda: rivals.Gathered(rivals.ScikitLearn(RANK), RANK)),
        GENSIM: Contender(lambda: rivals.Gensim(RANK, by_gram=False)),
        GENSIM_GRAM: Contender(lambda: rivals.Gensim(RANK, by_gram=True)),
        ALGORITHM3: Contender(lambda: rivals.Gathered(rivals.Algorithm3(RANK), RANK)),
    }


def untimed(call: int) -> int:
    """Return the rows of the calls that no clock sees: one call, or as many as hold RANK rows."""
    return -(-RANK // call) * call


def learnt(contender: Contender, rows: measure.Array, call: int) -> tuple[rivals.Rival, float]:
    """Let a new contender learn a copy of rows; return it and its seconds a row that is timed."""
    rows, engine, first = rows.astype(contender.dtype), contender.make(), untimed(call)
    for start in range(0, first, call):
        engine.partial_fit(rows[start : start + call])
    began = measure.seconds()
    for start in range(first, len(rows), call):
        engine.partial_fit(rows[start : start + call])
    return engine, (measure.seconds() - began) / (len(rows) - first)


def rows_in_a_pass(contender: Contender, stream: measure.Array, call: int, pass_s: float) -> int:
    """Return how many rows a contender learns in about `pass_s`: whole calls, a few at least."""
    least = rows = min(len(stream), untimed(call) + LEAST_CALLS * call)
    while True:
        _, each_s = learnt(contender, stream[:rows], call)
        if rows == len(stream) or each_s * rows > pass_s / 4:
            break
        rows = min(len(stream), 4 * rows)
    return min(len(stream), max(least, int(pass_s / each_s) // call * call))


def heads(
    field: dict[str, Contender], stream: measure.Array, call: int, *, quick: bool
) -> tuple[dict[str, measure.Array], dict[str, Failure]]:
    """Return the rows that each contender learns in a pass, and who fails on them."""
    found, failed = {}, {}
    for name, contender in field.items():
        try:
            rows = rows_in_a_pass(contender, stream, call, PASS_S / (5 if quick else 1))
            engine, _ = learnt(contender, stream[:rows], call)
            engine.basis()
        except np.linalg.LinAlgError as error:
            failed[name] = Failure(str(error))
        else:
            found[name] = stream[:rows]
    return found, failed


def measured(dim: int, call: int, *, quick: bool) -> dict[str, Cell | Failure]:
    """Measure every contender at one dimension and size of calls."""
    total = min(MOST_ROWS, max(LEAST_ROWS, NUMBERS // dim)) // (10 if quick else 1)
    stream = measure.synth(total, dim, alpha=1.0, seed=dim)
    field = contenders(dim)
    parts, cells = heads(field, stream, call, quick=quick)
    bases: dict[str, measure.Array] = {}

    def run(name: str) -> float:
        engine, each_s = learnt(field[name], parts[name], call)
        began = measure.seconds()
        bases[name] = engine.basis()
        return each_s + (measure.seconds() - began) / total

    runs = {name: partial(run, name) for name in parts}
    times = measure.interleaved(runs, 2 if quick else 3, label=f"calls: d={dim}, by {call}")
    optimum: dict[int, float] = {}
    for name, head in parts.items():
        rows, centered = len(head), head - head.mean(axis=0)
        if rows not in optimum:
            optimum[rows] = measure.tails(centered)[RANK]
        excess = measure.residual(centered, bases[name]) / optimum[rows] - 1
        # With few more rows than directions nothing is missed, by anyone.
        shown = max(0.0, excess) if rows > 4 * RANK else None
        cells[name] = Cell(times[name].least, shown)
    return {name: cells[name] for name in field}


def lost(name: str, cells: dict[str, Cell | Failure]) -> bool:
    """Return whether a peer is faster than ours at its precision, or as fast."""
    cell, ours = cells.get(name), cells[OURS_SINGLE if name == ONEDAL_SINGLE else OURS]
    if (
        name in (OURS, OURS_SINGLE, FOUR)
        or not isinstance(cell, Cell)
        or not isinstance(ours, Cell)
    ):
        return False
    return cell.seconds <= CLOSE * ours.seconds


def explained(results: Results) -> str:
    """Say which cells are lost, and why, and which contenders failed."""
    cells: dict[str, list[str]] = {}
    lines = []
    for (dim, call), field in results.items():
        for name, cell in field.items():
            if lost(name, field):
                cells.setdefault(name, []).append(f"d = {dim} by {call}")
            if isinstance(cell, Failure):
                lines.append(f"* {name} fails at d = {dim} in calls of {call}: {cell.error}.")
    for name, where in cells.items():
        lines.append(f"* **{name}** ({', '.join(where)}): {REASONS.get(name, 'not explained.')}")
    return "\n".join(lines) or "submerge is first in every cell."


def tables(results: Results) -> list[Table]:
    """Show times, one table for each size of calls, then errors, and what is lost."""
    names = list(next(iter(results.values())))
    made = []
    for call in CALLS:
        rows = [(dim, *_times(names, f)) for (dim, c), f in results.items() if c == call]
        columns = {"d": "d"} | dict.fromkeys(names, ">")
        made.append(Table(f"Calls of {call}: µs a row", columns, rows))
    errors = [
        (dim, call, *(getattr(field.get(name), "excess", None) for name in names))
        for (dim, call), field in results.items()
    ]
    quotients = [
        (dim, *(_over(results.get((dim, c), {})) for c in CALLS))
        for dim in dict.fromkeys(dim for dim, _ in results)
    ]
    over = {"d": "d"} | {f"calls of {c}": ">" for c in CALLS}
    columns = {"d": "d", "call": "d"} | dict.fromkeys(names, ".0e")
    note = "Squared error over the optimum at rank 10, minus 1, on the rows that it learnt."
    lost_cells = {"of": "", "cells": "d"}
    return [
        *made,
        Table("Times the four lines of NumPy", over, quotients, OVER),
        Table("Excess error", columns, errors, note),
        Table("Cells that submerge loses", lost_cells, _lost(results), explained(results)),
    ]


OVER = (
    f"Asked: at most {ASKED}, to {ASKED_TO} columns in calls of {ASKED_FROM} rows or more; `*` is"
    " more. A row is also checked, copied and centered, each a pass over it: to some 64 columns"
    " they take as long as the product. At 400 the budget has room for few rows at once."
)


def _over(cells: dict[str, Cell | Failure]) -> str | None:
    """Return how many times the four lines' time a row takes."""
    ours, four = cells.get(OURS), cells.get(FOUR)
    if not isinstance(ours, Cell) or not isinstance(four, Cell):
        return None
    times = ours.seconds / four.seconds
    return f"{times:.2f}{' *' if times > ASKED else ''}"


def _times(names: list[str], field: dict[str, Cell | Failure]) -> list[str | None]:
    return [
        f"{cell.seconds * 1e6:.2f}{' <' if lost(name, field) else ''}"
        if isinstance(cell := field.get(name), Cell)
        else None
        for name in names
    ]


def _lost(results: Results) -> list[tuple[str, int]]:
    """Count the cells lost to peers of bounded memory and to those of O(d^2), by dimension."""
    counts = {}
    for label, quadratic in (("bounded memory", False), ("O(d^2) memory", True)):
        for up, dims in (("d <= 200", range(201)), ("d > 200", range(201, 10**6))):
            counts[f"peers of {label}, {up}"] = sum(
                lost(name, field) and (name in QUADRATIC) == quadratic
                for (dim, _), field in results.items()
                if dim in dims
                for name in field
            )
    return list(counts.items())


def room(quick: bool) -> list[Table]:
    """Measure all cells; `quick` leaves out the larger dimensions and learns fewer rows."""
    dims = [dim for dim in DIMS if not quick or dim <= 400]
    return tables({(d, c): measured(d, c, quick=quick) for d in dims for c in CALLS})


if __name__ == "__main__":
    command(room)
