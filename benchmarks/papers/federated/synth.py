"""Figures 1 a, b, e and f, 3 and 4: SPCA and SAPCA beside SPIRIT on Synth(alpha), over time.

The paper's settings (4.1, C.1): d = 400, n = 4000, eigenvalues i^-alpha, start rank 10, blocks of
50, the power method's of 400; SPIRIT holds 95 to 98 % of the energy and forgets by lambda. Figure 1
has (alpha, lambda) = (1, .9) in a and e, (2, 1) in b and f; the text names no others for e and f.
Figure 3 goes over alphas with lambda 1, figure 4 with .9. SPCA lo, SPCA hi and PM lo have the least
and the largest rank that SAPCA had. Err is the squared error of all rows so far, MSE is that over
their number; each by the subspace of that moment.

SPIRIT looks for a share of the energy and SAPCA for a share of the singular values: errors of so
different ranks do not say who is better, so the table has the error over that of the best subspace
of the same rank. SPIRIT alone depends on the scale of the rows: the authors' script divides them by
sqrt(n - 1), and then the .001 that each energy begins with is more than a direction brings for
long, and every direction is taken for a component. Figure 1 b has both.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from collections.abc import Callable

import measure
from contest.streams import ALPHAS
from contest.trackers.power_method import PowerMethod
from papers.federated.follow import Array, Followed, follow, over_optimum
from papers.federated.methods import MEASURED, bounded, rivals, spca, whose
from papers.federated.streams import synth
from papers.frame import Curve, Figure, Panel, about, command
from report import Table

RANK, BLOCK = 10, 50
FORGETTING = (1.0, 0.9)
FIGURE_1 = {("a", "e"): (1.0, 0.9), ("b", "f"): (2.0, 1.0)}
"""(alpha, lambda) by the letters of components and Err, and of the MSE."""

SCALED = "SPIRIT, lambda 1, rows over sqrt(n - 1)"


def figure(quick: bool) -> Figure:
    """Measure every alpha."""
    alphas = ALPHAS[2:5] if quick else ALPHAS
    n, dim = (600, 100) if quick else (4000, 400)
    found: dict[float, dict[str, Followed]] = {}
    rows: list[tuple[object, ...]] = []
    for alpha in measure.progress(alphas, "federated: synth"):
        X = synth(alpha, n=n, dim=dim, seed=0)
        tail, found[alpha] = measure.tails(X), followed(X)
        if alpha == FIGURE_1["b", "f"][0]:
            found[alpha][SCALED] = scaled(X)
        for method, each in found[alpha].items():
            ranks = (each.ranks[-1], min(each.ranks), max(each.ranks))
            rows.append((f"{alpha:g}", method, *ranks, each.errors[-1], over_optimum(each, tail)))
    columns = {"alpha": "", "method": "", "rank": "d", "least rank": "d", "largest rank": "d"}
    columns |= {"MSE": ".4g", "over the optimum of its rank": ".4f"}
    return Figure(
        "federated/synth",
        "Grammenos et al., arXiv:1907.08059v1: Figures 1 a, 1 b, 1 e, 1 f, 3 and 4",
        "Components and errors over time on Synth(alpha): SPCA, SAPCA and its bounds, SPIRIT.",
        f"Synth(alpha), generated: eigenvalues i^-alpha, {n} rows of {dim} columns",
        (*MEASURED, "benchmarks/papers/federated/synth.py"),
        [*_figure_1(found), *(panel for alpha in alphas for panel in _over(alpha, found[alpha]))],
        [Table("After all rows", columns, rows, about(__doc__))],
    )


def followed(X: Array) -> dict[str, Followed]:
    """Follow the paper's methods on rows X (n, dim)."""
    adaptive = bounded(RANK, X, BLOCK)
    low = min(RANK, *adaptive["SAPCA"].ranks)
    found = {"SPCA": follow(spca(RANK, BLOCK), X, BLOCK), **adaptive}
    found["PM lo"] = follow(PowerMethod(low, block=X.shape[1]), X, BLOCK)
    for forgetting in FORGETTING:
        made = rivals(RANK, X.shape[1], forgetting=forgetting)["SPIRIT"]()
        found[spirit(forgetting)] = follow(made, X, BLOCK)
    return found


def scaled(X: Array) -> Followed:
    """Follow SPIRIT with lambda 1 on rows as small as the script's; errors are of X."""
    divisor = (len(X) - 1) ** 0.5
    made = rivals(RANK, X.shape[1], forgetting=1.0)["SPIRIT"]()
    found = follow(made, X / divisor, BLOCK)
    found.errors = [divisor**2 * error for error in found.errors]
    return found


def spirit(forgetting: float) -> str:
    """Return the name of SPIRIT with a forgetting factor."""
    return f"SPIRIT, lambda {forgetting:g}"


def _figure_1(found: dict[float, dict[str, Followed]]) -> list[Panel]:
    panels = []
    for (first, second), (alpha, forgetting) in FIGURE_1.items():
        of, name = found[alpha], spirit(forgetting)
        title = f": Synth({alpha:g}), lambda {forgetting:g}"
        two = ("SPCA", name, *({SCALED} & of.keys()))
        five = ("SAPCA", "SPCA lo", "SPCA hi", "PM lo", name)
        panels += [
            _panel(f"1 {first}{title}", "components", of, two, lambda each: each.ranks),
            _panel(f"1 {first}{title}", "Err", of, two, _squared),
            _panel(f"1 {second}{title}", "MSE", of, five, lambda each: each.errors),
        ]
    return panels


def _over(alpha: float, found: dict[str, Followed]) -> list[Panel]:
    names = ("SAPCA", *map(spirit, FORGETTING))
    title = f"3, 4: Synth({alpha:g})"
    return [
        _panel(title, "components", found, names, lambda each: each.ranks),
        _panel(title, "MSE", found, names, lambda each: each.errors),
    ]


def _squared(found: Followed) -> list[float]:
    return [rows * error for rows, error in zip(found.rows, found.errors, strict=True)]


def _panel(
    title: str,
    y_label: str,
    found: dict[str, Followed],
    names: tuple[str, ...],
    of: Callable[[Followed], list],
) -> Panel:
    curves = [
        Curve(
            name, [*map(float, found[name].rows)], [*map(float, of(found[name]))], whose=whose(name)
        )
        for name in names
    ]
    return Panel(title, "rows", y_label, curves, log_y=True, tabled=False)


if __name__ == "__main__":
    command(figure)
