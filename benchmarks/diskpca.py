"""disKPCA: kernel PCA by a fleet, from points that the fleet chooses.

The error is what k = 10 directions miss of the rows' features, about zero, over what the best k
miss: those of batch kernel PCA. "Uniform" takes points without regard to the rows. disLR then finds
the directions of all rows in the points' span; "batch" takes kernel PCA of the points alone.

Generated rows are those of `plants/uneven.py`. It was fixed before disKPCA ran on it, by the errors
of uniform points alone: each of them is within a factor of two of that on CASP. Insurance (CoIL
2000) and MNIST's test digits are read from SUBMERGE_DATA (or ../shared/data beside the repository)
and left out where they are not; the small digits are scikit-learn's. The paper's own sketches, and
the words that pass, are in the figures of papers, `dis_kpca.py`.
"""

import numpy as np

import measure
from diskpca_rows import RANK, Batch, data, dealt, uniform_errors
from page import page
from plants.uneven import GAMMA, uneven
from report import Table
from submerge.features import Gaussian, Kernel, Polynomial
from submerge.jobs.kinds.kpca.answer import map_of
from submerge.jobs.local_run import run_here

SERVERS, CHOSEN, SKETCH = (5, 20, 100, 200), 200, 50
SPARSE = 1.01
"""Error over batch that is allowed on rows of uneven leverage."""

EVEN = 1.01
"""Error over that of uniform points that is allowed where leverage is even."""

POINTS = (50, 100, 200, 400)

CASP = {
    "polynomial 4": (31.0, 20.0, 5.4, 2.9),
    "gaussian": (1.138, 1.035, 1.005, 1.002),
}
"""What uniform points with disLR miss on CASP, over batch kernel PCA, by number of points."""


def kernels() -> dict[str, Kernel]:
    """Return the kernels that are tried on generated rows."""
    return {"polynomial 4": Polynomial(4, GAMMA), "gaussian": Gaussian(GAMMA)}


def on_uniform(quick: bool) -> Table:
    """Measure uniform points on generated rows, beside CASP."""
    rows, repeats = [], 3 if quick else 10
    X = uneven()
    for name, kernel in measure.progress(kernels().items(), "diskpca: uniform points"):
        batch = Batch(X, kernel)
        for m, theirs in zip(POINTS, CASP[name], strict=True):
            pooled, alone = np.mean(uniform_errors(batch, m, repeats), axis=0)
            rows.append((name, m, theirs, pooled, (pooled - 1) / (theirs - 1), alone))
    return Table(
        f"Uniform points: {len(X)} generated rows, k = {RANK}, error over batch kernel PCA",
        {
            "kernel": "",
            "points": "d",
            "CASP": ".3f",
            "here": ".3f",
            "excess here / CASP": ".2f",
            "of the points alone": ".2f",
        },
        rows,
        f"Mean of {repeats} repeats. The figures on CASP are given, not measured here.",
    )


def on_servers(quick: bool) -> Table:
    """Measure the error over servers, for all ways to choose points."""
    rows, repeats = [], 1 if quick else 5
    ways = ("residual", "leverage", "uniform")
    for each in measure.progress(list(data()), "diskpca: servers"):
        batch = Batch(each.rows, each.kernel)
        alone = np.mean([uniform_errors(batch, CHOSEN, repeats)], axis=1)[0][1]
        for servers in SERVERS:
            found: dict[str, list[float]] = {way: [] for way in ways}
            for seed in range(repeats):
                parts = dealt(each.rows, servers, seed)
                for way, errors in found.items():
                    settings = {**each.settings, **COMMON, "sample": way, "seed": seed}
                    answer = run_here("kpca", settings, parts)
                    errors.append(batch.error(map_of(answer), answer["axes"]))
            means = [float(np.mean(found[way])) for way in ways]
            allowed = SPARSE if each.uneven else EVEN * means[-1]
            rows.append(
                (each.name, servers, means[0], max(found[ways[0]]), allowed, *means[1:], alone)
            )
    return Table(
        f"disKPCA: {CHOSEN} points, k = {RANK}, servers by a power law, error over batch",
        {
            "rows, kernel": "",
            "servers": "d",
            "residual": ".4f",
            "its worst": ".4f",
            "allowed": ".4f",
            "leverage first": ".4f",
            "uniform": ".4f",
            "uniform, alone": ".2f",
        },
        rows,
        f'Mean of {repeats} repeats. "Residual" is the default; "leverage first" is the paper\'s,'
        f" t = {SKETCH}. Allowed: {SPARSE} where few rows hold most of the kernel, elsewhere 1 %"
        " over uniform points. The last column is kernel PCA of uniform points alone.",
    )


COMMON = {
    "components": RANK,
    "points": CHOSEN,
    "center": False,
    "sketch": SKETCH,
    "readings": False,
}


def on_merges(quick: bool) -> Table:
    """Measure the ways to merge directions, for a Gaussian and five servers."""
    rows, repeats = [], 1 if quick else 5
    triangle = CHOSEN * (CHOSEN + 1) // 2
    ways = {"ranks": 2 * RANK * CHOSEN, "sketch": triangle, "exact": triangle}
    for each in list(data())[1:]:
        if each.uneven:
            continue
        batch = Batch(each.rows, each.kernel)
        for way, numbers in ways.items():
            errors = []
            for seed in range(repeats):
                settings = {**each.settings, **COMMON, "merge": way, "columns": 400, "seed": seed}
                answer = run_here("kpca", settings, dealt(each.rows, SERVERS[0], seed))
                errors.append(batch.error(map_of(answer), answer["axes"]))
            asked = {"ranks": 1.025, "sketch": 1.035, "exact": None}[way]
            rows.append((each.name, way, numbers, np.mean(errors), max(errors), asked))
    return Table(
        f"disLR: {CHOSEN} points, k = {RANK}, {SERVERS[0]} servers, error over batch",
        {
            "rows, kernel": "",
            "merge": "",
            "words": "d",
            "error": ".4f",
            "its worst": ".4f",
            "asked, at most": "g",
        },
        rows,
        f'Mean of {repeats} repeats. "Sketch" is the paper\'s, with 400 columns a server;'
        " of these the triangle travels.",
    )


def room(quick: bool) -> list[Table]:
    """Measure all."""
    return [on_uniform(quick), on_servers(quick), on_merges(quick)]


if __name__ == "__main__":
    page(room)
