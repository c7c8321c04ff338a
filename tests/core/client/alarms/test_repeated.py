"""An alarm that comes back: people are told of it three times, and again if it is far worse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from submerge.client.alarms.limits import AlarmLimits
from submerge.client.alarms.log import AWAY_S, TOLD, WORSE, AlarmLog
from submerge_client.config.alarms import Destinations

HOUR_S = 3600.0
NAMES = ("power", "flow", "state")


class Came(NamedTuple):
    """An alarm: which channel it blames, after how long without one, and how high it is."""

    channel: str = "power"
    after_s: float = HOUR_S
    worst: float = 10.0
    provisional: bool = False


def later(log: AlarmLog, came: Came) -> AlarmLog:
    """Return a log in which an alarm has begun."""
    at = max((each.ended for each in log.alarms), default=1e9) + came.after_s
    log = log.begin(at, "ewma", 1, AlarmLimits(provisional_s=came.provisional * HOUR_S))
    shares = np.array([float(name == came.channel) for name in NAMES])
    return log.accuse(shares, 1).worsen(came.worst, "ewma", at)


def after(*alarms: Came) -> AlarmLog:
    """Return a log in which all of these began, each an hour long, and the last is open."""
    log = AlarmLog("n", NAMES, 1e6)
    for came in alarms:
        if log.open is not None:
            log = log.end(log.alarms[0].began + HOUR_S)
        log = later(log, came)
    return log


def repeated(*alarms: Came) -> bool:
    return after(*alarms).alarms[0].repeated


THRICE = (Came(),) * TOLD


@pytest.mark.parametrize("times", range(1, 20))
def test_an_alarm_that_comes_back_is_told_three_times(times):
    """However long it goes on: what was told may be forgotten by then."""
    assert repeated(*(Came(),) * times) == (times > TOLD)


@pytest.mark.parametrize(
    ("last", "is_repeated"),
    [
        pytest.param(Came(after_s=AWAY_S), True, id="within a day"),
        pytest.param(Came(after_s=AWAY_S + 1), False, id="after more than that"),
        pytest.param(Came("flow"), False, id="of another channel"),
        pytest.param(Came(worst=10.0 * WORSE), True, id="worse"),
        pytest.param(Came(worst=10.0 * WORSE + 1), False, id="far worse"),
    ],
)
def test_it_is_told_again_after_a_while_or_if_it_is_another(last, is_repeated):
    assert repeated(*THRICE, last) == is_repeated


def test_alarms_of_other_channels_between_do_not_matter():
    assert repeated(*THRICE[:2], Came("flow"), Came(), Came())


def test_what_was_told_to_nobody_does_not_count():
    assert not repeated(*(Came(provisional=True),) * 5, *THRICE)


def test_one_that_grows_is_told_while_it_is_open():
    log = after(*THRICE, Came())
    assert log.alarms[0].is_quiet
    assert not log.worsen(10.0 * WORSE + 1, "ewma", 2e9).alarms[0].is_quiet


def test_a_fault_by_a_persons_word_is_told_each_time():
    log = after(*THRICE)
    log = log.with_verdict(log.alarms[0].number, "rejected").end(log.alarms[0].began + HOUR_S)
    assert not later(log, Came()).alarms[0].repeated


def test_a_channel_that_falls_silent_again_and_again_is_told_three_times():
    log, channel, none = AlarmLog("n", NAMES, 1e6), np.array([0, 0, 1], bool), np.zeros(3, bool)
    found = []
    for hour in range(5):
        log = log.hear("silent", channel, channel, 1e9 + hour * HOUR_S, 1)
        found.append(next(each for each in log.beside if each.is_open).repeated)
        log = log.hear("silent", none, none, 1e9 + (hour + 0.5) * HOUR_S, 1)
    assert [False, False, False, True, True] == found


def test_it_goes_nowhere_also_where_provisional_ones_are_sent():
    (alarm, *_) = after(*THRICE, Came()).alarms
    assert not any(Destinations(provisional=each).sends(alarm) for each in (False, True))
