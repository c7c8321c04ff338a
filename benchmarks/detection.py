"""What detectors find, side by side, at the same realised share of false alarms.

Fleets of three [generated plants](../docs/plants.md), with one fault at most of their nodes.
Detectors learn 500 rows of history, drawn from all nodes and all of the quiet days but the first.
Rows are about the running mean of their node, as a client's are. Then each
detector scores all rows after the quiet days, node by node. Its limit is put where exactly 1 % of
the rows without a fault are above: no method gains by a better or a worse limit. Figures are the
share of a fault's rows that are above it, from the fault's first row to its last, by kind; *all* is
the mean of the plant's kinds but *reversed*. A sensor that is *reversed* keeps within its own
normal range: only its correlations break.

*Before* is what alarms used before there was a combined score: the squared prediction error (SPE)
or T2 (Hotelling's T-squared), with eight directions. *Combined* is the distance by the factor
model. *Smoothed* is the moving average (EWMA, .3) of a score, each time the median of three rows.
Ledoit and Wolf's distance needs the covariance of all rows in one place; ours comes from summaries
that merge. Where another method finds more of a kind, a line above the table says so.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import measure
from detectors import DETECTORS, Array, installed
from detectors_ours import Combined, SmoothedDistance, SpeOrT2
from page import page
from plants.plant import Plant, plant
from plants.reversed import KIND as REVERSED
from report import Table

FALSE = 0.01
HISTORY = 500
HALF_LIFE_S = 7 * 86400.0
SEEDS = (311, 312)
"""That no choice was made with."""


RANK_MAX = 16
"""Of a group that sets nothing: so many directions are learnt, and five spare ones."""

SIZES = {"loop": (20, 16, 6), "engines": (20, 36, 12), "room": (18, 8, 3)}
"""Nodes, days, and quiet days among them."""

ALL = DETECTORS | {
    "before: SPE or T2": ("", lambda each: SpeOrT2(each, 8)),
    "ours: combined": ("", lambda each: Combined(each, RANK_MAX)),
    "ours: combined, smoothed": ("", lambda each: SmoothedDistance(each, RANK_MAX)),
}
OURS, BEFORE, CHANCE = "ours: combined, smoothed", "before: SPE or T2", "z-score per channel"

MORE, FOUND, BY_CHANCE = 0.08, 0.8, 0.05
"""What is held against: on the loop the smoothed score finds so much more than before; of reversed
sensors it finds so much where the z-score finds less than this."""


@dataclass(frozen=True)
class Stream:
    """A node's rows after the quiet days, (n, channels), and what is wrong with them.

    kind : of its fault, "" without one
    faulty, sound : (n,) of bool; rows in which a fault fades are neither
    """

    rows: Array
    kind: str
    faulty: np.ndarray
    sound: np.ndarray


@dataclass(frozen=True)
class Setting:
    """A plant's history, and the rows to judge.

    quiet : per node, rows of the quiet days
    chosen : (HISTORY, 2), node and row
    """

    plant: Plant
    quiet: list[Array]
    chosen: np.ndarray
    streams: list[Stream]

    def history(self, lead: int) -> list[Array]:
        """Return the chosen rows, each after the `lead` rows before it."""
        return [self.quiet[node][row - lead : row + 1] for node, row in self.chosen.tolist()]


@functools.cache
def setting(name: str, seed: int) -> Setting:
    """Draw a fleet, and read it."""
    nodes, days, quiet = SIZES[name]
    drawn = {"seed": seed, "nodes": nodes, "days": days, "quiet_days": quiet}
    fleet, sound = plant(name, **drawn), plant(name, **drawn, faults=())
    first = round(quiet * 86400 / fleet.period_s)
    streams, quiet_rows = [], []
    for node, (rows, normal) in enumerate(zip(_read(fleet), _read(sound), strict=True)):
        centered = rows - _running_mean(normal, fleet)
        quiet_rows.append(centered[:first])
        at, faulty, fading = np.arange(first, len(rows)), *np.zeros((2, len(rows) - first), bool)
        kind = ""
        for fault in fleet.faults:
            if fault.node == node:
                faulty = (at >= fault.start) & (at < fault.end)
                fading = (at >= fault.end) & (at < fault.end + fleet.lingers)
                kind = fault.kind
        streams.append(Stream(centered[first:], kind, faulty, ~faulty & ~fading))
    rng, warm = np.random.default_rng([seed, 1]), round(86400 / fleet.period_s)
    chosen = np.stack([rng.integers(nodes, size=HISTORY), rng.integers(warm, first, HISTORY)], 1)
    return Setting(fleet, quiet_rows, chosen, streams)


def _read(fleet: Plant) -> Iterator[Array]:
    """Yield each node's scaled rows, where a reading is lost the one before."""
    many = range(0, fleet.n_rows, 480)
    parts = [
        [fleet.rows(node, at, min(at + 480, fleet.n_rows)) for node in range(fleet.nodes)]
        for at in many
    ]
    for node in range(fleet.nodes):
        rows = fleet.schema.scaled(np.concatenate([part[node] for part in parts]))
        latest = np.where(np.isnan(rows), 0, np.arange(len(rows))[:, None])
        np.maximum.accumulate(latest, axis=0, out=latest)
        yield np.nan_to_num(np.take_along_axis(rows, latest, axis=0))


