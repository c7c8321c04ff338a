"""What happened to alarms: one notion of it, however a state came about and is looked at."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.protocol.alarm_changes import AlarmEvent, diff, is_urgent
from submerge.protocol.alarm_status import Alarm
from support import oracle
from support.alarms import HISTORY, alarm

few = st.builds(
    Alarm,
    st.sampled_from(["a", "b"]),
    st.integers(1, 3),
    began=st.just(1.0) | st.just(2.0),
    peaked=st.just(2.0) | st.just(2.5),
    ended=st.just(0.0) | st.just(3.0),
    worst=st.just(1.5) | st.just(9.0),
    cause=st.sampled_from(["spe", "t2"]),
    top=st.just(()) | st.just((("flow", 0.5),)) | st.just((("flow", 0.25), ("temp [°C]", 0.25))),
    version=st.integers(1, 2),
    withheld=st.integers(0, 2),
    verdict=st.sampled_from(["", "accepted", "rejected"]),
)
"""So few of each that two are often one alarm, and often differ in one field."""

states = st.lists(few, max_size=6)
named = st.lists(few, max_size=6, unique_by=lambda each: each.name)


def names(state) -> set[tuple[str, bytes]]:
    return {(each.name, each.revision) for each in state}


def applied(before: list[Alarm], events: list[AlarmEvent]) -> list[Alarm]:
    """A state, and what happened to it since."""
    known = {each.name: each for each in before}
    for kind, each in events:
        if kind == "gone":
            del known[each.name]
        else:
            known[each.name] = each
    return list(known.values())


# -- a revision ----------------------------------------------------------------------


@given(few, few)
def test_a_revision_is_another_exactly_where_what_counts_is(one, other):
    assert (oracle.counted(one) == oracle.counted(other)) == (one.revision == other.revision)


@pytest.mark.parametrize(
    ("known", "revision"),
    [
        (alarm(0), "c3cf1658bf14d8cc8212b0ddcbfe9f3a"),
        (alarm(0, over=True, verdict="rejected"), "498ad00c0cdcd367949cfd74e5048eeb"),
    ],
    ids=["open", "over"],
)
def test_a_revision_is_the_same_in_every_process(known, revision):
    """Written down by another process; a hash seed or a machine does not matter."""
    assert revision == known.revision.hex()


@pytest.mark.parametrize(
    "figures",
    [
        {"withheld": 6},
        {"worst": 9.0, "peaked": alarm(0).peaked + 1},
        {"cause": "t2"},
        {"top": (("temp [°C]", 1.0),)},
    ],
    ids=lambda each: next(iter(each)),
)
def test_figures_that_move_with_every_row_count_when_they_are_final(figures):
    """Or each row of an open alarm would be sent, and told, at once."""
    assert alarm(0).revision == alarm(0, **figures).revision
    over = alarm(0, over=True)
    assert over.revision != replace(over, **figures).revision


# -- events --------------------------------------------------------------------------


@given(states)
def test_nothing_happened_between_a_state_and_itself(state):
    assert [] == diff(state, list(state))


@given(named, named)
def test_events_are_those_of_the_slow_twin(before, after):
    assert oracle.alarm_events(before, after) == [tuple(each) for each in diff(before, after)]


@given(named, named)
def test_events_lead_from_the_one_state_to_the_other(before, after):
    """Nothing that counts is left out, and nothing is made up."""
    then = applied(before, diff(before, after))

    assert names(after) == names(then)
    assert [] == diff(then, after)


@given(named, named)
def test_what_is_urgent_is_that_a_revision_is_another(before, after):
    """A moved figure is an event, and no hurry."""
    assert (names(before) != names(after)) == is_urgent(diff(before, after))


@given(states, states, st.randoms(use_true_random=False))
def test_the_order_of_alarms_does_not_matter(before, after, random):
    """Nor where two rows tell of one alarm, and one is behind."""
    events = diff(before, after)
    for state in before, after:
        random.shuffle(state)

    assert events == diff(before, after)


@given(st.lists(st.integers(0, 4), min_size=1), st.lists(st.integers(0, 4), min_size=1))
def test_each_alarm_starts_once_and_ends_once(one, other):
    """Whichever states of two alarms are seen: not there, open, worse, over, judged, forgotten."""
    incarnations = [
        (
            *((), (alarm(n),), (alarm(n, worst=9.0),), (alarm(n, over=True),)),
            *((alarm(n, over=True, verdict="rejected"),), ()),
        )
        for n in range(2)
    ]
    events: list[AlarmEvent] = []
    state: tuple[Alarm, ...] = ()
    at = [0, 0]
    for n, step in [*((0, step) for step in one), *((1, step) for step in other)]:
        # A node forgets no alarm that was open when it was looked at last.
        at[n] = min(at[n] + step, 5 if at[n] >= 3 else 4)
        after = incarnations[0][at[0]] + incarnations[1][at[1]]
        events += diff(state, after)
        state = after

    for n in range(2):
        kinds = [each.kind for each in events if each.alarm.name == alarm(n).name]
        reported = [kind for kind in kinds if kind in ("start", "end")]
        assert ["start", "end"][: (at[n] > 0) + (at[n] > 2)] == reported
        assert kinds.count("gone") == (at[n] == 5)


def test_a_history_is_told_event_by_event():
    """A start and an end of each; and the verdict of a person is news."""
    kinds = [
        [(each.kind, each.alarm.name) for each in diff(before, after)]
        for before, after in pairwise(HISTORY)
    ]
    first, second = alarm(0).name, alarm(1).name
    expected = [("start", first)], [("end", first)], [("start", second)], [("end", second)]
    assert list(expected) == kinds

    judged = alarm(0, over=True, verdict="accepted")
    assert [AlarmEvent("change", judged)] == diff(HISTORY[2], (judged,))
    assert [AlarmEvent("change", alarm(0))] == diff(HISTORY[2], HISTORY[1])
    assert [AlarmEvent("gone", alarm(0))] == diff(HISTORY[1], ())
