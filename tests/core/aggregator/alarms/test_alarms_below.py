"""Alarms below: whatever one child says, an open alarm that another child reports stays open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.aggregator.alarms.below import alarm_status, alarms_below, dispute_notes
from submerge.aggregator.alarms.disputes import AGAIN_S, AlarmDisputes
from submerge.aggregator.rows.ledger import Ledger
from submerge.protocol.alarm_status import (
    MOST_ALARMS,
    MOST_OF_NODE,
    STATES,
    Alarm,
    AlarmStatus,
    pooled,
)
from submerge.protocol.machine import Now
from submerge.protocol.messages import Reason
from submerge.protocol.settings import AggregatorSettings
from submerge_lab.simulator.samples import SampleSets
from support.alarmed import FENCE, alarm
from support.alarmed import alarm_status as status_of
from support.nodes import EPOCH, GROUP, IDS, new_incarnation, report

INTERVAL_S = 100.0
SILENT_S = 3 * INTERVAL_S
FAR = 253_402_300_799.0


class Parent:
    """The rows of an aggregator, and a clock in a test's hands."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        options = AggregatorSettings("root", None, report_every_s=interval_s)
        self.ledger = Ledger(GROUP, IDS, SampleSets(), options, created=EPOCH)
        self.steady, self._seq = 1000.0, 0

    @property
    def now(self) -> Now:
        return Now(self.steady, EPOCH + self.steady)

    def hears(self, node: str, *alarms: Alarm, **reported: Any) -> None:
        """A client reports its alarms."""
        self._take(node, status_of(*alarms), **reported)

    def hears_below(self, node: str, *alarms: Alarm, **said: Any) -> None:
        """An aggregator reports alarms of nodes below it."""
        self.ledger.admit(node, new_incarnation(1), FENCE, ())
        opened = sum(each.is_open for each in alarms)
        states = (0, len(alarms), opened, 0, 0)
        self._take(node, replace(AlarmStatus(states, alarms, opened), **said), fence=FENCE)

    def _take(self, node: str, status: AlarmStatus | None, **reported: Any) -> None:
        self._seq += 1
        reported = {"as_of": self.now.wall} | reported
        said = report(node, seq=self._seq, alarm_status=status, **reported)
        assert self.ledger.accept(said, self.now).reason is Reason.ACK

    def passes(self, seconds: float) -> None:
        self.steady += seconds

    @property
    def open(self) -> set[str]:
        return {each.alarm.name for each in self._below.believed if each.alarm.is_open}

    @property
    def over(self) -> set[str]:
        return {each.alarm.name for each in self._below.believed if not each.alarm.is_open}

    @property
    def left_out(self) -> set[tuple[str, str]]:
        return {(each.by, each.alarm.name) for each in self._below.left_out}

    @property
    def denied(self) -> dict[str, tuple[str, ...]]:
        return {each.alarm.name: each.denied_by for each in self._below.believed if each.denied_by}

    @property
    def _below(self) -> Any:
        return alarms_below(self.ledger, self.now)

    @property
    def upward(self) -> AlarmStatus:
        said = alarm_status(self.ledger, self.now, desired=0)
        assert said is not None
        return said


@pytest.fixture
def parent() -> Parent:
    return Parent()


ENDED = {"ended": 60.0}

# -- one child against another -------------------------------------------------------


def test_another_childs_end_does_not_end_an_alarm(parent):
    """It is counted, and both are named."""
    parent.hears_below("site", alarm("c", 1))
    parent.hears_below("rogue", alarm("c", 1, **ENDED))

    assert ({"c-1"}, {("rogue", "c-1")}) == (parent.open, parent.left_out)
    assert {"c-1": ("rogue",)} == parent.denied
    assert (1, [True]) == (parent.upward.open, [each.is_open for each in parent.upward.alarms])


def test_an_end_counts_once_the_other_child_says_it_too(parent):
    parent.hears_below("site", alarm("c", 1))
    parent.hears_below("rogue", alarm("c", 1, **ENDED))
    parent.hears_below("site", alarm("c", 1, ended=70.0))

    assert (set(), {"c-1"}, set()) == (parent.open, parent.over, parent.left_out)


