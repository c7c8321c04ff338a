"""Blocks: submerge in calls of 500 rows against scikit-learn at its blocks of 500 and at its best.

scikit-learn's IncrementalPCA learns one stream at each block size of a list; the fastest is its
best. Then submerge in calls of 500, scikit-learn in blocks of 500 and scikit-learn at its best
block learn the whole stream in turn, with one reading of the basis. Time is processor time; a
ratio is the median over the turns. At d = 400 submerge also runs with its memory budget lifted,
which is exact. Excess is the squared error over the optimum at rank 10, minus 1.
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import measure
import rivals
from report import Table, command

RANK = 10
CALL = 500
NARROW_BLOCKS = (300, 500, 700, 1000, 1500, 2000, 3000, 4000, 6000)
WIDE_BLOCKS = (20, 30, 45, 60, 100, 150, 200, 300, 500)
ROWS = {400: 10_000, 1000: 6_000, 10_000: 2_000}
MOST_ROWS = 40_000
OURS, LIFTED = "submerge", "submerge, budget lifted"


class Case(NamedTuple):
    """A dimension, which of ours runs, and what is asked at 500 and at the best block."""

    dim: int
    ours: str
    asked: float | None = None
    asked_at_best: float | None = None


CASES = (
    *(Case(dim, OURS, 12.0, 8.0) for dim in (48, 64, 80, 100, 128)),
    Case(400, LIFTED, 6.0, 6.0),
    Case(400, OURS),
    Case(1000, OURS, 6.0, 6.0),
    Case(10_000, OURS, 9.5, 9.5),
)


class Found(NamedTuple):
    """Of one case: seconds a row of ours and of scikit-learn, its best block, errors."""

    case: Case
    best: int
    times: dict[str, float]
    ratio: float
    ratio_at_best: float
    excess: dict[str, float]


def makers(case: Case, best: int) -> dict[str, tuple[Callable[[], rivals.Rival], int]]:
    """Return who runs, each with its block."""
    options = rivals.LIFTED if case.ours == LIFTED else {}
    return {
        "ours": (lambda: rivals.Submerge(RANK, **options), CALL),
        "at 500": (lambda: rivals.ScikitLearn(RANK), CALL),
        "at best": (lambda: rivals.ScikitLearn(RANK), best),
    }


def learnt(make: Callable[[], rivals.Rival], rows: measure.Array, block: int) -> measure.Array:
    """Learn rows, which are overwritten, and return the basis."""
    engine = make()
    for first in range(0, len(rows), block):
        engine.partial_fit(rows[first : first + block])
    return engine.basis()


def best_block(stream: measure.Array, *, quick: bool) -> int:
    """Return the block at which scikit-learn is fastest on the head of a stream."""
    dim = stream.shape[1]
    blocks = [block for block in NARROW_BLOCKS if 2 * block <= len(stream)]
    if dim >= min(ROWS):
        blocks = list(WIDE_BLOCKS)

    def run(block: int) -> float:
        rows = stream[: 2 * max(blocks) // block * block]
        make = partial(rivals.ScikitLearn, RANK)
        return measure.clocked(learnt, lambda: (make, rows.copy(), block)) / len(rows)

    runs = {block: partial(run, block) for block in blocks}
    turns = 1 if quick or dim > 1000 else 3
    times = measure.interleaved(runs, turns, label=f"blocks: d={dim}, best block")
    return min(times, key=lambda block: times[block].least)


def measured(case: Case, *, quick: bool) -> Found:
    """Measure one case."""
    rows = ROWS.get(case.dim, MOST_ROWS) // (4 if quick else 1)
    stream = measure.synth(rows, case.dim, alpha=1.0, seed=case.dim)
    best = best_block(stream, quick=quick)
    taken: dict[str, list[float]] = {}
    bases = {}

    def run(name: str, make: Callable[[], rivals.Rival], block: int) -> None:
        def keep(part: measure.Array) -> None:
            bases[name] = learnt(make, part, block)

        taken.setdefault(name, []).append(measure.clocked(keep, lambda: (stream.copy(),)) / rows)

    turns = 3 if quick or case.dim > 1000 else 5 if case.dim in ROWS else 9
    field = makers(case, best)
    for _, name in measure.progress(
        [(turn, name) for turn in range(turns) for name in field],
        f"blocks: d={case.dim}",
    ):
        run(name, *field[name])
    optimum = measure.tails(stream)[RANK]
    excess = {
        name: max(0.0, measure.residual(stream, basis) / optimum - 1)
        for name, basis in bases.items()
    }
    each = zip(taken["ours"], taken["at 500"], taken["at best"], strict=True)
    ratios = [(at_500 / ours, at_best / ours) for ours, at_500, at_best in each]
    middle = {name: statistics.median(times) for name, times in taken.items()}
    return Found(case, best, middle, *map(statistics.median, zip(*ratios, strict=True)), excess)


def table(results: list[Found]) -> Table:
    """Show the ratios beside what is asked."""
    rows = []
    for case, best, times, ratio, ratio_at_best, excess in results:
        enough = ratio >= (case.asked or 0.0) and ratio_at_best >= (case.asked_at_best or 0.0)
        met = enough and excess["ours"] <= min(excess["at 500"], excess["at best"])
        rows.append(
            (
                case.dim,
                case.ours,
                *(times[name] * 1e6 for name in ("ours", "at 500", "at best")),
                best,
                ratio,
                case.asked,
                ratio_at_best,
                case.asked_at_best,
                None if case.asked is None else "yes" if met else "NO",
                *(excess[name] for name in ("ours", "at 500", "at best")),
            )
        )
    return Table(
        f"scikit-learn's IncrementalPCA / submerge in calls of {CALL}, r = {RANK}",
        {
            "d": "d",
            "ours": "",
            "µs/row": ".2f",
            "its, at 500": ".2f",
            "its, at best": ".2f",
            "best block": "d",
            "times faster, 500": ".1f",
            "asked": ".1f",
            "times faster, best": ".1f",
            "asked there": ".1f",
            "met": "",
            "excess": ".0e",
            "its, 500": ".0e",
            "its, best": ".0e",
        },
        rows,
        "Met means both ratios, and no larger error than scikit-learn's in either.",
    )


def room(quick: bool) -> list[Table]:
    """Measure all cases; `quick` leaves out d = 10000."""
    cases = [case for case in CASES if not quick or case.dim <= 1000]
    return [table([measured(case, quick=quick) for case in cases])]


if __name__ == "__main__":
    command(room)
