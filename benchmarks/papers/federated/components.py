"""SAPCA beside SPIRIT on Synth(alpha): number of components, relative error and error over time.

The authors' `test_sapca_synthetic.m` draws these for each alpha; figures 3 to 7 of the paper's
appendix are among them, but which alpha has which number is not known here. d = 400, n = 4000, seed
rank 10, blocks of 50, SPIRIT with lambda 1 and 95 to 98 % of the energy. Curves are means of five
simulations.

The relative error is the mean of ||y - U U' y||^2 / ||y||^2 over a block that U has not seen. The
script measures SPIRIT on rows that it has learnt already, and SAPCA before it has. SPIRIT looks for
a share of the energy and SAPCA for a share of the singular values. Where the spectrum is flat,
SPIRIT adds components to the end of the stream, and SAPCA stays below its upper bound with ten:
errors of so different ranks do not say who is better. The table has the error over that of the best
subspace of the same rank.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collections.abc import Callable

import numpy as np

import measure
from contest.streams import ALPHAS
from papers.federated.follow import Followed, follow, over_optimum
from papers.federated.methods import MEASURED, OURS, rivals, sapca, submerge, whose
from papers.federated.streams import synth
from papers.frame import Curve, Figure, Panel, about, command
from report import Table

RANK, BLOCK, FORGETTING = 10, 50, 1.0


def figure(quick: bool) -> Figure:
    """Measure every alpha."""
    alphas = ALPHAS[2:5] if quick else ALPHAS
    n, dim, simulations = (600, 100, 2) if quick else (4000, 400, 5)
    found: dict[float, dict[str, list[Followed]]] = {}
    rows: list[tuple[object, ...]] = []
    steps = [(alpha, seed) for alpha in alphas for seed in range(simulations)]
    for alpha, seed in measure.progress(steps, "federated: components"):
        X = synth(alpha, n=n, dim=dim, seed=seed)
        tail = measure.tails(X)
        for method, each in followed(X).items():
            found.setdefault(alpha, {}).setdefault(method, []).append(each)
            figures = (each.ranks[-1], each.errors[-1], over_optimum(each, tail))
            rows.append((f"{alpha:g}", seed, method, *figures))
    columns = {"alpha": "", "simulation": "d", "method": "", "rank": "d", "error": ".4g"}
    columns |= {"over the optimum of its rank": ".4f"}
    return Figure(
        "federated/components",
        "Grammenos et al., arXiv:1907.08059v1: of figures 3 to 7, components over time"
        " (`test_sapca_synthetic.m`)",
        "Number of components and errors over time, SAPCA beside SPIRIT, for each alpha of Synth.",
        f"Synth(alpha), generated: singular values i^-alpha, {n} rows of {dim} columns,"
        f" {simulations} simulations",
        (*MEASURED, "benchmarks/papers/federated/components.py"),
        [panel for alpha in alphas for panel in _panels(alpha, found[alpha])],
        [Table("After all rows", columns, rows, about(__doc__))],
    )


def followed(X: np.ndarray) -> dict[str, Followed]:
    """Follow SAPCA, SPIRIT, and ours, which keeps its rank, on rows X (n, dim)."""
    spirit = rivals(RANK, X.shape[1], forgetting=FORGETTING)["SPIRIT"]
    makers = {"SAPCA": lambda: sapca(RANK, BLOCK), "SPIRIT": spirit, OURS: lambda: submerge(RANK)}
    return {name: follow(make(), X, BLOCK) for name, make in makers.items()}


def _panels(alpha: float, found: dict[str, list[Followed]]) -> list[Panel]:
    def panel(y_label: str, of: Callable[[Followed], list], skip: int = 0) -> Panel:
        curves = []
        for method, runs in found.items():
            y = np.mean([of(each)[skip:] for each in runs], axis=0)
            x = [float(each) for each in runs[0].rows[skip:]]
            curves.append(Curve(method, x, y.tolist(), whose=whose(method)))
        return Panel(f"Synth({alpha:g})", "rows", y_label, curves, log_y=True, tabled=False)

    return [
        panel("components", lambda each: each.ranks),
        panel("relative error", lambda each: each.relative, skip=1),
        panel("error per row", lambda each: each.errors),
    ]


if __name__ == "__main__":
    command(figure)