def test_an_end_counts_once_the_other_child_was_silent_for_three_intervals(parent):
    parent.hears_below("site", alarm("c", 1))
    parent.passes(SILENT_S)
    parent.hears_below("other", alarm("c", 1, **ENDED))
    assert {"c-1"} == parent.open
    parent.passes(1.0)

    assert (set(), {"c-1"}, set()) == (parent.open, parent.over, parent.left_out)


def test_a_child_that_reports_seldom_is_silent_after_three_intervals_of_its_own(parent):
    """As seen: of the last two the longer counts. And its nodes are not called silent upward."""
    for _ in range(3):
        parent.passes(1000.0)
        parent.hears_below("site", alarm("c", 1))
    parent.hears_below("site", alarm("c", 1))
    parent.passes(2999.0)
    parent.hears_below("rogue", alarm("c", 1, **ENDED))
    assert ({"c-1"}, ()) == (parent.open, parent.upward.silent)
    parent.passes(2.0)

    assert set() == parent.open


def test_the_end_of_a_node_that_moved_counts_although_its_old_site_lives(parent):
    """The old site goes on reporting the alarm as open, and that it does not hear the node."""
    parent.hears_below("old", alarm("c", 1), alarm("d", 2))
    parent.hears_below("new", alarm("c", 1, **ENDED))
    assert {"c-1", "d-2"} == parent.open
    parent.hears_below("old", alarm("c", 1), alarm("d", 2), silent=(("c", 301),))

    assert ({"d-2"}, {"c-1"}, set()) == (parent.open, parent.over, parent.left_out)


def test_an_old_site_that_starts_again_opens_nothing():
    """It knows by its rows that the node was silent before."""
    site = Parent()
    site.hears("c", alarm("c", 1))
    for _ in range(9):
        site.passes(INTERVAL_S)
        site.hears("d")
    assert (("c", 900),) == site.upward.silent
    again = Parent()
    records = {key: each for key, each in site.ledger.changes.items() if each is not None}
    again.ledger.load(records, Now(7.0, site.now.wall + 5000.0))
    again.steady = 7.0

    assert (("c", 900),) == again.upward.silent


def test_an_aggregator_that_starts_again_believes_whom_it_believed(parent):
    """However long it was away: nobody could be heard meanwhile."""
    parent.hears_below("site", alarm("c", 1))
    parent.hears_below("rogue", alarm("c", 1, **ENDED))
    again = Parent()
    records = {key: each for key, each in parent.ledger.changes.items() if each is not None}
    again.ledger.load(records, Now(7.0, parent.now.wall + 5000.0))
    again.steady, again._seq = 7.0, 9
    again.hears_below("rogue", alarm("c", 1, **ENDED))

    assert {"c-1"} == again.open


def test_a_node_that_reports_here_is_believed_about_itself(parent):
    """Nobody else raises alarms of it, or ends them; also if it has none."""
    parent.hears("c", alarm("c", 1))
    parent.hears("d")
    parent.hears_below("rogue", alarm("c", 1, **ENDED), alarm("c", 2), alarm("d", 3))

    assert ({"c-1"}, set()) == (parent.open, parent.over)
    assert {("rogue", "c-1"), ("rogue", "c-2"), ("rogue", "d-3")} == parent.left_out
    assert 1 == parent.upward.open


def test_a_node_that_moved_below_a_child_is_believed_there_after_three_intervals(parent):
    parent.hears("c", alarm("c", 1))
    parent.hears_below("site", alarm("c", 1, **ENDED), alarm("c", 2))
    assert {"c-1"} == parent.open
    parent.passes(SILENT_S + 1)
    parent.hears_below("site", alarm("c", 1, **ENDED), alarm("c", 2))

    assert ({"c-2"}, {"c-1"}, set()) == (parent.open, parent.over, parent.left_out)


