"""SPE in feature space on a curve that bends through every channel: whom it names, and why."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from submerge import Schema
from submerge.features import Gaussian, RandomFourier
from submerge.pca.score import contributions, spe
from submerge.protocol.summaries import KernelSummary, Subspaces

CHANNELS, NOISE = 8, 0.02
GAMMA = 1 / CHANNELS  # 1 / (2 tr C): a cosine's variance is 1/2
SCHEMA = Schema(CHANNELS, features=RandomFourier(Gaussian(GAMMA), 256))


class Curve(NamedTuple):
    """What was learnt of a curve, and more rows of it."""

    seen: KernelSummary
    rows: np.ndarray


def on_the_curve(n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows (n, CHANNELS), each channel a wave of its own along one hidden variable."""
    hidden = rng.uniform(0, 2 * np.pi, n)
    waves = np.outer(hidden, np.arange(CHANNELS) % 3 + 1) + np.arange(CHANNELS)
    return np.cos(waves) + NOISE * rng.standard_normal(waves.shape)


@pytest.fixture(scope="module")
def curve() -> Curve:
    """Learnt from two thousand rows."""
    rng = np.random.default_rng(1)
    summaries = Subspaces(20)
    learner = summaries.learner(SCHEMA)
    rows = on_the_curve(2000, rng)
    learner.learn(rows, SCHEMA.lift(rows))
    return Curve(summaries.shown(learner.summary()), on_the_curve(400, rng))


def by_features(rows: np.ndarray, curve: Curve) -> np.ndarray:
    """SPE of the rows' features."""
    return spe(SCHEMA.lift(rows), curve.seen.features)


def test_half_way_between_two_readings_is_odd_to_the_features_alone(curve):
    """A chord of the curve keeps to the plane that it lies in: to the readings it is normal."""
    chords = (curve.rows[::2] + curve.rows[1::2]) / 2
    outliers = np.linalg.norm(curve.rows[::2] - curve.rows[1::2], axis=1) > 2

    limit = np.quantile(by_features(curve.rows, curve), 0.99)
    assert (by_features(chords[outliers], curve) > limit).mean() > 0.9
    limit = np.quantile(spe(curve.rows, curve.seen.linear), 0.99)
    assert (spe(chords[outliers], curve.seen.linear) > limit).mean() < 0.1


def test_contributions_name_the_channel_that_strays(curve):
    """First in nine rows of ten: chance is one in eight, and the readings' own plane knows less."""
    rng = np.random.default_rng(2)
    guilty = rng.integers(CHANNELS, size=len(curve.rows))
    strayed = curve.rows.copy()
    strayed[np.arange(len(guilty)), guilty] += rng.choice([-0.5, 0.5], len(guilty))
    shares = contributions(strayed, curve.seen.features, SCHEMA.features)

    assert (shares.argmax(axis=1) == guilty).mean() > 0.9
    by_readings = contributions(strayed, curve.seen.linear).argmax(axis=1)
    assert (by_readings == guilty).mean() < 0.8
    assert shares.sum(axis=1) == pytest.approx(1)


def test_contributions_are_squared_slopes_of_spe(curve):
    """By differences of SPE itself, a channel at a time: nothing of the map's derivative."""
    rows, step = curve.rows[:20] + 0.1, 1e-3
    slopes = np.empty(rows.shape)
    for channel in range(CHANNELS):
        nudge = step * (np.arange(CHANNELS) == channel)
        up, down = by_features(rows + nudge, curve), by_features(rows - nudge, curve)
        slopes[:, channel] = (up - down) / (2 * step)
    expected = slopes**2 / (slopes**2).sum(axis=1, keepdims=True)

    # Features are good to 1e-6, and a difference of two SPEs is divided by 2e-3.
    found = contributions(rows, curve.seen.features, SCHEMA.features)
    assert np.abs(expected - found).max() < 1e-3
