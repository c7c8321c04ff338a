"""Figure 1 e: errors over alpha on Synth(alpha): of the subspace, of the rows, and time.

The authors' `test_sapca_synthetic.m`: d = 400, n = 4000, seed rank 10, blocks of 50, five
simulations; SPIRIT forgets nothing (lambda 1), and the power method takes blocks of 400. Curves are
means, bars the least and the most of the simulations. The error of the subspace is the mean square
of |U| - |V|, V the offline directions. For small alpha all directions have nearly one variance:
offline PCA of other rows of the same kind would be as far from V as the methods are.

The script holds SAPCA's rank off for .9. It counts blocks, and the count is one at the first test
after a change: .9 never holds anything, and here nothing is held. Its error for SPCA hi is that of
U U' instead of |U|; here all methods have one measure. It divides rows by sqrt(n - 1), which SPIRIT
alone notices: its energies at first are then more than such rows bring in the whole stream. Here
rows are not divided, and errors per row are n - 1 times the script's. Time is of learning alone:
the rivals' loops over rows are Python here, so that it compares programs, not methods.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import measure
from contest.streams import ALPHAS
from papers.federated.follow import ROUNDING, absolute_mse, offline, over_optimum
from papers.federated.methods import MEASURED, compared, whose
from papers.federated.streams import synth
from papers.frame import Curve, Figure, Panel, about, command
from report import Table

RANK, BLOCK, FORGETTING = 10, 50, 1.0
SUBSPACE, ERROR, OVER = "error of abs U", "error per row", "over the optimum of its rank"
SECONDS = "processor seconds"
SHOWN = {SUBSPACE: ".3g", ERROR: ".3g", OVER: ".4f", SECONDS: ".3f"}
"""What is shown, and how a table prints it."""


def figure(quick: bool) -> Figure:
    """Measure every alpha."""
    alphas = ALPHAS[2:5] if quick else ALPHAS
    n, dim, simulations = (600, 100, 2) if quick else (4000, 400, 5)
    found: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    steps = [(alpha, seed) for alpha in alphas for seed in range(simulations)]
    for alpha, seed in measure.progress(steps, "federated: Synth over alpha"):
        for what, method, value in measured(alpha, n=n, dim=dim, seed=seed):
            found[what, method, alpha].append(value)
    methods = list(dict.fromkeys(method for _, method, _ in found))
    names = [f"{alpha:g}" for alpha in alphas]
    panels, tables = [], []
    for what in SHOWN:
        of = {method: [found[what, method, alpha] for alpha in alphas] for method in methods}
        curves = [mean_curve(method, values) for method, values in of.items()]
        least = ROUNDING if what == SUBSPACE else 0.0
        panel = Panel("Synth(alpha)", "alpha", what, curves, log_y=True, tabled=False)
        panels.append(replace(panel, x_names=names, least=least))
        tables.append(_table(what, of, alphas, notes="" if tables else about(__doc__)))
    ranks = {method: [found["rank", method, alpha] for alpha in alphas] for method in methods}
    return Figure(
        "federated/synth",
        "Grammenos et al., arXiv:1907.08059v1: Figure 1 e, and the same script's errors of rows"
        " and times over alpha (`test_sapca_synthetic.m`)",
        "Errors over alpha on Synth: subspace, rows, and over the optimum of the same rank.",
        f"Synth(alpha), generated: singular values i^-alpha, {n} rows of {dim} columns,"
        f" {simulations} simulations",
        (*MEASURED, "benchmarks/papers/federated/synth.py"),
        panels,
        [*tables, _ranks(ranks, alphas)],
    )


def measured(alpha: float, *, n: int, dim: int, seed: int) -> list[tuple[str, str, float]]:
    """Return figures of one simulation: what is measured, the method, and the value.

    A method at full rank has no error over the optimum.
    """
    X = synth(alpha, n=n, dim=dim, seed=seed)
    tail, true, figures = measure.tails(X), offline(X), []
    for method, each in compared(RANK, X, BLOCK, forgetting=FORGETTING).items():
        values = {
            SUBSPACE: absolute_mse(each.basis, true),
            ERROR: each.errors[-1],
            OVER: over_optimum(each, tail),
            SECONDS: each.seconds,
            "rank": float(each.ranks[-1]),
        }
        figures += [(what, method, value) for what, value in values.items() if value is not None]
    return figures


def mean_curve(method: str, values: list[list[float]]) -> Curve:
    """Return means over simulations, with bars, for each alpha that has a value."""
    there = [i for i, each in enumerate(values) if each]
    means, low, high = ([float(of(values[i])) for i in there] for of in (np.mean, np.min, np.max))
    return Curve(method, [float(i + 1) for i in there], means, low, high, whose=whose(method))


def _table(
    what: str, of: dict[str, list[list[float]]], alphas: Sequence[float], *, notes: str
) -> Table:
    rows = [
        (method, *(float(np.mean(each)) if each else None for each in values))
        for method, values in of.items()
    ]
    columns = {"method": ""} | {f"alpha {alpha:g}": SHOWN[what] for alpha in alphas}
    return Table(f"{what[0].upper()}{what[1:]}, mean", columns, rows, notes)


def _ranks(of: dict[str, list[list[float]]], alphas: Sequence[float]) -> Table:
    rows = [
        (method, *(f"{min(each):.0f} to {max(each):.0f}" for each in values))
        for method, values in of.items()
    ]
    columns = {"method": ""} | {f"alpha {alpha:g}": "" for alpha in alphas}
    return Table("Rank at the end, over the simulations", columns, rows)


if __name__ == "__main__":
    command(figure)
