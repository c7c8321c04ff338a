"""Closeness: the highest share of a limit that the rows of a minute came to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.client.alarms.detect import detect
from submerge.client.alarms.detector import (
    NOT_CLOSE,
    AlarmDetector,
    ChannelState,
    Situation,
    row_statistics,
)
from submerge.judge.prepare import RowClock
from submerge.protocol.machine import Now
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from support.scored import a_block, row_scores

MINUTE = 60.0 * 28_333_333
NAMES = ("flow", "temp")
SETTINGS = AlarmSettings(period_s=1.0)


def group(level: float = 4.0) -> BlockMaxima:
    """Return the maxima of a group whose hours came to one level: SPE and T2 have limits."""
    sketch = QuantileSketch.of(np.full(4800, level), FINE)
    return BlockMaxima(sketch, sketch, empty(FINE), longest=4800)


class Node:
    """A detector, and the moment of its newest row."""

    def __init__(
        self, maxima: BlockMaxima | None = None, detector: AlarmDetector | None = None
    ) -> None:
        before = AlarmDetector.of("pump-1", SETTINGS, NAMES) if detector is None else detector
        self.detector = before.with_maxima(maxima)
        self.clock, self.row = RowClock(SETTINGS.period_s), 0

    @property
    def share(self) -> float | None:
        return self.detector.closeness.share

    def see(self, spe: list[float], wall: float = MINUTE, *, ready: bool = True) -> None:
        """Let a block of rows come, all in the minute of `wall`."""
        self.row += len(spe)
        now = Now(float(self.row), wall)
        self.clock, time = self.clock.read(now.steady)
        errors = np.zeros((len(spe), len(NAMES)))
        block = a_block(errors, None, time)
        scores = row_scores(spe, len(spe) * [0.0], errors, expected=np.ones(len(NAMES)))
        situation = Situation(now, 7, ready=ready)
        self.detector, _ = detect(self.detector, block, scores, situation)

    def sticks(self, *stuck: int) -> None:
        """Have channels be stuck as the next rows come."""
        flags = np.isin(np.arange(len(NAMES)), stuck)
        channels: ChannelState = self.detector.channels
        habits = channels.habits._replace(stuck=flags)
        self.detector = replace(self.detector, channels=replace(channels, habits=habits))


SCORES = st.sampled_from([0.0, 0.1, 1.0, 3.0, 3.9, 9.0])


@given(
    st.lists(SCORES, min_size=1, max_size=60),
    st.lists(st.integers(1, 20), max_size=20),
)
def test_it_is_the_highest_statistic_over_its_limit_however_rows_come(spe, cuts):
    """The slow way: the statistic of each row by itself, over the limit."""
    node, first = Node(group()), 0
    limit = node.detector.limits.known["spe"]
    for cut in [*cuts, len(spe)]:
        if part := spe[first : first + cut]:
            node.see(part)
        first += cut

    of, after = SETTINGS.of, SETTINGS.after
    before = np.array([[0.0] * (of - 1) + spe])
    slow = max(
        row_statistics(("spe",), before[:, i : i + of], of, after)[0, 0] for i in range(len(spe))
    )
    assert slow / limit == pytest.approx(node.share, rel=1e-12, abs=0)


def test_each_minute_begins_at_nothing():
    """A high minute does not stay; rows before it still are the last of their statistics."""
    node = Node(group())
    node.see(20 * [3.0])
    high = node.share
    node.see(20 * [0.1], MINUTE + 60.0)
    assert high is not None
    assert high == pytest.approx(node.share)
    node.see(20 * [0.1], MINUTE + 120.0)

    assert 0.1 / node.detector.limits.known["spe"] == pytest.approx(node.share)


def test_without_limits_there_is_no_share():
    """Nor before the node's own mean is ready, whatever was before."""
    node, other = Node(), Node(group())
    node.see(20 * [9.0])
    other.see(20 * [1.0])
    assert other.share is not None
    other.see(20 * [1.0], ready=False)

    assert node.share is None
    assert NOT_CLOSE == other.detector.closeness


def test_rows_of_an_alarm_are_above_their_limit():
    """As many times as its worst row says, where that is the highest statistic."""
    node = Node(group())
    node.see([*20 * [1.0], *20 * [9.0]])

    assert node.detector.log.open is not None
    assert node.share == pytest.approx(node.detector.log.open.worst)
    assert node.share > 1


@pytest.mark.parametrize("maxima", [None, group()])
def test_a_stuck_channel_is_at_its_limit(maxima):
    """Also without limits; once it moves, the next minute is like any other."""
    node = Node(maxima)
    node.sticks(1)
    node.see(20 * [0.1])
    assert 1.0 == node.share
    node.see(20 * [0.1], MINUTE + 60.0)
    assert 1.0 == node.share
    node.sticks()
    node.see(20 * [0.1], MINUTE + 120.0)

    assert node.share is None or node.share < 0.1
    assert (node.share is None) == (maxima is None)


def test_scores_that_a_restart_has_lost_are_not_high():
    """While an alarm is open they are infinite, so that it does not end."""
    node = Node(group())
    node.see(40 * [9.0])
    kept = AlarmDetector.of("pump-1", SETTINGS, NAMES, node.detector.kept)
    again = Node(group(), kept)
    again.see([0.1, 0.1])
    assert again.detector.log.open is not None
    assert 0.0 == again.share
    again.see(30 * [0.1])

    assert 0.1 / again.detector.limits.known["spe"] == pytest.approx(again.share)
