"""Subtree: an alarm is over when its node reports that, not when reports have a gap."""

from __future__ import annotations

import math

import pytest

from submerge.protocol.alarm_status import Alarm
from submerge_aggregator.notify.notifier import OLD_S, Subtree
from support.alarmed import alarm
from support.nodes import EPOCH

PATIENCE_S = 900.0


class Watched:
    """A subtree, and a clock in a test's hands."""

    def __init__(self, *begun: Alarm) -> None:
        self.subtree, self.now = Subtree(begun, PATIENCE_S), 100.0

    def hears(self, *delivered: Alarm, whole: bool = True) -> dict[str, bool]:
        self.subtree.hear(delivered, whole=whole)
        return self.after(0.0)

    def after(self, seconds: float) -> dict[str, bool]:
        """The alarms to send, and whether each is open."""
        self.now += seconds
        state = self.subtree.state(self.now, EPOCH + self.now)
        return {each.name: each.is_open for each in state}


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_alarms_of_rows_come_oldest_first(watched):
    delivered = alarm("d", 7), alarm("c", 3), alarm("e", 5, ended=60.0)

    assert [("c-3", True), ("e-5", False), ("d-7", True)] == list(watched.hears(*delivered).items())


def test_the_newest_report_of_an_alarm_counts(watched):
    """Figures, and that it is over."""
    watched.hears(alarm(worst=2.0))
    watched.subtree.hear((alarm(worst=5.0),), whole=True)

    assert [5.0] == [each.worst for each in watched.subtree.state(100.0, EPOCH)]
    assert {"c-1": False} == watched.hears(alarm(ended=60.0))
    assert {} == watched.hears()


def test_an_open_alarm_without_reports_stays_open_for_a_while(watched):
    """A site has lost its store, and gets its nodes' reports again; or the node is forgotten."""
    watched.hears(alarm())
    assert math.inf == watched.subtree.due_s
    assert {"c-1": True} == watched.hears()
    assert 100.0 + PATIENCE_S == watched.subtree.due_s
    assert {"c-1": True} == watched.after(PATIENCE_S - 1)
    assert {} == watched.after(1.0)
    assert math.inf == watched.subtree.due_s


def test_one_that_comes_back_was_never_gone(watched):
    """And if it goes again, there is as much patience as before."""
    watched.hears(alarm())
    watched.hears()
    watched.after(PATIENCE_S - 1)
    assert {"c-1": True} == watched.hears(alarm())
    watched.hears()
    assert {"c-1": True} == watched.after(PATIENCE_S - 1)


def test_a_process_that_begins_is_as_patient():
    """The process before has sent it: without a report at once it is not over."""
    watched = Watched(alarm())

    assert {"c-1": True} == watched.hears()
    assert {} == watched.after(PATIENCE_S)


def test_while_more_are_open_than_fit_none_is_over_for_being_left_out(watched):
    watched.hears(alarm())
    watched.hears(alarm("d", 9), whole=False)
    assert {"c-1": True, "d-9": True} == watched.after(100 * PATIENCE_S)
    assert math.inf == watched.subtree.due_s
    watched.hears(alarm("d", 9))

    assert {"d-9": True} == watched.after(PATIENCE_S)


def test_what_has_long_been_over_is_no_news(watched):
    """A node has moved here with its past alarms; but one that was open here is sent."""
    old = alarm("c", 1, ended=50.0), alarm("d", 2)
    watched.hears(alarm("d", 2))
    watched.now += OLD_S

    assert {"d-2": True} == watched.hears(*old)
    # Twice: a webhook that is slow has not had it the first time.
    assert {"d-2": False} == watched.hears(alarm("d", 2, ended=50.0))
    assert {"d-2": False} == watched.hears(alarm("d", 2, ended=50.0))
    assert {"e-9": False} == Watched().hears(alarm("e", 9, ended=50.0))