def test_an_aggregator_has_no_alarms(parent):
    parent.hears_below("rogue", alarm("rogue", 1), alarm("site", 2))
    parent.hears_below("site", alarm("c", 3))

    assert {"c-3"} == parent.open
    assert {("rogue", "rogue-1"), ("rogue", "site-2")} == parent.left_out


def test_a_node_has_nine_alarms_whoever_reports_them(parent):
    many = [alarm("c", n, ended=n + 1.0) for n in range(1, 12)]
    parent.hears("c", *many)
    parent.hears_below("site", *(replace(each, node="d") for each in many))

    assert 2 * MOST_OF_NODE == len(parent.over)
    assert {("c", "c-1"), ("c", "c-2"), ("site", "d-1"), ("site", "d-2")} == parent.left_out
    assert 2 * MOST_OF_NODE == len(parent.upward.alarms)


def test_that_children_agree_is_no_dispute(parent):
    parent.hears_below("old", alarm("c", 1, **ENDED), alarm("c", 2))
    parent.hears_below("new", alarm("c", 1, **ENDED), alarm("c", 2, worst=9.0))

    assert ({"c-2"}, {"c-1"}, set()) == (parent.open, parent.over, parent.left_out)
    assert (1, 2) == (parent.upward.open, len(parent.upward.alarms))


# -- the laws ------------------------------------------------------------------------

NODES = ("c", "d", "e")
kinds = st.tuples(
    st.sampled_from((*NODES, "x", "site", "rogue")),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from((0.0, 50.0, 5000.0, FAR)),
)
hostile = st.lists(kinds, max_size=MOST_ALARMS)
silences = st.lists(
    st.tuples(st.sampled_from(NODES), st.integers(0, 2**40)), max_size=3, unique_by=lambda n: n[0]
).map(tuple)


def forged(said: list[tuple[str, int, bool, float]]) -> list[Alarm]:
    """Return alarms that a child makes up."""
    return [
        alarm(node, n, began=at, peaked=at, **({"ended": 1.0} if over else {}))
        for node, n, over, at in said
    ]


@given(hostile, silences, st.lists(st.tuples(st.sampled_from(NODES), st.booleans()), max_size=6))
def test_whatever_one_child_says_an_open_alarm_that_another_reports_stays_open(
    said, silent, honest
):
    """In what is believed, and in the report upward, with its place; a client's and a site's."""
    parent, mine = Parent(), {}
    for n, (node, direct) in enumerate(dict(honest).items(), 1):
        mine[node] = alarm(node, n)
        if direct:
            parent.hears(node, mine[node])
    below = [each for node, each in mine.items() if not dict(honest)[node]]
    parent.hears_below("site", *below)
    parent.hears_below("rogue", *forged(said), silent=silent, open=2**20)

    names = {each.name for each in mine.values()}
    assert names <= parent.open
    assert names <= {each.name for each in parent.upward.alarms if each.is_open}
    # One level further up it comes by one child: nothing in it is too many there.
    above = Parent()
    above.hears_below("middle", *parent.upward.alarms, silent=parent.upward.silent)
    assert names <= above.open


@given(
    st.lists(
        st.tuples(st.sampled_from("cdefgh"), st.lists(st.booleans(), min_size=1, max_size=9)),
        max_size=5,
        unique_by=lambda each: each[0],
    ),
    st.booleans(),
)
def test_an_honest_fleet_is_reported_as_it_always_was(nodes, direct):
    """Byte for byte the sum of what the children report, where no bound is hit."""
    parent, statuses = Parent(), []
    for node, ends in nodes:
        alarms = [
            alarm(node, n, ended=n + 1.0 if n > 1 or end else 0.0) for n, end in enumerate(ends, 1)
        ]
        status = status_of(*alarms)
        statuses.append(status)
        if direct:
            parent.hears(node, *alarms)
        else:
            parent.ledger.admit(f"site-{node}", new_incarnation(1), FENCE, ())
            parent._take(f"site-{node}", status, fence=FENCE)

    said = alarm_status(parent.ledger, parent.now, desired=3)
    assert said is not None
    assert pooled(statuses, desired=3).packed == said.packed
    assert set() == parent.left_out


# -- clocks --------------------------------------------------------------------------


