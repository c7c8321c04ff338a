"""What detectors find in a case: share of faulty rows at 1 % false, area under the curve, alarms.

Every detector learns the history and scores the rows to judge. Its limit is put where exactly 1 %
of the sound rows are above, so that no method gains by its limit. Ours is `submerge.Model` at its
defaults: `fit`, `score` (the distance) and `detect`; nothing is set for a plant.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import submerge
from detectors import DETECTORS, Detector, Smoothed, installed
from real_plants.case import Array, Case

FALSE = 0.01
OURS, OURS_SMOOTHED = "submerge", "submerge, smoothed"


class Judged(NamedTuple):
    """What a detector did with a case; None where there is nothing to measure.

    found : share of faulty rows above the limit that 1 % of the sound rows exceed
    auc : share of pairs of a faulty and a sound row in which the faulty one has the higher score
    """

    found: float | None
    auc: float | None


class Alarms(NamedTuple):
    """What `detect` did with a case, at one false alarm a week.

    raised : alarms
    hit : whether one of them lies in faulty rows; None where no row is faulty
    false : alarms that lie in sound rows alone
    """

    raised: int
    hit: bool | None
    false: int


class OurModel:
    """`submerge.Model` as a detector of `detectors.py`."""

    lead = 0

    def fit(self, parts: Sequence[Array]) -> None:
        """Learn the history, in the order of time."""
        rows = np.concatenate(parts)
        self.model = submerge.Model.fit(rows, names=[f"x{i}" for i in range(rows.shape[1])])

    def score(self, rows: Array) -> Array:
        """Return distances; a row that cannot be scored is as sound as any."""
        found = self.model.score(rows, names=self.model.channels)
        return np.nan_to_num(np.asarray(found["distance"], dtype=np.float64))


def contenders() -> dict[str, Callable[[], Detector]]:
    """Return ours, then those of `detectors.py` that are installed."""
    others: dict[str, Callable[[], Detector]] = {
        name: lambda make=make: make(None)
        for name, (package, make) in DETECTORS.items()
        if installed(package)
    }
    return {OURS: OurModel, OURS_SMOOTHED: lambda: Smoothed(OurModel()), **others}


def judged(case: Case, make: Callable[[], Detector]) -> Judged:
    """Return what a detector finds."""
    detector = make()
    history, rows = _ready(case)
    windows = np.lib.stride_tricks.sliding_window_view(history, detector.lead + 1, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that say nothing, and rows at another level
        detector.fit([history] if not detector.lead else list(np.moveaxis(windows, 2, 1)))
        score = detector.score(rows)
    faulty, sound = score[case.faulty], score[~case.faulty]
    if not len(faulty) or not len(sound):
        return Judged(None, None)
    limit = np.quantile(sound, 1 - FALSE)
    return Judged(float((faulty > limit).mean()), _auc(faulty, sound))


def alarms(case: Case) -> Alarms:
    """Return the alarms of `submerge.Model` at its defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = submerge.Model.fit(case.history, names=case.channels)
        found = model.detect(case.rows, names=case.channels)
    n = len(case.rows)
    spans = [slice(each.began, n if each.ended is None else each.ended + 1) for each in found]
    hits = [bool(case.faulty[span].any()) for span in spans]
    return Alarms(len(found), any(hits) if case.faulty.any() else None, hits.count(False))


def _ready(case: Case) -> tuple[Array, Array]:
    """Return rows about the history's mean, in its spread, a gap as the reading before it."""
    mean, spread = np.nanmean(case.history, axis=0), np.nanstd(case.history, axis=0)
    return tuple(_filled((rows - mean) / spread) for rows in (case.history, case.rows))


def _filled(rows: Array) -> Array:
    latest = np.where(np.isnan(rows), 0, np.arange(len(rows))[:, None])
    np.maximum.accumulate(latest, axis=0, out=latest)
    return np.nan_to_num(np.take_along_axis(rows, latest, axis=0))


def _auc(faulty: Array, sound: Array) -> float:
    ordered = np.sort(sound)
    below = np.searchsorted(ordered, faulty, "left") + np.searchsorted(ordered, faulty, "right")
    return float(below.mean() / 2 / len(sound))
