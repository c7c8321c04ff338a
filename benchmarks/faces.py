"""river's and PyOD's detectors beside ours, at their defaults, on the same rows.

**Row by row** (river): each row is scored, then learnt, from the first row to the last. Ours is
`submerge.river.StreamDetector`, which gets rows as they are. HalfSpaceTrees stands behind a
MinMaxScaler, as in river's own examples; so does LODA, where river has it. Figures are of the
second half of the rows.

**Learnt, then scored** (PyOD): the first half of the rows is learnt, and the second half is scored.
Nothing says which rows of the first half are anomalous. Ours is `submerge.pyod.SubspaceOD`.

Rows are those of a machine's sensors in the order of time, or records without an order:

* *loop*, *engines*: [generated plants](../docs/plants.md), machines with a fault each, one after
  another; figures are the mean of machines. Lost readings are the last ones before them.
* *light*: 48 light sensors of the Light motes. In 40 spans of 30 rows the reading of one mote is
  that of the same mote at another time: it is within its own range.
* *segment*: records of image regions of seven classes, where in turn one class is the anomaly, with
  5 % of the rows. Normal rows are thus clusters. A column is constant: of some rows PyOD's PCA
  divides by zero, and their scores are infinite.
* *digits*: MNIST's test images of the digit 2, at 14 x 14 pixels, with 5 % of the digit 5.

*AUC* is the area under the curve: the share of pairs of an anomalous and a normal row in which the
anomalous row has the higher score. *Found* is the share of anomalous rows above the limit that 1 %
of the normal rows exceed. The highest AUC *wins*; more may be *found* by another. A time is of all
that is done with a row, learning included, in one run on a machine that does other work, too.
"""

from __future__ import annotations

import gzip
import importlib.metadata
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import measure
import submerge
from measure import Array
from page import page
from plants.plant import plant
from report import Table

DATA = Path(os.environ.get("SUBMERGE_DATA", Path(__file__).parents[2] / "shared" / "data"))
FALSE, SHARE = 0.01, 0.05
SEED = 21


@dataclass(frozen=True)
class Labelled:
    """Rows (n, d) in their order, and which are anomalous (n,)."""

    rows: Array
    faulty: np.ndarray


# -- rows ----------------------------------------------------------------------


