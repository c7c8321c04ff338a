"""What a sink has delivered: each start once, each end once, also after a kill."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.aggregator.alarms.incidents import AlarmRates, incidents
from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import REMEMBERED, Deviation
from submerge_client.alarms.journal import MOST, Delivered, Journal, undelivered
from support.alarms import HISTORY, Log, alarm

GOLDEN = Path(__file__).parents[2] / "golden" / "alarms" / "journal-1.json"
"""A journal that a program wrote which knew of no revisions."""

WHOLE = GOLDEN.with_name("journal-2.json")
"""One with all that an alarm says."""


def deliver_all(delivered: Delivered, alarms) -> tuple[Delivered, list[tuple[str, str]]]:
    """Deliver all that is new."""
    said = []
    for each in undelivered(delivered, alarms):
        said.append((each.alarm.name, each.kind))
        delivered = delivered.after(each)
    return delivered, said


def states(lengths: list[bool]):
    """What a node remembers, change by change, in the course of so many alarms."""
    over = ()
    yield ()
    for n in range(len(lengths)):
        yield (alarm(n), *over)
        over = (alarm(n, over=True), *over)[:REMEMBERED]
        yield over


def test_every_state_gives_each_change_once():
    """A start, its end; then the next."""
    delivered, said = Delivered(), []
    for state in HISTORY:
        delivered, new = deliver_all(delivered, state)
        said += new

    first, second = alarm(0).name, alarm(1).name
    expected = [(first, "start"), (first, "end"), (second, "start"), (second, "end")]
    assert expected == said
    assert Delivered((), (alarm(0).name, alarm(1).name)) == delivered


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=30))
def test_a_sink_that_is_away_misses_nothing_and_repeats_nothing(heard):
    """States are skipped or heard again and again: one start and one end of each, in order."""
    every = list(states([True] * 6))
    delivered, said = Delivered(), []
    at = 0
    for step in heard:
        at = min(at + step, len(every) - 1)
        delivered, new = deliver_all(delivered, every[at])
        said += new
    delivered, new = deliver_all(delivered, every[-1])
    said += new

    names = [alarm(n).name for n in range(6)]
    assert [(name, event) for name in names for event in ("start", "end")] == said


def test_one_that_came_and_went_unheard_is_one_start_and_one_end():
    """In this order."""
    (state,) = [(alarm(0, over=True),)]

    assert [AlarmEvent("start", state[0]), AlarmEvent("end", state[0])] == undelivered(
        Delivered(), state
    )


def test_what_was_over_before_a_sink_came_it_does_not_deliver():
    """A webhook that is set up today does not ring for last week; the open alarm is delivered."""
    state = (alarm(2), alarm(1, over=True), alarm(0, over=True))

    assert [AlarmEvent("start", state[0])] == undelivered(Delivered.since(state), state)


def test_an_alarm_that_its_node_has_forgotten_is_over():
    """With its state file a node loses its alarms, and nothing else would ever end them."""
    delivered = Delivered((alarm(0),), ())
    lost = alarm(0, ended=alarm(0).peaked)

    assert [AlarmEvent("end", lost)] == undelivered(delivered, ())
    expected = [AlarmEvent("end", lost), AlarmEvent("start", alarm(1))]
    assert expected == undelivered(delivered, (alarm(1),))


def test_a_node_that_remembers_what_was_so_before_changes_nothing():
    """Its card failed, and it has the state of an hour ago: the alarm is open again, for it."""
    delivered, _ = deliver_all(Delivered(), HISTORY[2])

    assert [] == undelivered(delivered, HISTORY[1])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=30))
def test_each_start_and_each_end_is_delivered_once_whatever_states_come(seen):
    """Worse, judged, forgotten, open again: of two alarms, in any order of states."""
    delivered, said = Delivered(), []
    for looks in seen:
        state = []
        for n, look in enumerate(looks):
            over = {"over": True}
            state += [
                *([], [alarm(n)], [alarm(n, worst=9.0)], [alarm(n, **over)]),
                [alarm(n, **over, verdict="rejected")],
            ][look]
        delivered, new = deliver_all(delivered, state)
        said += new

    for n in range(2):
        looks = [each[n] for each in seen]
        begun = looks.index(next(filter(None, looks))) if any(looks) else len(looks)
        is_over = any(look not in (1, 2) for look in looks[begun:])
        expected = ["start", "end"][: any(looks) + is_over]
        assert expected == [event for name, event in said if name == alarm(n).name]


# -- incidents -------------------------------------------------------------------------------


@st.composite
def nights(draw):
    """States of alarms at some nodes, which come late, end and are forgotten, with the incidents.

    What is unusual changes with the number of nodes. In the end all alarms are over.
    """
    onsets = draw(st.lists(st.integers(0, 5000), min_size=2, max_size=7))
    states = []
    for step in range(draw(st.integers(1, 6)) + 1):
        known = []
        for n, onset in enumerate(onsets):
            last = step == 6
            look = "over" if last else draw(st.sampled_from(("unheard", "open", "open", "over")))
            if look != "unheard":
                made = alarm(0, node=f"pump-{n}", number=onset + 1, began=alarm(0).began + onset)
                ended = made.began + 600.0 if look == "over" else 0.0
                known.append(replace(made, ended=ended))
        rates = AlarmRates(draw(st.sampled_from((2, 10, 60))), 1 / (7 * 86400.0), 0, 1e9)
        states.append((*known, *incidents(known, rates)))
    whole = [
        alarm(0, node=f"pump-{n}", number=o + 1, began=alarm(0).began + o)
        for n, o in enumerate(onsets)
    ]
    return [*states, tuple(replace(each, ended=each.began + 600.0) for each in whole)]


@settings(max_examples=300)
@given(nights())
def test_an_incident_has_one_start_and_one_end_and_no_alarm_is_lost(night):
    """Whatever comes late, is forgotten or is explained by its rates in the meantime."""
    delivered, events = Delivered(), []
    for state in night:
        for each in undelivered(delivered, state):
            events.append(each)
            delivered = msgspec.convert(msgspec.to_builtins(delivered.after(each)), Delivered)
        assert [] == undelivered(delivered, state)

    assert () == delivered.open
    for name in {each.alarm.name for each in events}:
        assert ["start", "end"] == [kind for kind, each in events if each.name == name]
    alone = {each.alarm.name for each in events if not each.alarm.parts}
    covered = {part.name for each in events for part in each.alarm.parts}
    assert {each.name for each in night[-1]} <= alone | covered


def test_alarms_of_an_incident_raise_no_other_messages():
    """But what began before it has its end; one that comes when it is over is by itself."""
    several = [alarm(0, node=f"pump-{n}", number=n + 1) for n in range(4)]
    whole = incidents(several, AlarmRates(3, 1 / (7 * 86400.0), 0, 1e9))
    over = [replace(each, ended=each.began + 60.0) for each in (*several, *whole)]
    said = []
    delivered = Delivered()
    for state in (several[:1], [*several[:3], *whole], [*several, *whole], over, over[:3]):
        delivered, new = deliver_all(delivered, state)
        said += new
    first, name = several[0].name, f"incident-{several[0].name}"

    assert [(first, "start"), (name, "start"), (first, "end"), (name, "end")] == said
    late = alarm(0, node="pump-9", number=9)
    joined = incidents([*over[:4], late], AlarmRates(3, 1 / (7 * 86400.0), 0, 1e9))
    assert 5 == len(joined[0].parts)
    assert [(late.name, "start")] == deliver_all(delivered, [*over[:4], late, *joined])[1]


def test_a_sink_remembers_no_more_than_it_has_to():
    """Years of alarms are no more than the last ones."""
    delivered = Delivered()
    for n in range(100):
        delivered, _ = deliver_all(delivered, (alarm(n, over=True),))

    assert MOST == len(delivered.over)
    assert all(a < b for a, b in pairwise(delivered.over))


# -- the journal -----------------------------------------------------------------------------


def test_a_journal_outlives_its_process(tmp_path):
    """Each sink's own."""
    path = tmp_path / "c.state.alarms"
    off = (Deviation("flow", 7.5, 2.25),)
    whole = alarm(1, first=(("flow", 0.5),), deviations=off, settled=True, provisional=True)
    kept = {"a": Delivered((whole,), ("pump-1-3", "pump-1-4")), "b": Delivered((alarm(0),))}
    journal = Journal(path, kept)
    for sink, delivered in kept.items():
        journal.note(sink, delivered)
    again = Journal(path, ("a", "b", "new"))

    assert [*kept.values(), None] == [again.delivered(sink) for sink in ("a", "b", "new")]
    assert WHOLE.read_bytes() == path.read_bytes()


