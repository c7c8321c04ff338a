"""Statistic: what alarms compare with a limit; all are listed here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from submerge.stats.smoothing import WEIGHT

By = Literal["spe", "t2", "linear", "channel", "distance", "smoothed", "ewma"]
"""Names of statistics, and of the scores that they are made of: bytes on disks, which stay."""

KINDS: tuple[By, ...] = get_args(By)


@dataclass(frozen=True, slots=True)
class Statistic:
    of: By  # the score of a row that it is made of
    cause: str  # what is wrong where it is over its limit, for the person who is woken
    # the moving average of the score, not the k-th largest of the last m: that is a mean of rows
    # already, and needs no second row to agree
    averaged: bool = False
    # whether alarms are raised by it while the model has no factors, and once it has
    raises: tuple[bool, bool] = (False, False)
    overall: bool = False  # all channels are in it: others alone are no watch
    mature: bool = False  # the node's own mean has to have seen a day
    alike: float = 4.0  # successive values that are worth one
    # what earlier versions had in its place: an open alarm may have kept its limit
    replaces: By | Literal[""] = ""


STATISTICS: Mapping[By, Statistic] = {
    # The moving average of distances.
    "ewma": Statistic(
        "distance",
        "readings lie further from normal than usual",
        averaged=True,
        raises=(False, True),
        overall=True,
        alike=(2 - WEIGHT) / WEIGHT,  # as the variance of the average says
        replaces="smoothed",
    ),
    # The squared Mahalanobis distance by the factors of the model (`pca.factor`).
    "distance": Statistic("distance", "readings lie further from normal than usual", overall=True),
    # Of the features: the squared prediction error, and Hotelling's T-squared.
    "spe": Statistic(
        "spe",
        "channels disagree more than usual (squared prediction error)",
        raises=(True, False),
        overall=True,
    ),
    "t2": Statistic(
        "t2",
        "channels agree, but lie further out than usual (Hotelling's T2)",
        raises=(True, False),
        overall=True,
        mature=True,
    ),
    # In kernel groups: the squared prediction error of the readings themselves.
    "linear": Statistic(
        "linear",
        "channels disagree more than usual, in the readings themselves",
        raises=(True, True),
    ),
    # The largest residual of a single channel over its typical size at that node.
    "channel": Statistic(
        "channel",
        "one channel differs from what the others predict",
        raises=(True, True),
        mature=True,
    ),
    # A mean of medians, of alarms of earlier versions, which are passed on.
    "smoothed": Statistic("distance", "readings stay a little further from normal, row after row"),
}

SCORES: tuple[By, ...] = ("distance", "spe", "t2")
"""Scores of single rows that a person may choose one of."""


@cache
def raised_by(*, factors: bool) -> tuple[By, ...]:
    """Return the statistics that alarms are raised by where the model has factors, or none."""
    return tuple(kind for kind, each in STATISTICS.items() if each.raises[factors])


def averaged(kinds: Iterable[By]) -> tuple[By, ...]:
    """Return those that are moving averages."""
    return tuple(kind for kind in kinds if STATISTICS[kind].averaged)
