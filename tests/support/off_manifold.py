"""Two kinds of fault made from the generated room, and how well each score finds them.

`tests/lab/replay/test_kernel_spe.py` holds one setting to its figures; `benchmarks/kernel_spe.py`
prints many. What learns, scores and takes limits are the parts that clients and roots use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from submerge import Channel, Schema
from submerge.aggregator.rollup import SHARES, limits
from submerge.features import Gaussian, RandomFourier
from submerge.judge.score import RowScoring
from submerge.protocol.messages import ScoreSketches
from submerge.protocol.summaries import Subspaces
from submerge.stats.quantile_sketch import SketchTally
from submerge.stats.score_limits import Limits
from submerge_lab.plants.room import Room

LEARNT, TESTED, RECENT = 8000, 2000, 2048
"""Rows to learn, to spoil, and to take limits from: as many as a client's sketch speaks of."""


class Setting(NamedTuple):
    """What is learnt, and how.

    quantities : of all motes
    rank : directions of the features; of the readings as many, at most half of the channels
    times : gamma, over what a fleet would settle on by itself
    """

    quantities: tuple[str, ...]
    rank: int = 16
    features: int = 1024
    times: float = 1.0


class Area(NamedTuple):
    """How often a spoilt row scores above a sound one: areas under ROC curves.

    linear, kernel : by SPE of the readings, of their features
    larger : by `Limits.anomaly_score`, with the limits that a root makes of clients' sketches
    exact : the same with quantiles that no sketch has rounded
    """

    linear: float
    kernel: float
    larger: float
    exact: float

    @property
    def cost(self) -> float:
        """How far the larger of both is behind the better."""
        return max(self.linear, self.kernel) - self.larger


class Areas(NamedTuple):
    """Both kinds of fault: rows mixed, and one channel swapped."""

    mix: Area
    swap: Area


class Told(NamedTuple):
    """Rows' scores: SPE and T2 of their features, SPE of the readings themselves, (n,) each."""

    spe: np.ndarray
    t2: np.ndarray
    linear: np.ndarray

    @classmethod
    def by(cls, scorer: RowScoring, rows: np.ndarray, schema: Schema) -> Told:
        """Score rows."""
        return cls(*scorer.statistics(rows, schema.lift(rows))[:3])

    def anomaly_score(self, by: Limits) -> np.ndarray:
        """Return the larger of both."""
        return by.anomaly_score({"spe": self.spe, "linear": self.linear})


def measured(setting: Setting, *, seed: int, days: float = 10.0) -> Areas:
    """Return the areas in one room."""
    X, rng = sound(setting.quantities, seed=seed, days=days), np.random.default_rng(0)
    tested, recent, learnt = np.split(rng.permutation(len(X)), [TESTED, TESTED + RECENT])
    rows, learnt = X[tested], X[learnt[:LEARNT]]
    gamma = setting.times * Gaussian().auto(float(learnt.var(axis=0).sum()))
    channels = tuple(Channel(f"x{i}") for i in range(X.shape[1]))
    schema = Schema(channels, features=RandomFourier(Gaussian(gamma), setting.features))
    summaries = Subspaces(setting.rank)
    learner = summaries.learner(schema)
    learner.learn(learnt, schema.lift(learnt))
    scorer = summaries.scorer(learner.summary(), len(channels))
    usual, normal = Told.by(scorer, rows, schema), Told.by(scorer, X[recent], schema)
    coarse, fine = sketched(normal), quantiles(normal)
    areas = []
    for spoilt in (mixed(rows, X, rng), swapped(rows, rng)):
        spoilt_scores = Told.by(scorer, spoilt, schema)
        areas.append(
            Area(
                auc(usual.linear, spoilt_scores.linear),
                auc(usual.spe, spoilt_scores.spe),
                auc(usual.anomaly_score(coarse), spoilt_scores.anomaly_score(coarse)),
                auc(usual.anomaly_score(fine), spoilt_scores.anomaly_score(fine)),
            )
        )
    return Areas(*areas)


def sound(quantities: tuple[str, ...], *, seed: int, days: float) -> np.ndarray:
    """Return the room in good order, (n, channels): gaps filled forward, standardized."""
    room = Room(seed=seed, days=days, faults=())
    wanted = [channel.name.split(".")[1] in quantities for channel in room.channels]
    X = np.concatenate([part[:, wanted] for part in room.stream(2048)])
    known = ~np.isnan(X)
    newest = np.maximum.accumulate(np.where(known, np.arange(len(X))[:, None], -1), axis=0)
    # Before a mote is first heard: what it then says.
    X = np.take_along_axis(X, np.where(newest < 0, known.argmax(axis=0), newest), axis=0)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def mixed(rows: np.ndarray, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return means of rows and random others of X: of the half of pairs that is farther apart.

    A mean of two readings keeps to every direction that readings vary along.
    """
    others = X[rng.integers(len(X), size=len(rows))]
    quarantined = np.sum((rows - others) ** 2, axis=1)
    return ((rows + others) / 2)[quarantined > np.median(quarantined)]


def swapped(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rows of which one channel, another in each, is some other row's."""
    spoilt, n = rows.copy(), len(rows)
    channel = rng.integers(rows.shape[1], size=n)
    spoilt[np.arange(n), channel] = rows[rng.integers(n, size=n), channel]
    return spoilt


def auc(sane: np.ndarray, spoilt_scores: np.ndarray) -> float:
    """Return how often an odd row's score is above a sane one's; a tie counts half."""
    ordered = np.sort(sane)
    below, upto = (np.searchsorted(ordered, spoilt_scores, side=side) for side in ("left", "right"))
    return float((below + upto).mean() / (2 * len(sane)))


def sketched(normal: Told) -> Limits:
    """Return the limits that a root makes of what a client tells."""
    sketches = []
    for scores in normal:
        tally = SketchTally()
        tally.add(scores)
        sketches.append(tally.sketch)
    made = limits(ScoreSketches(*sketches))
    assert made is not None
    return made


def quantiles(normal: Told) -> Limits:
    """Return the limits that they stand for."""
    spe, t2, linear = (tuple(np.quantile(scores, SHARES)) for scores in normal)
    return Limits(SHARES, spe, t2, len(normal.spe), linear)