def test_a_journal_from_before_revisions_is_read(tmp_path):
    """After an upgrade nothing is delivered twice, and nothing that was due is lost."""
    names = "ndjson alarms.ndjson", "json 0011223344556677", "ntfy 8899aabbccddeeff"
    path = tmp_path / "c.state.alarms"
    path.write_bytes(GOLDEN.read_bytes())
    journal = Journal(path, [f"pumps: {name}" for name in names])
    other = partial(replace, node="pump-2")
    state = (
        alarm(1),
        *(other(alarm(n, over=True)) for n in (5, 3, 0)),
        alarm(0, over=True, verdict="rejected"),
    )
    said = [deliver_all(journal.delivered(f"pumps: {name}"), state)[1] for name in names]

    # The file has all but the alarm that began and ended since; the webhook has half of the rest.
    quick, half, known = other(alarm(3)).name, other(alarm(0)).name, alarm(1).name
    assert [(quick, "start"), (quick, "end")] == said[0]
    assert [(half, "end"), (known, "start"), (quick, "end")] == said[1]
    assert 9 == len(said[2])

    journal.note(f"pumps: {names[0]}", journal.delivered(f"pumps: {names[0]}"))
    journal.note(f"pumps: {names[2]}", Delivered((alarm(1),)))
    journal.note(f"pumps: {names[2]}", Delivered())
    assert GOLDEN.read_bytes() == path.read_bytes()


