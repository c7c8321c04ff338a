"""SAPCA between SPCA at its least and its largest rank, where the rank moves; and hold-off.

On Light the rank is one less after the first block and stays, and on the flat spectra it never
moves: there the bounds lo and hi say little. So this is Synth(alpha), d = 400, n = 4000, blocks of
50, with start rank 5 where the rank grows and 10 where it falls. It grows until the last singular
value has at most 10 % of the sum, or falls until that has 1 %: by one at most in each block. With a
hold-off of h blocks it moves again only h blocks after a move (`SapcaRank(hold=h)`,
`submerge replay --hold-off h`). The authors' scripts call theirs with .9 and count blocks: it never
holds.

This is no figure of the paper: it shows what the bounds of Figure 1 are for.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import measure
from papers.federated.follow import Followed, follow, optimum
from papers.federated.methods import MEASURED, bounded, over_time, sapca, whose
from papers.federated.streams import synth
from papers.frame import Curve, Figure, Panel, about, command
from report import Table

BLOCK, HOLD = 50, 5
CASES = ((1e-4, 5), (1.0, 5), (4.0, 10), (6.0, 10))
"""Alphas and start ranks."""


def figure(quick: bool) -> Figure:
    """Measure every alpha."""
    n, dim = (1000, 100) if quick else (4000, 400)
    panels, rows = [], []
    for alpha, start in measure.progress(CASES, "federated: moving rank"):
        X = synth(alpha, n=n, dim=dim, seed=0)
        found = bounded(start, X, BLOCK)
        found[f"SAPCA, hold-off {HOLD}"] = follow(sapca(start, BLOCK, HOLD), X, BLOCK)
        errors = [over_time(method, each) for method, each in found.items()]
        last = found["SAPCA"].ranks[-1]
        x = [float(each) for each in found["SAPCA"].rows]
        errors.append(Curve("offline", x, optimum(X, BLOCK, last), whose="theirs"))
        title = f"Synth({alpha:g}), start rank {start}"
        panels.append(Panel(title, "rows", "error per row", errors, log_y=True, tabled=False))
        ranks = [_ranks(method, each) for method, each in found.items()]
        panels.append(Panel(title, "rows", "rank", ranks, tabled=False))
        rows += [(title, method, *_figures(each)) for method, each in found.items()]
    columns = {"rows": "", "method": "", "rank": "d", "rank is this from row": "d"}
    columns |= {"error": ".4g", "mean error over time": ".4g"}
    return Figure(
        "federated/moving_rank",
        "Grammenos et al., arXiv:1907.08059v1: no figure of the paper; bounds lo and hi of its"
        " Figures 1 e and f, on rows where the rank moves",
        "Errors of SAPCA beside SPCA at its least and largest rank, and its rank over time.",
        f"Synth(alpha), generated: eigenvalues i^-alpha, {n} rows of {dim} columns",
        (*MEASURED, "benchmarks/papers/federated/moving_rank.py"),
        panels,
        [Table("After all rows", columns, rows, about(__doc__))],
    )


def _ranks(method: str, found: Followed) -> Curve:
    x, y = [float(each) for each in found.rows], [float(each) for each in found.ranks]
    return Curve(method, x, y, whose=whose(method))


def _figures(found: Followed) -> tuple[int, int, float, float]:
    last, pairs = found.ranks[-1], list(zip(found.rows, found.ranks, strict=True))
    moved = max((i + 1 for i, (_, rank) in enumerate(pairs) if rank != last), default=0)
    return last, found.rows[moved], found.errors[-1], sum(found.errors) / len(found.errors)


if __name__ == "__main__":
    command(figure)
