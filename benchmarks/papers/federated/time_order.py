"""Figure 8: does the order of rows matter? Errors of |U| after permutations, over alpha and rank.

The paper (C.5) and `test_time_order.m`: Synth(alpha), d = 100, n = 10,000, blocks of 50, r = 5 (a),
20 (b), 50 (c) and 75 (d). The text names no alphas; the script has those of singular values from
1e-5 to 4, here they are of eigenvalues. Rows are permuted twenty times. The error is the mean
square of |U| - |V|, where V is the method's own result on rows in their first order, or offline
PCA, to which order is nothing. Curves are means over permutations, bars one standard deviation.

All permutations are really used. In the script Frequent Directions get the rows in their first
order each time, so that its own error is exactly zero there. For time, GROUSE and Frequent
Directions have five permutations at r = 20 and above, SPCA at 50 and 75, where they differ least;
SPIRIT, which chooses its rank, runs at r = 5 alone. GROUSE begins each time with the same random
basis and moves little from it: it is near to itself, and far from offline PCA. For small alpha the
directions have nearly one variance, and |U| tells more about that than about order. Submerge is
exact at 100 columns, and equal to itself to rounding.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import measure
from contest.trial import learnt
from papers.federated.follow import ROUNDING, Array, absolute_mse
from papers.federated.methods import MEASURED, OURS, Make, rivals, spca, submerge, whose
from papers.federated.streams import synth
from papers.frame import Curve, Figure, Panel, about, command
from report import Table

ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 2.0, 3.0, 4.0)
LETTERS = {5: "a", 20: "b", 50: "c", 75: "d"}
RANKS = tuple(LETTERS)
BLOCK, CALL, FORGETTING = 50, 500, 0.9
OWN, OFFLINE = "against its own, unpermuted", "against offline PCA"

Errors = dict[str, dict[str, Array]]
"""By measure and method: an error for each permutation."""


def figure(quick: bool) -> Figure:
    """Measure every rank and alpha."""
    alphas, ranks = ((1e-4, 0.1, 2.0), (5, 20)) if quick else (ALPHAS, RANKS)
    n, dim = (600, 40) if quick else (10_000, 100)
    steps = [(rank, alpha) for rank in ranks for alpha in alphas]
    found = {
        (rank, alpha): errors(synth(alpha, n=n, dim=dim, seed=0), rank, most=3 if quick else 20)
        for rank, alpha in measure.progress(steps, "federated: time order")
    }
    panels = [
        _panel(rank, what, {alpha: found[rank, alpha][what] for alpha in alphas})
        for rank in ranks
        for what in (OWN, OFFLINE)
    ]
    tables = [_table(OWN, found, about(__doc__)), _table(OFFLINE, found)]
    return Figure(
        "federated/time_order",
        "Grammenos et al., arXiv:1907.08059v1: Figure 8",
        "Errors of abs U after permutations of the rows, over alpha, for four ranks.",
        f"Synth(alpha), generated: eigenvalues i^-alpha, {n} rows of {dim} columns",
        (*MEASURED, "benchmarks/papers/federated/time_order.py"),
        panels,
        tables,
    )


def makers(rank: int, dim: int) -> dict[str, Make]:
    """Return all methods at a rank; SPIRIT at the least rank alone."""
    found: dict[str, Make] = {
        OURS: lambda: submerge(rank),
        "SPCA": lambda: spca(rank, max(BLOCK, rank)),
        **rivals(rank, dim, forgetting=FORGETTING),
    }
    if rank != RANKS[0]:
        del found["SPIRIT"]
    return found


def repeats(method: str, rank: int, most: int) -> int:
    """Return how many permutations a method gets: slow ones get fewer."""
    is_slow = (method in ("GROUSE", "FD") and rank > 5) or (method == "SPCA" and rank >= 50)
    return min(5, most) if is_slow else most


def permuted(X: Array, count: int) -> Iterator[Array]:
    """Yield the rows in other orders, each of them seeded."""
    for seed in range(count):
        yield X[np.random.default_rng([seed, len(X)]).permutation(len(X))]


def errors(X: Array, rank: int, *, most: int) -> Errors:
    """Return each method's errors after permutations, against its own result and offline PCA."""
    # Of the rows, not of X'X: its rounding would hide the last directions of a steep spectrum.
    true = np.linalg.svd(X, full_matrices=False)[2][:rank].T
    found: Errors = {OWN: {}, OFFLINE: {}}
    for method, make in makers(rank, X.shape[1]).items():
        first = learnt(make(), X.copy(), CALL)
        others = [learnt(make(), Y, CALL) for Y in permuted(X, repeats(method, rank, most))]
        for what, reference in ((OWN, first), (OFFLINE, true)):
            found[what][method] = np.array([absolute_mse(each, reference) for each in others])
    return found


def _panel(rank: int, what: str, by_alpha: dict[float, dict[str, Array]]) -> Panel:
    curves, x = [], [float(i + 1) for i in range(len(by_alpha))]
    for method in next(iter(by_alpha.values())):
        means = [float(each[method].mean()) for each in by_alpha.values()]
        spread = [float(each[method].std()) for each in by_alpha.values()]
        # On a log axis a bar that ends at or below zero has no lower end.
        low = [max(mean - by, mean / 10) for mean, by in zip(means, spread, strict=True)]
        high = [mean + by for mean, by in zip(means, spread, strict=True)]
        curves.append(Curve(method, x, means, low, high, whose=whose(method)))
    title = f"8 {LETTERS[rank]}: r = {rank}, {what}"
    panel = Panel(title, "alpha", "error of abs U", curves, log_y=True, tabled=False)
    return replace(panel, x_names=[f"{alpha:g}" for alpha in by_alpha], least=ROUNDING)


def _table(what: str, found: dict[tuple[int, float], Errors], notes: str = "") -> Table:
    alphas = list(dict.fromkeys(alpha for _, alpha in found))
    rows = []
    for rank in dict.fromkeys(rank for rank, _ in found):
        for method, first in found[rank, alphas[0]][what].items():
            means = [float(found[rank, alpha][what][method].mean()) for alpha in alphas]
            rows.append((rank, method, len(first), *means))
    columns = {"r": "d", "method": "", "permutations": "d"}
    columns |= {f"alpha {alpha:g}": ".2g" for alpha in alphas}
    return Table(f"Mean error of abs U {what}", columns, rows, notes)


if __name__ == "__main__":
    command(figure)
