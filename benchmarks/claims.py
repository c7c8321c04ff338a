"""Claims of *Federated PCA with Adaptive Rank Estimation* that do not hold, each with a number.

The method is sound, and this project is built on it. Some statements of the paper are true only
where no direction is ever truncated. GROUSE, with the step of its published code, never moves on
rows like these: every step is over a quarter turn, and is left out. The reference error of 14.8
times the optimum, measured with the centre paper's code, is that of a random subspace.

Rows are Light's, as the paper's scripts prepare them: 7700 rows of 48 motes, the stream's mean
removed first, r = 10, blocks of 50, no spare directions.
"""

import gzip

import numpy as np

import measure
from contest.trackers.grouse import Grouse
from contest.trial import learnt, residual, tails
from page import page
from report import Table
from submerge import SAPCA, SapcaRank

RANK, BLOCK = 10, 50


class RawGrouse(Grouse):
    """GROUSE with the step of its published code, on rows that are not brought to length 1."""

    def _length(self, row: np.ndarray) -> float:
        return 1.0


def light() -> np.ndarray | None:
    """Return Light as the paper's scripts prepare it; None where it is not here."""
    if not measure.LIGHT.exists():
        measure.say(f"claims: no {measure.LIGHT}: nothing to measure (set SUBMERGE_DATA)")
        return None
    with gzip.open(measure.LIGHT, "rt") as file:
        X = np.loadtxt(file)
    return (X - X.mean(axis=0))[:7700]


def spca(**options: object) -> SAPCA:
    """Return the paper's SPCA, not yet fed."""
    return SAPCA(RANK, block_size=BLOCK, center=False, exact="never", oversample=0, **options)


def room(quick: bool) -> list[Table]:
    """Measure all claims."""
    Y = light()
    if Y is None:
        return []
    n, best = len(Y), tails(Y)
    found = spca().partial_fit(Y).shown
    error = residual(Y, found.basis) / n
    rows: list[tuple[str, str, float]] = [
        ("Lemma 2.1", "rho_r, which the error is said not to exceed", best[RANK] / n),
        ("Lemma 2.1", "error of SPCA", error),
        ("Lemma 2.1", "its certificate, energy - sum of sigma^2", found.frobenius_bound / n),
    ]
    rng = np.random.default_rng(0)
    errors = []
    for _ in measure.progress(range(3 if quick else 20), "claims: permutations"):
        mixed = Y[rng.permutation(n)]
        errors.append(residual(Y, spca().partial_fit(mixed).shown.basis) / best[RANK])
    rows += [
        ("Lemma 2.2", "in the order of time, over the optimum", error * n / best[RANK]),
        ("Lemma 2.2", f"least of {len(errors)} permutations", min(errors)),
        ("Lemma 2.2", f"largest of {len(errors)} permutations", max(errors)),
    ]
    grown = SAPCA(
        SapcaRank(RANK), block_size=BLOCK, center=False, exact="never", oversample=0
    ).partial_fit(np.random.default_rng(1).standard_normal((4000, 48)))
    rows.append(("rank rule", "rank after white noise, which has no gap", grown.shown.rank))
    rows += [("lambda", *figure) for figure in _fading(Y)]
    for seed in range(2 if quick else 4):
        raw = learnt(RawGrouse(RANK, seed=seed), Y.copy(), BLOCK)
        still = np.linalg.qr(np.random.default_rng(seed).standard_normal((48, RANK)))[0]
        over = [residual(Y, basis) / best[RANK] for basis in (raw, still)]
        rows.append(("GROUSE", f"raw rows, over the optimum, seed {seed}", over[0]))
        rows.append(("GROUSE", "its first basis, never moved", over[1]))
    own = residual(Y, learnt(Grouse(RANK), Y.copy(), BLOCK)) / best[RANK]
    rows.append(("GROUSE", "rows of length 1, over the optimum", own))
    return [Table("Claims", {"claim": "", "what": "", "is": ".6g"}, rows)]


def _fading(Y: np.ndarray) -> list[tuple[str, float]]:
    """Return the largest sigma with the paper's lambda = .9, in two forms."""
    per_row = spca(forgetting_factor=0.9 ** (2 / BLOCK)).partial_fit(Y).shown.sigma[0]
    engine = spca()
    for first in range(0, len(Y), BLOCK):
        engine.fade(0.9**2)
        engine.partial_fit(Y[first : first + BLOCK])
    per_block = engine.shown.sigma[0]
    return [
        ("sigma_1 with fade(lambda^2) before each block of 50, as the paper's stream", per_block),
        ("sigma_1 with forgetting_factor = lambda^(2/50), row by row", per_row),
        ("the second over the first", per_row / per_block),
    ]


if __name__ == "__main__":
    page(room)
