"""Error over the optimum: the paper's Light stream and its Synth(alpha).

Error is ||Y - UU'Y||_F^2 / n of the final subspace. Light is read from SUBMERGE_DATA
(or ../shared/data beside the repository): 7700 rows, the stream's mean removed first,
as the paper's scripts do. The reference figures were measured with the authors' code.
"""

import gzip
from collections.abc import Callable

import numpy as np

import measure
import rivals
from report import Table, command
from submerge import SAPCA, SapcaRank

ALPHAS = {1e-4: 1.005, 1e-3: 1.006, 0.5: 1.004, 1.0: 1.003, 2.0: 1.005, 3.0: 1.001}
"""Synth's exponents, and the reference for oversample=0, over the optimum."""


def engine(rank: int | SapcaRank = 10, *, block: int = 50, **options: object) -> Callable:
    """Return what learns a stream with SAPCA: basis and the bound that it reports."""

    def learn(Y: measure.Array) -> tuple[measure.Array, float]:
        learnt = SAPCA(rank, block_size=block, center=False, **options).partial_fit(Y)
        return learnt.shown.basis, learnt.shown.frobenius_bound

    return learn


def peer(make: Callable[[], rivals.Rival], *, block: int = 50) -> Callable:
    """Return what learns a stream with a rival: basis, and no bound."""

    def learn(Y: measure.Array) -> tuple[measure.Array, None]:
        rival, rows = make(), Y.copy()
        for first in range(0, len(rows), block):
            rival.partial_fit(rows[first : first + block])
        return rival.basis(), None

    return learn


LIGHT_METHODS: dict[str, tuple[Callable, float | None]] = {
    "offline SVD": (peer(lambda: rivals.Batch(10)), 1.0),
    "submerge": (engine(), None),
    'submerge, exact="never"': (engine(exact="never"), 1.005),
    "SPCA: oversample=0": (engine(exact="never", oversample=0), 1.058),
    "SAPCA, seed 10, b=50": (engine(SapcaRank(10), exact="never", oversample=0), 1.039),
    "SAPCA, seed 10, b=20": (engine(SapcaRank(10), block=20, exact="never", oversample=0), 1.035),
    "Algorithm 3 to the letter": (peer(lambda: rivals.Algorithm3(10)), 1.058),
    "scikit-learn IncrementalPCA": (peer(lambda: rivals.ScikitLearn(10)), None),
    "gensim merge": (peer(lambda: rivals.Gensim(10, by_gram=False)), None),
}
"""Method, and its error over the optimum in the reference."""


def on_light() -> list[Table]:
    """Measure everyone on Light; nothing, with a line that says so, if it is not here."""
    if not measure.LIGHT.exists():
        measure.say(f"accuracy: no {measure.LIGHT}: Light left out (set SUBMERGE_DATA)")
        return []
    with gzip.open(measure.LIGHT, "rt") as file:
        X = np.loadtxt(file)
    Y = (X - X.mean(axis=0))[:7700]
    n, tails = len(Y), measure.tails(Y)
    _, _, right = np.linalg.svd(Y, full_matrices=False)
    rows = []
    for name, (learn, reference) in measure.progress(LIGHT_METHODS.items(), "accuracy: Light"):
        basis, bound = learn(Y)
        rank, error = basis.shape[1], measure.residual(Y, basis)
        angle = measure.degrees(right[:rank].T, basis)
        reported = None if bound is None else bound / n
        rows.append((name, rank, error / n, reported, error / tails[rank], reference, angle))
    return [
        Table(
            "Light, 7700 x 48, blocks of 50",
            {
                "method": "",
                "rank": "d",
                "error": ".4g",
                "its own bound": ".4g",
                "over the optimum": ".4f",
                "reference": ".3f",
                "largest angle": ".2f",
            },
            rows,
            "The bound is (energy - sum of sigma^2) / n, from the subspace alone; the angle, in"
            " degrees, is to the offline subspace of the same rank. gensim drops directions that"
            " hold less than 0.1 % of the energy: its rank is its own choice.",
        )
    ]


def on_synth(quick: bool) -> Table:
    """Measure ours on Synth, a mean and the worst over a few seeds."""
    rows = []
    for alpha, reference in measure.progress(ALPHAS.items(), "accuracy: Synth"):
        over: dict[int, list[float]] = {0: [], 5: []}
        for seed in range(1 if quick else 5):
            Y = measure.synth(4000, 400, alpha=alpha, seed=seed)
            optimum = measure.tails(Y)[10]
            for spare, found in over.items():
                basis, _ = engine(oversample=spare)(Y)
                found.append(measure.residual(Y, basis) / optimum)
        figures = [statistic(found) for found in over.values() for statistic in (np.mean, max)]
        rows.append((alpha, *figures[:2], reference, *figures[2:]))
    return Table(
        "Synth(alpha): d = 400, n = 4000, r = 10, blocks of 50, over the optimum",
        {
            "alpha": "g",
            "oversample=0": ".4f",
            "worst": ".4f",
            "reference": ".3f",
            "submerge": ".5f",
            "its worst": ".5f",
        },
        rows,
        "Mean and worst of five seeds (one, with --quick).",
    )


def room(quick: bool) -> list[Table]:
    """Measure both."""
    return [*on_light(), on_synth(quick)]


if __name__ == "__main__":
    command(room)
