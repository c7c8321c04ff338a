"""Input-sparsity time, section 3.2.2: a fast product with Gaussian frequencies, for sparse rows.

Musco & Woodruff, *Is Input Sparsity Time Possible for Kernel Low-Rank Approximation?*, NIPS 2017.
An entry of a sparse row meets all D frequencies: O(D). The paper takes the product that Kapralov,
Potluru and Woodruff fake (ICML 2016): a CountSketch first, frequencies of its buckets then. An
entry costs one sum, and a row as much more as its buckets do. That no test tells the product from a
Gaussian one costs D^1.5 n^3 there, as sqrt(D) n^2 buckets do: more than there are channels here.
Measured is how good the kernel is with few.

Rows have 20 to 2000 normal entries in 20,000 channels, D = 512. Time is processor time, the median
of some turns of all ways. The error is that of 1,000 of MNIST's images (784 channels, a fifth of
them not zero; scikit-learn's digits where MNIST is absent), as in `sparse_rows.py`: relative to K
+ lambda I with lambda = n / 100, the mean of some seeds.
"""

import sys
from functools import partial
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy import sparse

import measure
from papers.frame import Curve, Figure, Panel, command
from report import Table
from sparse_rows import WIDE, csr, images, whitening
from submerge.features import CountSketch, Gaussian, RandomFourier
from submerge.kernel.auto_gamma import spread_of

FEATURES, ENTRIES, BUCKETS = 512, (20, 50, 100, 200, 500, 1000, 2000), (256, 1024, 4096)
SHOWN = (20, 200, 2000)
COLUMNS = {"map": "", **{f"µs a row, {s} entries": ".1f" for s in SHOWN}}
COLUMNS |= {"ns an entry of 2000": ".1f", "error": ".3f"}


def ways(gamma: float, seed: int = 0) -> dict[str, RandomFourier | CountSketch]:
    """Return all frequencies, and those of few buckets."""
    sketched = {f"{b} buckets": CountSketch(Gaussian(gamma), FEATURES, b, seed) for b in BUCKETS}
    return {"all channels": RandomFourier(Gaussian(gamma), FEATURES, seed=seed), **sketched}


def figure(quick: bool) -> Figure:
    """Measure time by entries, and errors."""
    n, turns, seeds = (50, 3, range(2)) if quick else (500, 9, range(10))
    took: dict[str, list[float]] = {name: [] for name in ways(1.0)}
    for s in ENTRIES:
        X, made = csr(n, s), ways(Gaussian().auto(float(s)))
        runs = {name: partial(_seconds, map_, X) for name, map_ in made.items()}
        for name, timing in measure.interleaved(runs, turns, label=f"{s} entries").items():
            took[name].append(timing.median / n * 1e6)
    errors, rows = _errors(200 if quick else 1000, seeds), []
    for name, of in took.items():
        at = [of[ENTRIES.index(s)] for s in SHOWN]
        rows.append((name, *at, at[-1] / SHOWN[-1] * 1e3, errors[name]))
    x = [float(s) for s in ENTRIES]
    curves = [
        Curve(name, x, of, whose="ours" if "buckets" in name else "theirs")
        for name, of in took.items()
    ]
    return Figure(
        "input_sparsity",
        "Musco & Woodruff, NIPS 2017: section 3.2.2 (it has no figure)",
        f"Time of a sparse row of {WIDE:,} channels, and the error of the kernel, D = {FEATURES}.",
        "generated; errors on MNIST's test images, where they are here",
        ("core/submerge/features",),
        [Panel(f"{WIDE:,} channels", "entries", "µs a row", curves, True, True, tabled=False)],
        [Table("A fast product in place of all frequencies", COLUMNS, rows)],
        _verdict(rows),
    )


def _seconds(map_: RandomFourier | CountSketch, X: sparse.csr_array) -> float:
    map_.lift(X[:1])  # draws the weights
    return measure.clocked(map_.lift, lambda: (X,))


def _verdict(rows: list[tuple]) -> str:
    whole, few, more = rows[0], rows[1], rows[2]
    return (
        f"agrees where rows have hundreds of entries. One of 2000 costs {whole[4]:.1f} ns with all"
        f" frequencies, and {few[4]:.1f} or {more[4]:.1f} ns with {BUCKETS[0]} or {BUCKETS[1]}"
        f" buckets; the error is {few[5]:.3f} and {more[5]:.3f} where it was {whole[5]:.3f}. With"
        f" 20 entries a row takes {few[1]:.1f} or {more[1]:.1f} µs in place of {whole[1]:.1f}. The"
        " theorem's buckets, some 22 million for 1,000 rows, would never pay."
    )


def _errors(n: int, seeds: range) -> dict[str, float]:
    """Return the mean error of each way."""
    X = sparse.csr_array(images()[1][:n])
    gamma = Gaussian().auto(spread_of(X))
    K = Gaussian(gamma)(X, X)
    root = whitening(K, n / 100)
    found: dict[str, list[float]] = {}
    for seed in seeds:
        for name, map_ in ways(gamma, seed).items():
            phi = map_.lift(X).astype(np.float64)
            off = np.linalg.eigvalsh(root @ (phi @ phi.T - K) @ root)
            found.setdefault(name, []).append(float(np.abs(off).max()))
    return {name: float(np.mean(of)) for name, of in found.items()}


if __name__ == "__main__":
    command(figure)
