"""Time, memory and error of learning a stream, for submerge and other libraries.

Each contender runs at the block size at which it is fastest, which is found first on a part of
the stream. Time is processor time, of all rows, first block to last, with one reading of the
basis. Memory is the contender's own, by tracemalloc (NumPy's arrays, without LAPACK's work space).
Excess is ||Y - UU'Y||^2 divided by the optimum at that rank, minus 1, for the whole stream.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import measure
import rivals
from contest.trackers.running_scatter import RunningScatter
from report import Table, command

BLOCKS = (20, 30, 33, 45, 60, 80, 100, 150, 200, 300, 400, 500)
ROWS = {48: 40_000, 400: 20_000, 1000: 12_000, 10_000: 2_000}
CALL = 50  # rows of a call where submerge chooses its own block
SEARCHED = 600  # rows, at least, of the search for a block size; and three blocks
CASES = ((48, 10), (400, 10), (1000, 10), (10_000, 10), (400, 50), (1000, 50), (10_000, 50))

OURS, OURS_LOW = "submerge", 'submerge, exact="never"'
SCATTER = "running scatter"
LIFTED = "submerge, budget lifted"
PLAIN, PLAIN_LOW = "submerge, oversample=0", 'submerge, oversample=0, exact="never"'
SKLEARN, ALGORITHM3 = "scikit-learn IncrementalPCA", "Algorithm 3 to the letter"
GENSIM, GENSIM_GRAM = "gensim merge, blocks by svd", "gensim merge, blocks by Gram"
BATCH = "numpy.linalg.svd of all rows"
OF_ALL_ROWS: dict[str, Callable[[int], rivals.Rival]] = {
    BATCH: rivals.Batch,
    "scikit-learn PCA, covariance_eigh": partial(
        rivals.OfAllRows, components=rivals.covariance_eigh
    ),
    "fbpca": partial(rivals.OfAllRows, components=rivals.by_fbpca),
    "faiss PCAMatrix": partial(rivals.OfAllRows, components=rivals.by_faiss),
}
"""They hold all rows, and stand here for what that buys."""

BY_COVARIANCE = ("scikit-learn PCA, covariance_eigh", "faiss PCAMatrix")
MATRIX_MOST = 1000
"""Two of them also keep a d x d matrix, and decompose it: 800 MB and minutes at d = 10,000, where
they are left out."""

ASKED: tuple[tuple[str, str, int, dict[int, float]], ...] = (
    (SKLEARN, OURS, 10, {48: 5.0, 400: 3.5, 1000: 5.0, 10_000: 9.0}),
    (GENSIM, OURS, 10, dict.fromkeys(ROWS, 2.0)),
    (GENSIM_GRAM, OURS, 10, dict.fromkeys(ROWS, 2.0)),
    (ALGORITHM3, PLAIN, 10, {48: 1.7}),
    (ALGORITHM3, PLAIN_LOW, 10, dict.fromkeys((400, 1000, 10_000), 1.7)),
    (ALGORITHM3, OURS, 10, dict.fromkeys(ROWS, 1.3)),
    (SKLEARN, OURS, 50, dict.fromkeys((400, 1000, 10_000), 3.0)),
)
"""Peer, ours, rank, and by dim how many times faster ours is asked to be."""


class Contender(NamedTuple):
    """How to make one for a block size, and the sizes that it may choose from."""

    make: Callable[[int], rivals.Rival]
    blocks: tuple[int, ...]


class Result(NamedTuple):
    """One contender on one stream: rows in a block, seconds a row, bytes, excess."""

    block: int
    time: measure.Timing
    peak: int
    excess: float


def contenders(dim: int, rank: int) -> dict[str, Contender]:
    """Return who runs, batch aside."""
    blocks = tuple(block for block in BLOCKS if block >= rank)

    def ours(**options: object) -> Callable[[int], rivals.Rival]:
        return lambda block: rivals.Submerge(rank, block, **options)

    # The default keeps the scatter to some 200 columns, and a few more with smaller blocks.
    others = {}
    if dim <= 200:
        others[OURS_LOW] = Contender(ours(exact="never"), blocks)
        others[PLAIN_LOW] = Contender(ours(exact="never", oversample=0), blocks)
    elif dim <= 1000:
        others[LIFTED] = Contender(ours(**rivals.LIFTED), blocks)
    if dim <= MATRIX_MOST:
        others[SCATTER] = Contender(lambda _: RunningScatter(rank), blocks)
    return {
        OURS: Contender(ours(), blocks),
        f"{OURS}, calls of {CALL}": Contender(lambda _: rivals.Submerge(rank), (CALL,)),
        PLAIN: Contender(ours(oversample=0), blocks),
        **others,
        SKLEARN: Contender(lambda _: rivals.ScikitLearn(rank), blocks),
        GENSIM: Contender(lambda _: rivals.Gensim(rank, by_gram=False), blocks),
        GENSIM_GRAM: Contender(lambda _: rivals.Gensim(rank, by_gram=True), blocks),
        ALGORITHM3: Contender(lambda _: rivals.Algorithm3(rank), blocks),
    }


def fed(contender: Contender, rows: measure.Array, block: int) -> rivals.Rival:
    """Make a contender and let it learn rows, which it may overwrite."""
    engine = contender.make(block)
    for first in range(0, len(rows), block):
        engine.partial_fit(rows[first : first + block])
    return engine


def best_block(contender: Contender, stream: measure.Array, *, budget_s: float) -> int:
    """Return the block size at which a contender learns fastest."""
    if len(contender.blocks) == 1:
        return contender.blocks[0]

    def least(block: int) -> float:
        rows = stream[: max(SEARCHED, 3 * block)]
        once = partial(measure.clocked, fed, lambda: (contender, rows.copy(), block))
        # The first pass pays for what is loaded when asked for.
        once()
        return measure.repeated(once, budget_s=budget_s).least / len(rows)

    return min(contender.blocks, key=least)


def measured(dim: int, rank: int, *, rows: int, quick: bool) -> dict[str, Result]:
    """Measure every contender on one stream."""
    where = f"speed: d={dim}, r={rank}"
    Y = measure.synth(rows, dim, alpha=1.0, seed=dim)
    optimum = measure.tails(Y)[rank]
    field = contenders(dim, rank)
    blocks = {
        name: best_block(contender, Y, budget_s=0.01 if quick else 0.1)
        for name, contender in measure.progress(field.items(), f"{where}, blocks")
    }
    bases: dict[str, measure.Array] = {}

    def learn(name: str, stream: measure.Array) -> None:
        bases[name] = fed(field[name], stream, blocks[name]).basis()

    def run(name: str) -> float:
        return measure.clocked(learn, lambda: (name, Y.copy())) / rows

    repeats = 2 if quick else 5 if rank == 10 else 3
    times = measure.interleaved(
        {name: partial(run, name) for name in field}, repeats, label=f"{where}, times"
    )
    if rank == 10:
        # Once: they take long, and most as long for any rank.
        all_rows = {
            name: make
            for name, make in OF_ALL_ROWS.items()
            if dim <= MATRIX_MOST or name not in BY_COVARIANCE
        }
        for name, make in all_rows.items():
            field[name] = Contender(lambda _, make=make: make(rank), (rows,))
            blocks[name] = rows
        batch = {name: partial(run, name) for name in all_rows}
        times |= measure.interleaved(batch, 1, label=f"{where}, all rows")
    # Below zero only by rounding.
    excess = {
        name: max(0.0, measure.residual(Y, basis) / optimum - 1) for name, basis in bases.items()
    }
    # A stream's memory is at its peak after a few blocks; reading belongs to it.
    maxima = {
        name: measure.peak_bytes(partial(learn, name, Y[: 4 * blocks[name]].copy()))
        for name in field
    }
    return {name: Result(blocks[name], times[name], maxima[name], excess[name]) for name in field}


def table(dim: int, rank: int, rows: int, results: dict[str, Result]) -> Table:
    """Show the results on one stream."""
    ours = results[OURS].time.least
    return Table(
        f"d = {dim}, r = {rank}, {rows} rows",
        {
            "contender": "",
            "block": "d",
            "µs/row, least": ".2f",
            "median": ".2f",
            "times submerge's": ".2f",
            "peak kB": ".0f",
            "excess error": ".1e",
        },
        [
            (
                name,
                result.block,
                result.time.least * 1e6,
                result.time.median * 1e6,
                result.time.least / ours,
                result.peak / 1e3,
                result.excess,
            )
            for name, result in results.items()
        ],
    )


def asked(all_results: dict[tuple[int, int], dict[str, Result]]) -> Table:
    """Put what was asked for beside what was measured."""
    rows = []
    for peer, name, rank, factors in ASKED:
        for dim, factor in factors.items():
            results = all_results.get((dim, rank))
            if results is None:
                continue
            ours = results.get(name, results[name.removesuffix(', exact="never"')])
            times = results[peer].time.least / ours.time.least
            rows.append(
                (
                    f"{peer} / {name}",
                    dim,
                    rank,
                    times,
                    factor,
                    "yes" if times >= factor else "NO",
                    results[peer].excess,
                    ours.excess,
                )
            )
    return Table(
        "Asked for",
        {
            "peer / ours": "",
            "d": "d",
            "r": "d",
            "times faster": ".2f",
            "asked": ".1f",
            "met": "",
            "peer's excess": ".1e",
            "ours": ".1e",
        },
        rows,
        "Times are the shortest, for each contender at its own best block, where errors differ."
        " With oversample=0 and one block size, submerge equals Algorithm 3 to rounding"
        " (tests/core/pca/test_sapca.py). gensim by Gram is gensim with the Gram matrix of"
        " submerge's own kernel.",
    )


def room(quick: bool) -> list[Table]:
    """Measure all cases; `quick` takes the smaller dims, fewer rows, and repeats less."""
    results, tables = {}, []
    for dim, rank in CASES:
        if quick and dim > 1000:
            continue
        rows = 2_000 if quick else ROWS[dim]
        results[dim, rank] = measured(dim, rank, rows=rows, quick=quick)
        tables.append(table(dim, rank, rows, results[dim, rank]))
    return [*tables, asked(results)]


if __name__ == "__main__":
    command(room)
