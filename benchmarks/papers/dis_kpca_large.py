"""disKPCA, Figures 3 to 6: more than 20,000 rows; error, and k-means on top, against communication.

Balcan, Liang, Song, Woodruff & Xie, *Distributed Kernel Principal Component Analysis* (KDD 2016).
Figures 3 and 5 have a polynomial kernel of degree 4, Figures 4 and 6 a Gaussian. The paper's large
sets are not here: in place of Protein Structure (45,730 x 9) come rows of `plants/uneven.py`, in
place of MNIST8M, images of MNIST deformed, its test images moved. Batch kernel PCA is out of reach:
the error is the share of the features' squared length that k = 10 directions miss. Ways and words
are those of `dis_kpca.py`.

Figures 5 and 6: one job, `kpca` with ten clusters, chooses directions and finds clusters of all
scores on them; for points alone the job `kmeans` does, on the scores that these give. The cost is
the squared distance of all rows' features from their clusters' centers, which lie in the span of
the directions, as a share of their length. Words are those until the directions are known.
"""

import sys
from pathlib import Path
from typing import NamedTuple

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import measure
from diskpca_rows import RANK, Data
from papers import dis_kpca
from papers.dis_kpca import ALONE, WAYS, counted, curve
from papers.frame import Figure, Panel, command
from plants.uneven import GAMMA, uneven
from report import Table

POINTS, SERVERS, CLUSTERS = (50, 100, 200), 50, 10
COLUMNS = {"figures": "", "rows": "", "kernel": "", "points": "d", "way": ""}
COLUMNS |= {"words, all servers": ",.0f", "error, share": ".3g", "k-means, share": ".3g"}


class Run(NamedTuple):
    """Words until all servers have the directions, and shares of the features' length."""

    to_all: float
    error: float
    cost: float


def large(quick: bool) -> list[tuple[str, measure.Array, float | None]]:
    """Return rows in place of the paper's large sets, and the gamma of a Gaussian for them."""
    name, rows = dis_kpca.images(1_000 if quick else 25_000)
    n = 1_000 if quick else 45_730
    return [(f"generated, {n:,} x 9", uneven(n), GAMMA), (f"{name}, {len(rows):,}", rows, None)]


def measured(each: Data, m: int, seed: int, servers: int) -> dict[str, Run]:
    """Return words, the error and the cost of every way, with m points."""
    total, found = float(each.kernel.diagonal(each.rows).sum()), {}
    parts = dis_kpca.dealt(each.rows, servers, seed)
    ways = dis_kpca.ways(each, m, seed, servers, clusters=CLUSTERS)
    for name, (map_, axes, _, to_all, _, cost) in ways.items():
        scores = {node: map_.lift(part) @ axes for node, part in parts.items()}
        missed = total - sum(float(np.square(x).sum()) for x in scores.values())
        if name == ALONE:
            of_scores = counted({"clusters": CLUSTERS, "seed": seed}, scores, kind="kmeans")
            cost = float(of_scores.answer["cost"][0])
        found[name] = Run(to_all, missed / total, (missed + cost) / total)
    return found


def figure(quick: bool) -> Figure:
    """Measure error and cost of every way."""
    points, repeats, servers = (POINTS[:1], 1, 5) if quick else (POINTS, 5, SERVERS)
    panels: dict[int, list[Panel]] = {n: [] for n in (3, 4, 5, 6)}
    rows = []
    tasks = [(k, *of) for k in ("polynomial", "gaussian") for of in large(quick)]
    for kernel, name, X, gamma in measure.progress(tasks, "dis_kpca_large"):
        each = dis_kpca.of_kernel(name, X, kernel, gamma)
        found = [[measured(each, m, seed, servers) for seed in range(repeats)] for m in points]
        first = 3 + (kernel == "gaussian")
        for number, what, label in ((first, "error", "error"), (first + 2, "cost", "k-means cost")):
            curves = [curve(way, found, what) for way in (*WAYS, ALONE)]
            title = f"Figure {number}: {name}, {kernel}"
            panel = Panel(title, "words", f"{label}, share", curves, True, True, tabled=False)
            panels[number].append(panel)
        for m, at in zip(points, found, strict=True):
            for way in (*WAYS, ALONE):
                mean = np.mean([run[way] for run in at], axis=0).tolist()
                rows.append((f"{first}, {first + 2}", name, kernel, m, way, *mean))
    return Figure(
        "dis_kpca_large",
        "Balcan et al., KDD 2016: Figures 3 and 4 (error), 5 and 6 (k-means on top)",
        f"Error, and cost of k-means, against words: k = {RANK}, {servers} servers by a power law,"
        f" {', '.join(map(str, points))} points. Mean of {repeats} repeats, with the least and the"
        f" most. {dis_kpca.NAMED} k-means is of the scores, in the same job: `jobs kpca --clusters"
        f" {CLUSTERS}`.",
        "generated: plants/uneven.py; "
        + dis_kpca.images(25_000)[0]
        + "; the paper's sets are not here",
        ("core/submerge/jobs", "core/submerge/features", "benchmarks/plants/uneven.py"),
        [panel for of in panels.values() for panel in of],
        [Table("Figures 3 to 6 as numbers", COLUMNS, rows)],
        _verdict(rows, points[-1]),
    )


def _verdict(rows: list[tuple], m: int) -> str:
    at = {(row[2], row[1], row[4]): row[6:] for row in rows if row[3] == m}

    def shown(kernel: str, i: int) -> str:
        names = dict.fromkeys(name for _, name, _ in at)
        return "; ".join(
            ", ".join(f"{at[kernel, name, way][i]:.3g}" for way in (*WAYS, ALONE)) for name in names
        )

    return (
        f"with {m} points the error by our way, the paper's, uniform points with disLR, and these"
        f" alone, on generated rows and on images, is {shown('polynomial', 0)} (Figure 3,"
        f" polynomial): agrees, disKPCA is ahead. It is {shown('gaussian', 0)} (Figure 4,"
        " Gaussian): agrees, uniform points with disLR do as well, for fewer words than the paper's"
        f" way. k-means costs {shown('polynomial', 1)} (Figure 5), {shown('gaussian', 1)} (Figure"
        " 6): agrees, it follows the error, but on generated rows in Figure 5, where the start of"
        " k-means decides: bars are as wide for every way."
    )


if __name__ == "__main__":
    command(figure)
