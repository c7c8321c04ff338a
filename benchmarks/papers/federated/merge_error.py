"""Two halves of a stream merged: error of U and of the singular values, and the time of a merge.

The authors' `test_subspace_merge_error.m`: Synth(.02), d = 400, n = 800 to 2000, r = 50. SPCA
learns each half in blocks of 50. The halves are merged by projection and QR ("fast", the paper's
Algorithm 2) or by the SVD of both side by side (Algorithm 4). Errors are against offline PCA of all
rows. The script compares U with its signs, which are free; here |U|. Its fast merge reads the lower
rows of a small factor from the top: the singular values are right, and the directions are not even
orthonormal. Here Algorithm 2 is the corrected one, and equal to Algorithm 4 to rounding. With alpha
.02 all directions have nearly one variance, and |U| is far from the offline one whatever the merge
does; alpha 2 beside it shows what a merge costs.

Submerge merges with five spare directions, which its nodes send too, and with none.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests"))

from collections.abc import Callable

import numpy as np

import measure
from papers.federated.follow import Array, absolute_mse
from papers.federated.methods import MEASURED
from papers.federated.streams import synth
from papers.frame import Curve, Figure, Panel, about, command
from report import Table
from submerge import SAPCA, Subspace, merge
from support.oracle import algorithm_2, algorithm_4

RANK, BLOCK = 50, 50
ALPHAS = (0.02, 2.0)
SPARE, NONE = "submerge, 5 spare", "submerge, none spare"
TWO, FOUR = "Algorithm 2", "Algorithm 4"

Merged = tuple[Array, Array]
"""U (dim, rank) and sigma (rank,)."""


def figure(quick: bool) -> Figure:
    """Measure every length of the stream."""
    dim, rank = (100, 20) if quick else (400, RANK)
    sizes = [dim * times for times in (2, 3, 4, 5)]
    rows: list[tuple[object, ...]] = []
    steps = [(alpha, n) for alpha in ALPHAS for n in sizes]
    for alpha, n in measure.progress(steps, "federated: merge error"):
        X = synth(alpha, n=n, dim=dim, seed=0) / np.sqrt(n - 1)
        rows += [(alpha, n, *figures) for figures in measured(X, rank)]
    panels = [
        _panel(alpha, what, i, [row for row in rows if row[0] == alpha])
        for alpha in ALPHAS
        for i, what in ((3, "error of abs U"), (4, "error of sigma"), (6, "milliseconds a merge"))
    ]
    columns = {"alpha": "g", "n": "d", "method": "", "error of abs U": ".3g"}
    columns |= {"mean square error of sigma": ".3g", "degrees to Algorithm 4": ".2g"}
    columns |= {"milliseconds a merge": ".3f"}
    return Figure(
        "federated/merge_error",
        "Grammenos et al., arXiv:1907.08059v1: no figure of the paper, one of its authors' scripts",
        "Two halves merged: error of abs U and of the singular values against offline PCA.",
        f"Synth(alpha), generated: eigenvalues i^-alpha, {dim} columns, over sqrt(n - 1)",
        (*MEASURED, "benchmarks/papers/federated/merge_error.py", "tests/support/oracle.py"),
        panels,
        [Table(f"Two halves, r = {rank}", columns, rows, about(__doc__))],
    )


def measured(X: Array, rank: int) -> list[tuple[str, float, float, float | None, float]]:
    """Return for each way to merge: errors of |U| and sigma, degrees to Algorithm 4, ms."""
    U, s, _ = np.linalg.svd(X.T, full_matrices=False)
    made = ways(X, rank)
    by_svd = made[FOUR]()
    rows = []
    for name, way in made.items():
        basis, sigma = way()
        off = float(np.mean((sigma - s[:rank]) ** 2))
        taken = measure.repeated(lambda way=way: measure.clocked(way, tuple), budget_s=0.05)
        # With spare directions it is another subspace, and nearer to the offline one.
        angle = None if name == SPARE else measure.degrees(by_svd[0], basis)
        rows.append((name, absolute_mse(basis, U[:, :rank]), off, angle, 1e3 * taken.least))
    return rows


def ways(X: Array, rank: int) -> dict[str, Callable[[], Merged]]:
    """Return ways to merge the two halves of rows X (n, dim), each half learnt already."""
    halves = (X[: len(X) // 2], X[len(X) // 2 :])
    bare = [half(part, rank, 0) for part in halves]
    spare = [half(part, rank, 5) for part in halves]
    pair = [factor for each in bare for factor in factors(each)]
    return {
        SPARE: lambda: factors(merge(*spare, rank=rank + 5).truncated(rank)),
        NONE: lambda: factors(merge(*bare, rank=rank)),
        TWO: lambda: algorithm_2(*pair, rank=rank),
        FOUR: lambda: algorithm_4(*pair, rank=rank),
    }


def half(X: Array, rank: int, spare: int) -> Subspace:
    """Return what SPCA learns of rows X (n, dim)."""
    engine = SAPCA(rank, oversample=spare, block_size=BLOCK, center=False, exact="never")
    return engine.partial_fit(X).subspace


def factors(merged: Subspace) -> Merged:
    """Return the basis and the singular values of a subspace."""
    return np.asarray(merged.basis), np.asarray(merged.sigma)


def _panel(alpha: float, what: str, column: int, rows: list[tuple]) -> Panel:
    curves = []
    for method in dict.fromkeys(row[2] for row in rows):
        own = [row for row in rows if row[2] == method]
        x, y = [float(row[1]) for row in own], [float(row[column]) for row in own]
        whose = "ours" if method in (SPARE, NONE) else "theirs"
        curves.append(Curve(method, x, y, whose=whose))
    return Panel(f"Synth({alpha:g})", "rows", what, curves, log_y=True, tabled=False)


if __name__ == "__main__":
    command(figure)
