"""Bytes that a client sends up, beside what other ways would send for the same rows.

A *report* is what a real `ClientNode` of four sends after five days, with everything that a report
holds: directions, factors, sketches for limits, counts. It replaces the one before, so a client
that was away for a day sends one. The others are computed, in float32 as reports are, and favoured:
no headers, and no acknowledgement. *Scatter* is the upper half of the covariance's matrix, the mean
and the number of rows, which merge exactly. *Rows* are the readings of an hour or of a day at one
in 31 seconds. *Directions alone* are 16 of them with their variances and the mean: what federated
PCA needs without alarms.

Worth of a scatter where it takes more than directions do: eight nodes of 500 rows have eight
causes, twenty faint ones that each move a tenth of the channels, and noise; they report scatters,
or 21 directions (`exact = "never"`). *AUC* is how well a row's distance tells rows in which one
channel is off by three deviations of its noise, over channels and three seeds; *angle* the largest
between the eight leading directions of both models, in degrees; *limit* the .999 quantile of
distances by directions over that by scatters.

*Engine* is the most memory that learning 2,000 rows takes at once, 50 a call, directions read in
the end (tracemalloc): rank 10 by default, with `exact = "never"`, and by the running scatter, four
lines of NumPy.
"""

from functools import partial

import numpy as np
from sklearn.metrics import roc_auc_score

import blas  # noqa: F401 (before numpy: it sets one thread)
import measure
from contest.contender import Submerge
from contest.trackers.running_scatter import RunningScatter
from contest.trial import learnt, peak_bytes
from page import page
from report import Table
from submerge import Schema
from submerge.pca.factor import factors_of
from submerge.protocol.settings import AlarmSettings
from submerge.protocol.summaries import Subspaces
from watching import PERIOD_S, RANK_MAX, Steady, Weighed

ENGINES = (48, 83, 84, 200, 290, 300, 400)
WIDTHS = (24, 48, 59, 60, 83, 84, 128, 200, 400)
BETWEEN = (48, 60, 83)
FLOAT32 = 4


def report_bytes(dim: int) -> int:
    """Return the bytes of the last report of a fleet after five days."""
    fleet = Weighed(Steady(dim), AlarmSettings())
    while fleet.hour < fleet.hours:
        fleet.passes()
    return fleet.report


def ways(dim: int) -> dict[str, int]:
    """Return bytes by what is sent."""
    rows = round(3600 / PERIOD_S)
    return {
        "submerge: report": report_bytes(dim),
        "directions alone": FLOAT32 * (RANK_MAX * (dim + 1) + dim),
        "scatter": FLOAT32 * (dim * (dim + 1) // 2 + dim + 1),
        "rows of an hour": FLOAT32 * rows * dim,
        "rows of a day": FLOAT32 * 24 * rows * dim,
    }


def worth(dim: int, seed: int) -> tuple[float, ...]:
    """Return AUC by scatters and by directions, angle, and limit."""
    rng = np.random.default_rng((dim, seed))
    faint = 0.4 * rng.standard_normal((20, dim)) * (rng.random((20, dim)) < 0.1)
    causes = np.concatenate((rng.standard_normal((8, dim)), faint))
    noise = rng.uniform(0.05, 0.3, dim)

    def draw(n: int) -> np.ndarray:
        return rng.standard_normal((n, 28)) @ causes + rng.standard_normal((n, dim)) * noise

    nodes, test, found = [draw(500) for _ in range(8)], draw(4000), []
    for kind in (Subspaces(16), Subspaces(16, exact="never")):
        schema, parts = Schema(dim, center="own"), []
        for rows in nodes:
            learner = kind.learner(schema)
            learner.learn(rows, rows)
            parts.append(learner.summary())
        merged = kind.merged(schema, parts, own=False)
        directions = kind.directions(merged)
        factors = factors_of(merged, directions)
        loadings = factors.loadings_of(directions)
        inverse = np.linalg.inv(loadings @ loadings.T + np.diag(factors.noise))

        def distances(rows: np.ndarray, inverse: np.ndarray = inverse) -> np.ndarray:
            return np.einsum("ij,ij->i", rows @ inverse, rows)

        usual = distances(test)
        off = [distances(test + noise * 3 * (np.arange(dim) == each)) for each in range(0, dim, 4)]
        same = np.repeat((0, 1), len(test))
        auc = np.mean([roc_auc_score(same, np.concatenate((usual, each))) for each in off])
        found.append((auc, np.quantile(usual, 0.999), directions.basis[:, :8]))
    (whole, limit, U), (few, other, V) = found
    cosine = np.linalg.svd(U.T @ V, compute_uv=False).min()
    return whole, few, float(np.degrees(np.arccos(min(1.0, cosine)))), other / limit


def engine_bytes(dim: int) -> tuple[int, ...]:
    """Return bytes of an engine by default, of one that is never exact, and of the scatter."""
    rows = measure.synth(2000, dim, alpha=1.0, seed=0)
    makes = Submerge(10), Submerge(10, exact="never"), RunningScatter(10)
    return tuple(peak_bytes(partial(learnt, make, rows, 50)) for make in makes)


def room(quick: bool) -> list[Table]:
    """Weigh every width; `quick`: two of them."""
    widths = WIDTHS[:2] if quick else WIDTHS
    found = {dim: ways(dim) for dim in measure.progress(widths, "bytes sent")}
    rows = [(dim, sent, size) for dim, sizes in found.items() for sent, size in sizes.items()]
    between = [
        (dim, *np.mean([worth(dim, seed) for seed in range(1 if quick else 3)], axis=0))
        for dim in BETWEEN
    ]
    heads = {"channels": "d", "AUC": ".3f", "by directions": ".3f", "angle": ".2f", "limit": ".2f"}
    engines = {"channels": "d", "by default": ",d", "never exact": ",d", "running scatter": ",d"}
    return [
        Table("Bytes", {"channels": "d", "sent": "", "bytes": ",d"}, rows),
        Table("Worth of a scatter", heads, between),
        Table("Engine", engines, [(dim, *engine_bytes(dim)) for dim in ENGINES]),
    ]


if __name__ == "__main__":
    page(room)
