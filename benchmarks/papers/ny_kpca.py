"""NY-KPCA: error over exact kernel PCA against landmarks and components, each digit alone.

Sterge, Sriperumbudur, Rosasco & Rudi, *Gain with no Pain: Efficiency of Kernel-PCA by Nystrom
Sampling*, AISTATS 2020, experiments on MNIST. The kernel is exp(-|x - y|^2 / (2 sigma^2)), the
features are not centered, landmarks are uniform. The error is the share of the features' energy
that l directions miss, over that of exact kernel PCA, which is the least that there is: no curve is
below 1, whereas the paper's crosses it. Bars are the least and the most of the repeats.

MNIST's training images are not here: rows are those of the test set. The width that
the paper prints is not at hand: sigma is half, once and twice the root of half the median of
|x - y|^2, the usual choice.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import numpy as np

import measure
from papers.frame import Curve, Figure, Panel, command
from submerge.sklearn import NystromKPCA
from support import kernels
from support.mnist import digits

DIGITS = (5, 2)
LANDMARKS = (25, 50, 100, 200, 300, 500)
COMPONENTS = (1, 2, 5, 10, 20, 40)
AT_LANDMARKS, AT_COMPONENTS = 100, 10
WIDTHS = (0.5, 1.0, 2.0)
"""Times the usual sigma."""


def images(quick: bool) -> tuple[dict[str, np.ndarray], str]:
    """Return the rows of each digit, and what they are; generated ones where MNIST is absent."""
    folder = measure.DATA / "mnist"
    if folder.exists():
        most = 200 if quick else None
        rows = {f"digit {each}": digits(folder, each)[:most] for each in DIGITS}
        return rows, "MNIST test images, pixels 0 to 1; the training images are not here"
    measure.say(f"ny_kpca: no {folder}: generated clusters in its place (set SUBMERGE_DATA)")
    n = 200 if quick else 900
    rows = {f"clusters {seed}": kernels.clustered(n, 16, seed=seed) for seed in DIGITS}
    return rows, "generated clusters: MNIST is not here"


def figure(quick: bool) -> Figure:
    """Measure every curve."""
    rows, data = images(quick)
    panels = []
    repeats = 2 if quick else 20
    for name, X in measure.progress(rows.items(), "ny_kpca"):
        landmarks = [m for m in LANDMARKS if m < len(X)]
        over_m, over_l = [], []
        for width in WIDTHS:
            sigma = width * np.sqrt(kernels.median_square(X) / 2)
            exact = Energies(X, 1 / (2 * sigma**2))
            label = f"sigma = {sigma:.3g}"
            over_m.append(
                exact.curve(label, landmarks, [(m, AT_COMPONENTS) for m in landmarks], repeats)
            )
            pairs = [(AT_LANDMARKS, rank) for rank in COMPONENTS]
            over_l.append(exact.curve(label, COMPONENTS, pairs, repeats))
        panels.append(
            Panel(f"{name}, l = {AT_COMPONENTS}", "landmarks m", "error over exact", over_m)
        )
        panels.append(
            Panel(f"{name}, m = {AT_LANDMARKS}", "components l", "error over exact", over_l)
        )
    return Figure(
        "ny_kpca",
        "Sterge et al., AISTATS 2020: NY-KPCA on MNIST",
        "Error of NY-KPCA over that of exact kernel PCA, uncentered, each digit alone.",
        data,
        ("core/submerge/kernel", "core/submerge/features", "core/submerge/sklearn/nystrom_kpca.py"),
        panels,
    )


class Energies:
    """The eigenvalues of a kernel matrix: what exact kernel PCA misses at each rank."""

    def __init__(self, X: np.ndarray, gamma: float) -> None:
        self._X, self._gamma = X, gamma
        K = kernels.gaussian(X, X, gamma)
        values = np.maximum(np.linalg.eigvalsh(K)[::-1], 0.0)
        self._total = float(np.trace(K))
        self._missed = self._total - np.cumsum(values)

    def curve(self, label: str, xs, pairs, repeats: int) -> Curve:
        """Return errors over exact for pairs of landmarks and components, with bars."""
        found = np.array(
            [[self.error(m, rank, seed) for m, rank in pairs] for seed in range(repeats)]
        )
        mean, low, high = found.mean(axis=0), found.min(axis=0), found.max(axis=0)
        return Curve(label, [float(x) for x in xs], *(each.tolist() for each in (mean, low, high)))

    def error(self, m: int, rank: int, seed: int) -> float:
        """Return the energy that NY-KPCA misses, over what exact kernel PCA misses."""
        model = NystromKPCA(
            rank, gamma=self._gamma, n_landmarks=m, center=False, random_state=seed
        ).fit(self._X)
        return float((self._total - model.eigenvalues_.sum()) / self._missed[rank - 1])


if __name__ == "__main__":
    command(figure)
