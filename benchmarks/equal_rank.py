"""Equal rank: methods of the literature beside ours, at published settings and at their best.

Each method learns a stream with rank 10, in calls of 50 rows, mean removed first. "Published" is
the setting of the method's own paper or of the centre paper's comparison. "Best" is the best of a
grid *on that very stream*, which no user can have beforehand: an advantage that ours does not get.
The figure is the squared error over that of the best subspace of the same rank; memory is the most
that NumPy held at once, the call's rows included.

Robust Frequent Directions have the same basis as Frequent Directions: they add a number to the
diagonal. On Synth(0.0001) and Synth(0.001) all 400 eigenvalues are nearly one, and any subspace is
within 1.5 % of the optimum: there a method that averages long, with a step that is known only
afterwards, is up to .001 below submerge. Submerge itself is exact where its memory budget has room
for the scatter: up to some 200 columns, or with `memory` raised. MOSES in blocks of 1000 holds more
rows than directions. The running scatter is four lines of NumPy, X'X of all rows: exact on every
stream, without mean, energy or bounds, for 8 d^2 bytes and as many again while rows are added.
"""

import gzip
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

import measure
import rivals
from contest.streams import ALPHAS, BenchStream, spectrum
from contest.trackers.frequent_directions import FrequentDirections
from contest.trackers.grouse import Grouse
from contest.trackers.moses import Moses
from contest.trackers.oja import Oja
from contest.trackers.power_method import PowerMethod
from contest.trackers.running_scatter import RunningScatter
from contest.trackers.spirit import Spirit
from contest.trial import BenchTrial, learnt, tails, tried
from page import page
from report import Table
from submerge_lab.plants.room import Room

RANK, CALL = 10, 50

Make = Callable[[], rivals.Rival]


class Method(NamedTuple):
    """A method: its published setting, and the grid of which the best is taken."""

    published: Make
    grid: Mapping[str, Make]


def _grid(make: Callable[..., rivals.Rival], **values: tuple) -> dict[str, Make]:
    (name, given), *fixed = values.items()
    more = {key: value[0] for key, value in fixed}
    return {f"{name} = {value}": partial(make, RANK, **{name: value}, **more) for value in given}


METHODS: dict[str, Method] = {
    "MOSES": Method(partial(Moses, RANK), _grid(Moses, block=(20, 50, 200, 1000))),
    "Frequent Directions": Method(
        partial(FrequentDirections, RANK), _grid(FrequentDirections, size=(11, 15, 20))
    ),
    "Power Method": Method(
        partial(PowerMethod, RANK), _grid(PowerMethod, block=(200, 500, 1000, 2000, 3850))
    ),
    "GROUSE": Method(
        partial(Grouse, RANK),
        _grid(Grouse, step=(None, 10.0, 30.0, 100.0, 300.0, 1000.0)),
    ),
    "SPIRIT": Method(
        partial(Spirit, 1), _grid(Spirit, forgetting=(0.96, 0.99, 0.999, 1.0), energy=(None,))
    ),
    "Oja": Method(partial(Oja, RANK), _grid(Oja, step=(3.0, 10.0, 30.0, 100.0, 300.0, 1000.0))),
    "scikit-learn IncrementalPCA": Method(partial(rivals.ScikitLearn, RANK), {}),
    "running scatter": Method(partial(RunningScatter, RANK), {}),
    "gensim merge": Method(partial(rivals.Gensim, RANK, by_gram=False), {}),
}

OURS: dict[str, Make] = {
    "submerge": partial(rivals.Submerge, RANK),
    'submerge, exact="never"': partial(rivals.Submerge, RANK, exact="never"),
}


def streams(quick: bool) -> list[BenchStream]:
    """Return Light, if it is here, the generated room and each spectrum."""
    found = []
    if measure.LIGHT.exists():
        with gzip.open(measure.LIGHT, "rt") as file:
            X = np.loadtxt(file)
        found.append(BenchStream("Light", (X - X.mean(axis=0))[:7700]))
    else:
        measure.say(f"equal rank: no {measure.LIGHT}: Light left out (set SUBMERGE_DATA)")
    plant = Room(seed=0, days=1 if quick else 4, faults=())
    X = np.concatenate(list(plant.stream(1000)))
    X = X[np.isfinite(X).all(axis=1)]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)  # its channels have four units
    found.append(BenchStream("the generated room, scaled", X))
    alphas = ALPHAS[2:4] if quick else ALPHAS
    return found + [spectrum(alpha, n=1000 if quick else 4000) for alpha in alphas]


def best_of(grid: Mapping[str, Make], stream: BenchStream, tail: np.ndarray) -> str:
    """Return the setting with the least error over the optimum of its rank."""

    def error(name: str) -> float:
        basis = learnt(grid[name](), stream.rows.copy(), CALL)
        return measure.residual(stream.rows, basis) / tail[basis.shape[1]]

    return min(grid, key=error)


def room(quick: bool) -> list[Table]:
    """Measure everyone on every stream."""
    rows: list[tuple[object, ...]] = []
    for stream in measure.progress(streams(quick), "equal rank"):
        tail = tails(stream.rows)
        trial = partial(tried, rows=stream.rows, block=CALL, passes=1, tail=tail)
        for name, make in OURS.items():
            rows.append((stream.name, name, "default", *_figures(trial(make))))
        for name, method in METHODS.items():
            rows.append((stream.name, name, "published", *_figures(trial(method.published))))
            if method.grid:
                setting = best_of(method.grid, stream, tail)
                figures = _figures(trial(method.grid[setting]))
                rows.append((stream.name, name, f"best: {setting}", *figures))
    columns = {"stream": "", "method": "", "setting": "", "rank": "d"}
    columns |= {"over the optimum": ".5f", "peak kB": ".0f"}
    return [Table("Rank 10, calls of 50 rows", columns, rows), _summary(rows)]


def _figures(trial: BenchTrial) -> tuple[int, float, float]:
    return trial.rank, trial.over_optimum, trial.peak_bytes / 1e3


def _summary(rows: list[tuple[object, ...]]) -> Table:
    """Return who is below ours, and with how much memory."""
    ours = {row[0]: row for row in rows if row[1] == "submerge"}
    better = [
        (row[0], f"{row[1]}, {row[2]}", row[3], row[4], ours[row[0]][4], row[5], ours[row[0]][5])
        for row in rows
        if not str(row[1]).startswith("submerge") and row[4] < ours[row[0]][4] - 1e-9
    ]
    columns = {"stream": "", "method": "", "rank": "d", "over the optimum": ".5f"}
    columns |= {"submerge": ".5f", "peak kB": ".0f", "submerge's": ".0f"}
    return Table("Methods with a smaller error than submerge", columns, better)


if __name__ == "__main__":
    page(room)
