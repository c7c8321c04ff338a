"""One-pass kernel k-means: image segmentation, over the landmarks that Nystrom's method takes.

Pourkamali-Anaraki & Becker, *A Randomized Approach to Efficient Kernel Clustering*, their table of
image segmentation: 2310 rows of 19 columns, each scaled to unit length, kernel <x, y>^2, seven
clusters. One pass oversamples by l = 5; Nystrom's method takes m landmarks. Bars are the least and
the most of the seeds.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from sklearn.cluster import KMeans

import clustering
import measure
from papers.frame import Curve, Figure, Panel, command
from submerge.kernel.one_pass import columns_of, one_pass, sketch_matrix
from support import clusters

RANKS, SPARE, CLUSTERS = (2, 7), 5, 7
LANDMARKS = (10, 20, 30, 50, 75, 100, 150, 200)


def table_or_generated(quick: bool) -> tuple[np.ndarray, np.ndarray, str]:
    """Return rows, classes, and what they are."""
    if (measure.DATA / "segment.csv").exists():
        X, truth = clusters.segments()
        return X, truth, "UCI Image Segmentation, 2310 x 19"
    measure.say("one_pass_segments: no segment.csv: generated rows (set SUBMERGE_DATA)")
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(CLUSTERS), 40 if quick else 330)
    X = rng.uniform(0.2, 1.0, (CLUSTERS, 19))[truth] + 0.1 * rng.standard_normal((len(truth), 19))
    return X / np.linalg.norm(X, axis=1, keepdims=True), truth, "generated: segment.csv is not here"


def figure(quick: bool) -> Figure:
    """Measure both curves at each rank."""
    X, truth, data = table_or_generated(quick)
    if quick:
        X, truth = X[::5], truth[::5]
    K = clusters.squared_product(X, X)
    seeds = range(2 if quick else 10)
    panels = []
    for rank in measure.progress(RANKS, "one_pass_segments"):
        ours = [_figures(K, truth, _ours(X, rank, seed), seed) for seed in seeds]
        theirs = [
            [_figures(K, truth, _nystrom(X, m, rank, seed), seed) for seed in seeds]
            for m in LANDMARKS
        ]
        for i, what in enumerate(("error |K - K_hat| / |K|", "accuracy")):
            flat = np.array(ours)[:, i]
            curves = [
                _curve(
                    f"one pass, r = {rank}, l = {SPARE}", np.tile(flat, (len(LANDMARKS), 1)), "ours"
                ),
                _curve("Nystrom, m landmarks", np.array(theirs)[:, :, i], "theirs"),
            ]
            panels.append(Panel(f"r = {rank}", "landmarks m", what, curves))
    return Figure(
        "one_pass_segments",
        "Pourkamali-Anaraki & Becker: image segmentation",
        "One pass with l = 5 beside Nystrom's method with m landmarks.",
        data,
        ("core/submerge/kernel", "core/submerge/features"),
        panels,
    )


def _ours(X: np.ndarray, rank: int, seed: int) -> np.ndarray:
    sketch = sketch_matrix(len(X), rank + SPARE, seed=seed)
    columns = columns_of(clustering.KERNEL, X, block_size=256)
    return one_pass(columns, sketch, rank=rank).scores


def _nystrom(X: np.ndarray, m: int, rank: int, seed: int) -> np.ndarray:
    return clusters.nystrom_scores(clusters.squared_product, X, landmarks=m, rank=rank, seed=seed)


def _figures(
    K: np.ndarray, truth: np.ndarray, scores: np.ndarray, seed: int
) -> tuple[float, float]:
    labels = KMeans(CLUSTERS, n_init=10, random_state=seed).fit_predict(scores)
    return clusters.relative_error(K, scores), clusters.accuracy(truth, labels)


def _curve(label: str, found: np.ndarray, whose: str) -> Curve:
    x = [float(m) for m in LANDMARKS]
    of = (found.mean(axis=1), found.min(axis=1), found.max(axis=1))
    return Curve(label, x, *(each.tolist() for each in of), whose)


if __name__ == "__main__":
    command(figure)
