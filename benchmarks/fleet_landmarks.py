"""Landmarks that a fleet chooses among the few rows that each device holds.

The error is what l = 50 directions in the span of m = 300 landmarks miss of the rows' features,
about zero, over what the best l miss: those of batch kernel PCA. Each device holds B rows. "Uniform
rows" are a uniform sample of what it has seen, as for other jobs. "By weight" is what it holds
while its group waits for landmarks: of a polynomial kernel, half of the rows are drawn by k(x, x).
"Chosen" are landmarks of the job `landmarks`: a quarter alike, the rest by what the earlier ones
miss, in three steps. "By chance" are as many of the rows held, all alike.

Rows are those of `plants/uneven.py`: few rows hold most of a polynomial kernel.
"""

from typing import NamedTuple

import numpy as np

import measure
from diskpca_rows import Batch
from page import page
from plants.uneven import GAMMA, uneven
from report import Table
from submerge.features import Gaussian, Kernel, Polynomial
from submerge.jobs.landmark_sample import LandmarkSample, RowSample
from submerge.jobs.local_run import run_here

RANK, LANDMARKS, NODES, ROWS = 50, 300, 10, 6000
HELD = (32, 64, 128, 256, 512)
ALLOWED = {64: 1.05, 512: 1.02}
"""Error that was asked for, by rows held."""

BLOCK = 64

KERNELS: dict[str, tuple[Kernel, dict[str, object]]] = {
    "polynomial 4": (
        Polynomial(4, GAMMA),
        {"kernel": "polynomial", "degree": 4, "gamma": GAMMA},
    ),
    "gaussian": (Gaussian(GAMMA), {"kernel": "gaussian", "gamma": GAMMA}),
}


class Choice(NamedTuple):
    """A kernel, how it is named in a job, and what landmarks are held against."""

    kernel: Kernel
    settings: dict[str, object]
    batch: Batch

    def error(self, parts: dict[str, measure.Array], m: int, *, uniform: float, seed: int) -> float:
        """Return the error of landmarks chosen among the rows of some devices."""
        asked = {**self.settings, "landmarks": m, "uniform": uniform, "seed": seed}
        return self.batch.pooled(run_here("landmarks", asked, parts)["points"].astype(float))

    def held(self, most: int, seed: int, *, by_weight: bool) -> dict[str, measure.Array]:
        """Return the rows that each device holds of a stream."""
        found = {}
        for i, rows in enumerate(np.array_split(self.batch.X, NODES)):
            rng, width = np.random.default_rng((seed, i)), rows.shape[1]
            sample: RowSample | LandmarkSample = RowSample(most, width, rng)
            if by_weight:
                sample = LandmarkSample(most, width, self.kernel, rng)
            for start in range(0, len(rows), BLOCK):
                sample.add(rows[start : start + BLOCK])
            found[f"node-{i}"] = sample.rows
        return found


def on_held(quick: bool) -> Table:
    """Measure the error over the rows that a device holds."""
    rows, repeats = [], 1 if quick else 3
    X = uneven(ROWS // 3 if quick else ROWS)
    for name, (kernel, settings) in measure.progress(KERNELS.items(), "landmarks: rows held"):
        choice = Choice(kernel, settings, Batch(X, kernel, RANK))
        for most in HELD:
            errors = []
            for seed in range(repeats):
                alike, weighed = (choice.held(most, seed, by_weight=way) for way in (False, True))
                ways = ((alike, 1.0), (alike, 0.25), (weighed, 0.25))
                errors.append(
                    [choice.error(of, LANDMARKS, uniform=share, seed=seed) for of, share in ways]
                )
            means = np.mean(errors, axis=0).tolist()
            worst = max(each[-1] for each in errors)
            rows.append((name, most, *means, worst, ALLOWED.get(most)))
    return Table(
        f"{NODES} devices, {len(X)} rows: error over batch kernel PCA, l = {RANK}, m = {LANDMARKS}",
        {
            "kernel": "",
            "rows held": "d",
            "by chance": ".4f",
            "chosen of uniform rows": ".4f",
            "chosen, by weight": ".4f",
            "its worst": ".4f",
            "asked, at most": "g",
        },
        rows,
        f"Mean of {repeats} repeats. Of a Gaussian k(x, x) is 1, so that both samples are uniform.",
    )


def on_limits(quick: bool) -> Table:
    """Measure how well any choice of 300 rows does for the Gaussian, and more landmarks."""
    X = uneven(ROWS // 3 if quick else ROWS)
    kernel, settings = KERNELS["gaussian"]
    choice = Choice(kernel, settings, Batch(X, kernel, RANK))
    parts = {f"node-{i}": rows for i, rows in enumerate(np.array_split(X, NODES))}
    pool = X[:: max(1, len(X) // 1500)]
    rows = []
    for m in (300, 350, 400, 500):
        chosen = choice.error(parts, m, uniform=0.25, seed=0)
        rows.append((m, chosen, choice.batch.pooled(greedy(pool, m, kernel))))
    return Table(
        "The Gaussian, all rows held: how good a choice can be",
        {"landmarks": "d", "chosen": ".4f", "greedily": ".4f"},
        rows,
        "Greedily: of 1,500 rows, one after the other, the row that lowers what these rows miss by"
        " most. It sees them all at one place, which no fleet allows.",
    )


def greedy(X: measure.Array, m: int, kernel: Kernel) -> measure.Array:
    """Return rows (m, d), each of which lowers the trace of the residual kernel by most."""
    R, taken = kernel(X, X), []
    for _ in range(m):
        own = np.diag(R).copy()
        gain = np.square(R).sum(axis=0) / np.where(own > 1e-9, own, np.inf)
        gain[taken] = -1.0
        i = int(np.argmax(gain))
        taken.append(i)
        R = R - np.outer(R[:, i], R[i]) / own[i]
    return X[taken]


def room(quick: bool) -> list[Table]:
    """Measure all."""
    return [on_held(quick), on_limits(quick)]


if __name__ == "__main__":
    page(room)