def _running_mean(rows: Array, fleet: Plant) -> Array:
    """Return the mean of the rows before each, older ones faded as a client does."""
    half_life = min(fleet.schema.half_life or HALF_LIFE_S, HALF_LIFE_S)
    grown = 2.0 ** (np.arange(len(rows)) * fleet.period_s / half_life)[:, None]
    mean = np.cumsum(grown * rows, axis=0) / np.cumsum(grown, axis=0)
    return np.concatenate([mean[:1], mean[:-1]])


def found(name: str, seed: int, method: str) -> dict[str, float]:
    """Return by kind of fault the share of its rows above the limit."""
    at = setting(name, seed)
    detector = ALL[method][1](at.plant)
    detector.fit(at.history(detector.lead))
    scores = [detector.score(each.rows) for each in at.streams]
    sound = [score[each.sound] for score, each in zip(scores, at.streams, strict=True)]
    limit = np.quantile(np.concatenate(sound), 1 - FALSE)
    by_kind: dict[str, list[float]] = {}
    for score, each in zip(scores, at.streams, strict=True):
        if each.faulty.any():
            by_kind.setdefault(each.kind, []).append(float((score[each.faulty] > limit).mean()))
    return {kind: float(np.mean(shares)) for kind, shares in by_kind.items()}


def compared(
    name: str, seeds: Sequence[int], methods: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return by method what is found of each kind, and of all, the mean of seeds."""
    means: dict[str, dict[str, float]] = {}
    for method in measure.progress(methods, name):
        runs = [found(name, seed, method) for seed in seeds]
        kinds = sorted({kind for run in runs for kind in run} - {REVERSED})
        mean = {
            kind: float(np.mean([run[kind] for run in runs if kind in run]))
            for kind in (*kinds, REVERSED)
            if any(kind in run for run in runs)
        }
        means[method] = mean | {"all": float(np.mean([mean[kind] for kind in kinds]))}
    return means


def table(name: str, means: dict[str, dict[str, float]]) -> Table:
    """Return a plant's figures; where another method finds more than ours, its notes say so."""
    kinds = [kind for kind in means[OURS] if kind not in (REVERSED, "all")]
    columns = [*kinds, "all", REVERSED]
    rows: list[tuple[object, ...]] = [
        (method, *(mean.get(kind) for kind in columns)) for method, mean in means.items()
    ]
    better = []
    for kind in columns:
        best = max(means, key=lambda method: means[method].get(kind, 0.0))
        if means[best].get(kind, 0.0) > means[OURS].get(kind, 0.0) + 0.02:
            better.append(f"{kind} ({best})")
    notes = f"More than ours is found of: {', '.join(better)}." if better else ""
    return Table(name, {"": "", **dict.fromkeys(columns, ".2f")}, rows, notes)


def room(quick: bool) -> list[Table]:
    """Compare all that are installed on three plants."""
    seeds = SEEDS[:1] if quick else SEEDS
    methods = [method for method, (package, _) in ALL.items() if installed(package)]
    absent = [method for method in ALL if method not in methods]
    plants = {name: compared(name, seeds, methods) for name in SIZES}
    tables = [table(name, means) for name, means in plants.items()]
    loop = plants["loop"]
    asked: list[tuple[object, ...]] = [
        ("loop, all: more than before", loop[OURS]["all"] - loop[BEFORE]["all"], MORE)
    ]
    for name, means in plants.items():
        asked.append((f"{name}, reversed: found", means[OURS][REVERSED], FOUND))
        asked.append(
            (f"{name}, reversed: by the z-score, at most", means[CHANCE][REVERSED], BY_CHANCE)
        )
    notes = f"Not installed, and left out: {', '.join(absent)}." if absent else ""
    held = Table("What is asked", {"": "", "is": ".2f", "asked": ".2f"}, asked, notes)
    return [*tables, held]


if __name__ == "__main__":
    page(room)