def test_a_sink_that_there_is_no_more_is_forgotten(tmp_path):
    """Years of changed settings leave nothing behind."""
    path = tmp_path / "c.state.alarms"
    Journal(path, ("a", "b")).note("b", Delivered())
    journal = Journal(path, ("a",))
    journal.note("a", Delivered())

    assert b'"b"' not in path.read_bytes()


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe", b'{"form": 2, "sinks": {}}', b"[1"])
def test_a_damaged_journal_is_none(damage, tmp_path):
    """It is said, and never stops a client."""
    path = tmp_path / "c.state.alarms"
    path.write_bytes(damage)
    log = Log()
    journal = Journal(path, ("a",))
    journal.note("a", Delivered((), ("pump-1-1",)))

    assert ["alarm journal unreadable, starting a new one"] == log.said()
    assert Delivered((), ("pump-1-1",)) == Journal(path, ("a",)).delivered("a")


def test_a_disk_that_is_full_is_said_once_and_tried_again(tmp_path, monkeypatch):
    """What was delivered is remembered meanwhile."""
    log = Log()
    journal = Journal(tmp_path / "c.state.alarms", ("a",))

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        for n in range(3):
            journal.note("a", Delivered((), (f"pump-1-{n}",)))
    journal.note("a", Delivered((), ("pump-1-2",)))

    assert ["alarm journal not written: a restart may send alarms again"] == log.said()
    assert Delivered((), ("pump-1-2",)) == journal.delivered("a")
    assert Delivered((), ("pump-1-2",)) == Journal(tmp_path / "c.state.alarms", ("a",)).delivered(
        "a"
    )