def machines(name: str, quick: bool) -> Iterator[Labelled]:
    """Yield the machines of a plant that have a fault in the later half."""
    fleet = plant(name, seed=SEED, nodes=8 if quick else 20, days=8, quiet_days=4)
    for fault in fleet.faults:
        cuts = range(0, fleet.n_rows, 480)
        parts = [fleet.rows(fault.node, at, min(at + 480, fleet.n_rows)) for at in cuts]
        rows, at = np.concatenate(parts), np.arange(fleet.n_rows)
        latest = np.where(np.isnan(rows), 0, at[:, None])
        np.maximum.accumulate(latest, axis=0, out=latest)
        rows = np.nan_to_num(np.take_along_axis(rows, latest, axis=0))
        kept = (at < fault.end) | (at >= fault.end + fleet.lingers)
        rows, faulty = rows[kept], ((at >= fault.start) & (at < fault.end))[kept]
        if faulty[len(rows) // 2 :].any():
            yield Labelled(rows, faulty)


def light(_: bool) -> Iterator[Labelled]:
    """Yield the Light motes, with readings of another time in their later half."""
    with gzip.open(measure.LIGHT) as file:
        rows = np.loadtxt(file)
    rng, faulty = np.random.default_rng(SEED), np.zeros(len(rows), dtype=bool)
    for start in rng.choice(np.arange(len(rows) // 2, len(rows) - 30, 60), 40, replace=False):
        mote, other = rng.integers(rows.shape[1]), rng.integers(len(rows) // 2 - 30)
        rows[start : start + 30, mote] = rows[other : other + 30, mote]
        faulty[start : start + 30] = True
    yield Labelled(rows, faulty)


def mixed(normal: Array, other: Array, seed: int) -> Labelled:
    """Return all normal rows and some others, in an order of chance."""
    rng = np.random.default_rng(seed)
    some = rng.permutation(other)[: round(SHARE * len(normal))]
    order = rng.permutation(len(normal) + len(some))
    return Labelled(
        np.concatenate((normal, some))[order], (np.arange(len(order)) >= len(normal))[order]
    )


def segment(quick: bool) -> Iterator[Labelled]:
    """Yield the records with each class as the anomaly."""
    table = np.genfromtxt(DATA / "segment.csv", delimiter=",", skip_header=1, dtype=str)
    rows, classes = table[:, :-1].astype(float), table[:, -1]
    for seed, each in enumerate(np.unique(classes)[: 2 if quick else None]):
        yield mixed(rows[classes != each], rows[classes == each], seed)


def digits(_: bool) -> Iterator[Labelled]:
    """Yield the images of two digits, four pixels as one."""
    files = [DATA / "mnist" / f"t10k-{name}-ubyte.gz" for name in ("images-idx3", "labels-idx1")]
    images, classes = (gzip.decompress(path.read_bytes()) for path in files)
    labels = np.frombuffer(classes, np.uint8, offset=8)
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 14, 2, 14, 2)
    rows = pixels.mean(axis=(2, 4)).reshape(-1, 196) / 255
    yield mixed(rows[labels == 2], rows[labels == 5], SEED)


SETS: dict[str, tuple[Path | None, Callable[[bool], Iterator[Labelled]]]] = {
    "loop": (None, lambda quick: machines("loop", quick)),
    "engines": (None, lambda quick: machines("engines", quick)),
    "light": (measure.LIGHT, light),
    "segment": (DATA / "segment.csv", segment),
    "digits": (DATA / "mnist" / "t10k-images-idx3-ubyte.gz", digits),
}

# -- detectors -----------------------------------------------------------------


def row_by_row(make: Callable[[], object]) -> Callable[[Labelled], tuple[Array, np.ndarray]]:
    """Return the scores of a river detector, each before its row is learnt; of the later half."""

    def run(labelled: Labelled) -> tuple[Array, np.ndarray]:
        model, half = make(), len(labelled.rows) // 2
        scores = []
        for row in labelled.rows.tolist():
            x = dict(enumerate(row))
            scores.append(model.score_one(x))
            model.learn_one(x)
        return np.array(scores[half:]), labelled.faulty[half:]

    return run


def learnt(make: Callable[[], object]) -> Callable[[Labelled], tuple[Array, np.ndarray]]:
    """Return the scores of a PyOD detector: half of the rows are learnt, the others scored."""

    def run(labelled: Labelled) -> tuple[Array, np.ndarray]:
        half = len(labelled.rows) // 2
        model = make().fit(labelled.rows[:half])
        return model.decision_function(labelled.rows[half:]), labelled.faulty[half:]

    return run


def of_river() -> dict[str, Callable]:
    """Return detectors by name."""
    from river import anomaly, preprocessing

    from submerge.river import StreamDetector

    scaled: dict[str, Callable] = {
        f"river {name}": row_by_row(
            lambda name=name: preprocessing.MinMaxScaler() | getattr(anomaly, name)(seed=0)
        )
        for name in ("HalfSpaceTrees", "LODA")
        if hasattr(anomaly, name)
    }
    return {"submerge StreamDetector": row_by_row(StreamDetector), **scaled}


def of_pyod() -> dict[str, Callable]:
    """Return detectors by name."""
    from submerge.pyod import SubspaceOD

    def theirs(module: str, name: str, **settings: int) -> Callable:
        made = getattr(importlib.import_module(f"pyod.models.{module}"), name)
        return learnt(lambda: made(**settings))

    return {
        "submerge SubspaceOD": learnt(SubspaceOD),
        "PyOD PCA": theirs("pca", "PCA"),
        "PyOD IForest": theirs("iforest", "IForest", random_state=0),
        "PyOD KNN": theirs("knn", "KNN"),
    }


# -- figures -------------------------------------------------------------------


def figures(scores: Array, faulty: np.ndarray) -> tuple[float, float]:
    """Return the area under the curve, and what is found where 1 % of normal rows are above."""
    normal = np.sort(scores[~faulty])
    below, upto = (np.searchsorted(normal, scores[faulty], side) for side in ("left", "right"))
    limit = np.quantile(normal, 1 - FALSE, method="lower")  # scores may be infinite
    return float((below + upto).mean() / 2 / len(normal)), float((scores[faulty] > limit).mean())


def compared(title: str, detectors: dict[str, Callable], quick: bool) -> list[Table]:
    """Return a table of all sets of rows that are here."""
    rows: list[tuple[object, ...]] = []
    for name, (path, read) in SETS.items():
        if path is not None and not path.exists():
            measure.say(f"faces: no {path}: {name} left out (set SUBMERGE_DATA)")
            continue
        sets = list(read(quick))
        found = {}
        for method, run in measure.progress(detectors.items(), f"faces: {name}"):
            began, pairs = time.perf_counter(), [run(each) for each in sets]
            took = (time.perf_counter() - began) / sum(len(each.rows) for each in sets)
            means = np.mean([figures(*pair) for pair in pairs], axis=0)
            found[method] = (*means.tolist(), 1e6 * took)
        best = max(found, key=lambda method: found[method][0])
        width = sets[0].rows.shape[1]
        rows += [
            (
                name if i == 0 else "",
                width if i == 0 else None,
                method,
                *each,
                "wins" * (method == best),
            )
            for i, (method, each) in enumerate(found.items())
        ]
    columns = {
        "rows": "",
        "d": "d",
        "detector": "",
        "AUC": ".3f",
        "found": ".3f",
        "us a row": ".0f",
    }
    library = title.rpartition(" ")[2].lower()
    notes = f"{library} {importlib.metadata.version(library)}, submerge {submerge.__version__}."
    return [Table(title, columns | {"": ""}, rows, notes)]


def room(quick: bool) -> list[Table]:
    """Compare with both libraries."""
    return [
        *compared("Row by row: river", of_river(), quick),
        *compared("Learnt, then scored: PyOD", of_pyod(), quick),
    ]


if __name__ == "__main__":
    page(room)
