"""What an alarm looks like: one channel without which all is normal, or many that moved."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from submerge.client.alarms.limits import AlarmLimits
from submerge.client.alarms.log import MOST_LEFT, AlarmLog, Evidence, devices_of
from submerge.pca.factor import Precision
from submerge.pca.reconstruct import Pairs, Reconstruction
from submerge.protocol.alarm_status import Alarm, Looks
from support import oracle
from support.scored import row_scores

CHANNELS = 8
NAMES = tuple(f"c{j}" for j in range(CHANNELS))
DRAW = np.random.default_rng(5)
LOADINGS = DRAW.normal(size=(CHANNELS, 2))
COVARIANCE = LOADINGS @ LOADINGS.T + 0.1 * np.eye(CHANNELS)
NORMAL = DRAW.multivariate_normal(np.zeros(CHANNELS), COVARIANCE, size=40)
ALL = np.arange(40)


def evidence(rows: np.ndarray, covariance: np.ndarray = COVARIANCE) -> Evidence:
    """Return what a model that knows the covariance says of rows."""
    inverse = np.linalg.inv(covariance)
    off, alone = rows @ inverse, np.diag(inverse)
    distance = (off * rows).sum(axis=1)
    scores = row_scores(distance, distance, off / alone, expected=1 / alone)
    even = {**scores.even, "distance": distance}
    scores = replace(scores, even=even, scorer=scorer_of(covariance))
    return Evidence(scores, 0, rows, None, explains=True)


def scorer_of(covariance: np.ndarray) -> Any:
    """Return what scores rows by a covariance, as far as evidence asks it."""
    noise = 0.5 * np.linalg.eigvalsh(covariance)[0]
    values, vectors = np.linalg.eigh(covariance - noise * np.eye(CHANNELS))
    precision = Precision(vectors * np.sqrt(values), np.full(CHANNELS, noise))
    known = SimpleNamespace(
        expected=1 / np.diag(np.linalg.inv(covariance)),
        precision=precision,
        pairs=pairs_of(covariance),
    )
    known.falls = partial(Reconstruction.falls, known)
    return known


def alarm(
    rows: np.ndarray, covariance: np.ndarray = COVARIANCE, names: tuple[str, ...] = NAMES
) -> Alarm:
    log = AlarmLog("n", names, 1e6).begin(1.0, "ewma", 1, AlarmLimits())
    said = evidence(rows, covariance)
    for part in np.array_split(ALL, 5):
        left, pairs = said.left(part, devices_of(names)), pairs_of(covariance)
        assert left is not None
        log = log.accuse(said.shares(part), len(part))
        log = log.remaining(left, CHANNELS + 2.0, pairs)
    return log.alarms[0]


def looks(rows: np.ndarray) -> Looks | None:
    return alarm(rows).looks


def pairs_of(covariance: np.ndarray) -> Pairs:
    alike = oracle.alike(covariance)
    one, other = np.nonzero(alike)
    return Pairs(one, other, alike[one, other])


@pytest.mark.parametrize("device", [*((j,) for j in range(CHANNELS)), (1, 4), (0, 2, 5, 7)])
def test_what_is_left_without_a_device_is_the_distance_of_the_others(device):
    """As if nobody had measured its channels."""
    others = np.setdiff1d(np.arange(CHANNELS), device)
    apart = NORMAL[:, others]
    expected = apart @ np.linalg.inv(COVARIANCE[np.ix_(others, others)])

    left = evidence(NORMAL).left(ALL, (device,))
    for channel in device:
        np.testing.assert_allclose((expected * apart).sum(axis=1), left[:, channel])


def test_all_channels_of_one_device_look_like_a_sensor():
    """Where names say which are of one: others, or all of a machine, look like the process."""
    rows = NORMAL.copy()
    rows[:, 2:5] -= 2 * NORMAL[:, 2:5] + 5.0
    probe = (*NAMES[:2], "probe/a", "probe/b", "probe/c", *NAMES[5:])
    whole = tuple(f"pump/{name}" for name in NAMES)
    found = [alarm(rows, names=names).looks for names in (NAMES, probe, whole)]

    assert ["process", "sensor", "process"] == [each.like for each in found]
    assert [7, 5, 7] == [each.others for each in found]


def test_a_channel_that_alone_is_off_looks_like_a_sensor():
    """A bias, or noise; at its own channel alone. One that is far off is nearly all there is."""
    bias, noise, far = NORMAL.copy(), NORMAL.copy(), 2.0 * NORMAL
    bias[:, 3] += 4.0
    noise[:, 3] += 5.0 * DRAW.normal(size=40)
    far[:, 3] += 12.0

    for rows in (bias, noise):
        found = looks(rows)
        assert found is not None
        assert ("sensor", 7) == (found.like, found.others)
        assert found.left < 1.0
    assert ("sensor", True) == (looks(far).like, looks(far).left > MOST_LEFT)


def test_channels_that_move_together_look_like_the_process():
    """Along a direction that they share, farther than usual; or a few against the others."""
    along = NORMAL + 12.0 * LOADINGS[:, 0]
    against = NORMAL + 1.5 * DRAW.choice((-1.0, 1.0), CHANNELS)

    assert ["process", "process"] == [looks(rows).like for rows in (along, against)]


NEAR = COVARIANCE.copy()
NEAR[1], NEAR[:, 1] = 1.5 * NEAR[0], 1.5 * NEAR[:, 0]
NEAR[1, 1] = 2.25 * NEAR[0, 0] + 0.01


@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize(("size", "both"), [(5.0, True), (40.0, False)])
def test_of_two_that_tell_each_other_either_is_named(channel, size, both):
    """Unless the fault is so large that their small noise tells them apart; none of others is."""
    rows = DRAW.multivariate_normal(np.zeros(CHANNELS), NEAR, size=40)
    alone = 1 / np.diag(np.linalg.inv(NEAR))
    rows[:, channel] += size * np.sqrt(alone[channel])

    found = alarm(rows, NEAR)

    assert {"c0", "c1"} == {name for name, _ in found.top[:2]}
    assert ({"c0", "c1"} if both else set()) == set(found.twins)
    if not both:
        assert NAMES[channel] == found.top[0][0]
    rows = NORMAL.copy()
    rows[:, 4] += 4.0
    assert ((), "c4") == (alarm(rows).twins, alarm(rows).top[0][0])


def test_what_is_not_known_is_not_told():
    """Rows before the block, a kernel's features, lags, or no limits yet."""
    log = AlarmLog("n", NAMES, 1e6).begin(1.0, "ewma", 1, AlarmLimits())
    found = evidence(NORMAL)
    before = found.left(np.array([-2, -1]), ())

    assert before.shape == (0, CHANNELS + 1)
    assert log.remaining(before, 10.0).alarms[0].looks is None
    assert log.remaining(found.left(ALL, ()), 0.0).alarms[0].looks is None
    assert Evidence(found.scores, 0, NORMAL, None).left(ALL, ()) is None