def test_an_alarm_of_the_future_begins_when_it_is_received(parent):
    """And stays so in the reports after it, with its number: a clock ahead costs no alarm."""
    latest = parent.now.wall + 30.0
    parent.hears("c", alarm("c", 0xFFFF, began=FAR, peaked=FAR))
    (first,) = parent.upward.alarms
    parent.passes(500.0)
    parent.hears("c", alarm("c", 0xFFFF, began=FAR, peaked=FAR))
    (second,) = parent.upward.alarms

    assert (latest, latest, 0xFFFF, True) == (first.began, first.peaked, first.number, True)
    assert first.revision == second.revision


def test_an_end_in_the_future_is_over_now_and_stays_as_it_was(parent):
    parent.hears("c", alarm("c", 7, began=FAR, peaked=FAR))
    parent.passes(60.0)
    ended = alarm("c", 7, began=FAR, peaked=FAR, ended=FAR - EPOCH)
    parent.hears("c", ended)
    (first,) = parent.upward.alarms
    parent.passes(500.0)
    parent.hears("c", ended, incarnation=new_incarnation(2))
    (second,) = parent.upward.alarms

    assert EPOCH + 1060.0 + 30.0 == first.ended
    assert first == second


def test_the_same_report_again_is_no_contradiction_although_its_alarm_is_of_the_future(parent):
    """The digest is of the report as it came."""
    said = report("c", seq=9, alarm_status=status_of(alarm("c", 7, began=FAR, peaked=FAR)))

    assert Reason.ACK is parent.ledger.accept(said, parent.now).reason
    parent.passes(500.0)
    assert Reason.ACK is parent.ledger.accept(said, parent.now).reason


def test_without_a_clock_of_its_own_a_parent_believes_the_nodes(parent):
    said = report("c", seq=1, alarm_status=status_of(alarm("c", 7, began=FAR, peaked=FAR)))
    parent.ledger.accept(said, parent.now._replace(synced=False))

    assert [FAR] == [each.began for each in parent.upward.alarms]


# -- counted and named ---------------------------------------------------------------


def notes(parent: Parent, node: str) -> list[Any]:
    rows = parent.ledger.rows
    (said,) = (row.report for (name, _), row in rows.items() if name == node)
    return dispute_notes(parent.ledger, said, parent.now)


def test_what_is_left_out_is_counted_once_and_named(parent):
    parent.hears_below("site", alarm("c", 1))
    for _ in range(2):
        parent.hears_below("rogue", alarm("c", 1, **ENDED))
        found = notes(parent, "rogue")
        parent.passes(1.0)
        if parent.steady == 1001.0:
            (note,) = found
            assert ("alarms contradicted", "rogue", ("c-1",)) == (
                note.what,
                note.facts["by"],
                note.facts["alarms"],
            )

    assert ([], 1) == (found, parent.ledger.disputes.contradicted)


def test_a_child_is_named_every_ten_minutes_at_the_soonest(parent):
    """However it changes what it says; each is counted."""
    parent.hears("c")
    said = []
    for n in range(1, 5):
        parent.hears_below("rogue", alarm("c", n))
        parent.hears("c")
        said.append(len(notes(parent, "rogue")))
        parent.passes(AGAIN_S / 2)

    assert ([1, 0, 1, 0], 4) == (said, parent.ledger.disputes.contradicted)


def test_a_client_with_too_many_alarms_is_counted_too(parent):
    parent.hears("c", *(alarm("c", n, ended=n + 1.0) for n in range(1, 12)))

    assert 1 == len(notes(parent, "c"))
    assert 2 == parent.ledger.disputes.contradicted


def test_children_that_are_gone_are_forgotten(parent):
    parent.hears("c")
    parent.hears_below("rogue", alarm("c", 1))
    notes(parent, "rogue")
    disputes = parent.ledger.disputes
    disputes.only(frozenset[object]())

    assert ({}, {}) == (disputes._standing, disputes._said_at)
    assert 0 == AlarmDisputes().contradicted
    assert len(STATES) == len(parent.upward.states)
