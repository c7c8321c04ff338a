"""How near the low-rank path comes to the machine's ceiling, and where its time goes.

A block takes d (k+b)^2 + 2 d (k+b) k + 3 d k^2 flops, for the Gram matrix, the basis and the
Cholesky step (skipped where the basis does not need it). The eigenproblem of size k + b, or the
steps that replace it, is not counted, so that its cost shows as distance from the peak. The peak
is the speed of a 1500 x 1500 dgemm, measured just before. Time is processor time.
"""

import cProfile
import pstats
from pathlib import Path

import numpy as np

import measure
from report import Table, command
from submerge import SAPCA, Schema

CASES = ((400, 10, 20_000), (1000, 10, 12_000), (10_000, 10, 2_700), (1000, 50, 6_000))
MEANING = {
    "inner": "Gram matrix",
    "of_gram": "centering and weighing the Gram matrix",
    "multiply": "product for the basis",
    "eigh": "eigenproblem, of size k + b or of the steps' vectors",
    "certified": "steps towards the eigenvectors",
    "_start": "steps: where they begin",
    "_proven": "steps: certificate",
    "qr": "steps: orthonormal vectors",
    "channel_energies": "energies of the channels",
    "write": "centering into the buffer",
    "cholesky": "Cholesky step, and the certificate's factorisation",
    "_learn": "centering into the buffer",
    "check_values": "checking the values",
    "_digest": "block mean, weights, small products",
    "leading": "choosing and scaling",
}
SHOWN = 7


def peak_flops() -> float:
    """Return the flop/s of a large dgemm, now."""
    A = np.random.default_rng(0).standard_normal((1500, 1500))
    timing = measure.repeated(lambda: measure.clocked(np.matmul, lambda: (A, A)), budget_s=1.0)
    return 2 * 1500**3 / timing.least


def flops(dim: int, k: int, b: int) -> float:
    """Return the flops of a block, the eigenproblem aside."""
    return dim * (k + b) ** 2 + 2 * dim * (k + b) * k + 3 * dim * k**2


def low_rank(rank: int, dim: int) -> SAPCA:
    """Return an engine on the low-rank path that knows its block size, and has learnt no row."""
    schema = Schema.anonymous(dim)
    return SAPCA(rank, exact="never", schema=schema)


def learn(engine: SAPCA, X: measure.Array) -> None:
    """Pass a stream on, a block a call."""
    for first in range(0, len(X), engine.block_size):
        engine.partial_fit(X[first : first + engine.block_size])


def seconds_per_row(X: measure.Array, rank: int) -> float:
    """Return the least seconds a row of a few passes, from a warm engine."""
    engine = low_rank(rank, X.shape[1])

    def run() -> float:
        start = measure.seconds()
        learn(engine, X)
        return (measure.seconds() - start) / len(X)

    return min(run() for _ in range(4))


def shares(X: measure.Array, rank: int) -> dict[str, float]:
    """Return the share of time of each function's own lines, the largest first.

    A profile sees no operators: a product by `@` counts for the function it stands in,
    which is what we want to know. Its own cost is some 10 % at dim = 400.
    """
    engine = low_rank(rank, X.shape[1]).partial_fit(X[:1000])
    profile = cProfile.Profile(measure.seconds)
    profile.runcall(learn, engine, X)
    own: dict[str, float] = {}
    for (file, _, name), (_, _, spent, _, _) in pstats.Stats(profile).stats.items():
        label = name if "submerge" in Path(file).parts or "linalg" in file else "everything else"
        own[label] = own.get(label, 0.0) + spent
    total = sum(own.values())
    return {name: spent / total for name, spent in sorted(own.items(), key=lambda item: -item[1])}


def room(quick: bool) -> list[Table]:
    """Measure the cases at the default block size; `quick` leaves out dim = 10000."""
    reached, spent = [], []
    for dim, rank, rows in measure.progress(CASES, "ceiling"):
        if quick and dim > 1000:
            continue
        X = measure.synth(rows // 4 if quick else rows, dim, alpha=1.0, seed=dim)
        engine = low_rank(rank, dim)
        b, k = engine.block_size, rank + engine.oversample
        peak, seconds = peak_flops(), seconds_per_row(X, rank)
        rate = flops(dim, k, b) / b / seconds
        reached.append((dim, rank, b, seconds * 1e6, rate / 1e9, peak / 1e9, rate / peak))
        for name, share in list(shares(X, rank).items())[:SHOWN]:
            spent.append((dim, rank, name, MEANING.get(name), share, share * seconds * 1e6))
    return [
        Table(
            "Flops reached by the low-rank path",
            {
                "d": "d",
                "r": "d",
                "block": "d",
                "µs/row": ".2f",
                "GFLOP/s": ".1f",
                "dgemm": ".1f",
                "of the peak": ".0%",
            },
            reached,
        ),
        Table(
            "Where the time goes",
            {"d": "d", "r": "d", "function": "", "what": "", "share": ".0%", "µs/row": ".2f"},
            spent,
            "Times are each function's own, with products by `@`; functions that are not listed"
            " take less.",
        ),
    ]


if __name__ == "__main__":
    command(room)
