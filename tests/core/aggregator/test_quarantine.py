"""Suspicion: a client that contradicts itself is set apart, and nobody else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from submerge.aggregator.operators import quarantine as suspicion
from submerge.aggregator.operators.quarantine import AGAIN_S, Cause, Quarantine, QuarantineEntry
from submerge.protocol.machine import Keep, Note, Received, Send, SetQuarantine
from submerge.protocol.messages import Answer, Left, Reason, Report
from support.nodes import EPOCH, GROUP, Host, Now, Table, new_incarnation, report

SHRUNK = report(seq=2, ids=range(2))
"""After a report of three readings."""

TWICE = report(ids=range(4)), report(ids=range(5))
"""Under the number of that report, two other things."""


def root() -> tuple[Table, Host]:
    """A root that has heard of three readings of `c`, and of two of `d`."""
    table = Table()
    host = table.root("r")
    put(table, report())
    put(table, report("d", ids=(8, 9)))
    return table, host


def put(table: Table, message: Report, label: str = "r") -> Reason:
    """Have an aggregator hear a report that is pinned to it."""
    mine = replace(message, pinned=table.hosts[label].node.incarnation)
    (said,) = [m for m in table.tell(label, mine) if isinstance(m, Answer)]
    return said.reason


def quarantined(host: Host) -> dict[str, Cause]:
    return {node: each.cause for node, each in host.node.excluded(GROUP)[1].items()}


def test_a_client_that_says_less_is_set_apart():
    """Its rows stay, what its next life says is taken, and no model is made of either."""
    table, host = root()
    assert Reason.SHRUNK is put(table, SHRUNK)

    assert {"c": "shrunk"} == quarantined(host)
    assert Reason.ACK is put(table, report(incarnation=new_incarnation(2), ids=(5, 6)))
    assert {("c", new_incarnation(1)), ("c", new_incarnation(2)), ("d", new_incarnation(1))} == set(
        host.ledger.rows
    )
    assert 2 == host.counted == host.ledger.counts().learnt
    table.passes(100)
    assert 2 == host.model.counts.learnt


def test_two_equivocations_within_an_hour_set_it_apart():
    """One may be chance."""
    table, host = root()
    assert Reason.EQUIVOCATION is put(table, TWICE[0])
    assert {} == quarantined(host)
    table.time += AGAIN_S - 1
    assert Reason.EQUIVOCATION is put(table, TWICE[1])

    assert {"c": "equivocated twice"} == quarantined(host)
    assert {"c": QuarantineEntry("equivocated twice", EPOCH + AGAIN_S - 1)} == host.node.excluded(
        GROUP
    )[1]


def test_two_equivocations_of_two_lives_count_as_two():
    """A client that was contradicted begins another life, and so does its double."""
    table, host = root()
    put(table, TWICE[0])
    put(table, report(incarnation=new_incarnation(2)))
    put(table, report(incarnation=new_incarnation(2), ids=range(9)))

    assert {"c": "equivocated twice"} == quarantined(host)


def test_the_same_report_again_is_not_a_second():
    """Brokers say things twice, and say what they keep to whoever subscribes."""
    table, host = root()
    for _ in range(5):
        assert Reason.EQUIVOCATION is put(table, TWICE[0])

    assert {} == quarantined(host)


def test_after_an_hour_it_is_forgotten():
    """By the clock that nobody sets; also on disk."""
    table, host = root()
    put(table, TWICE[0])
    assert {"c"} == set(host.disk["suspected", GROUP])
    host.clock_error = -10 * AGAIN_S
    table.passes(1.3 * AGAIN_S)
    assert {} == host.disk["suspected", GROUP]
    put(table, TWICE[1])

    assert {} == quarantined(host)


@pytest.mark.parametrize("one", [*TWICE, SHRUNK], ids=["first", "second", "shrunk"])
def test_nothing_else_is_held_against_a_node(one):
    """Another's contradictions, its own old reports, and what is said under another name."""
    table, host = root()
    put(table, TWICE[0])
    put(table, replace(one, stamp=one.stamp._replace(node="d"), summary=None))
    for seq in (1, 4, 2, 3, 1):
        put(table, report("e", seq=seq, ids=range(10, 10 + seq)))

    assert "c" not in quarantined(host)
    assert "e" not in quarantined(host)


def test_an_aggregator_is_never_set_apart():
    """Its store may be a backup, and a whole site is below it."""
    table, host = root()
    me, fence = new_incarnation(5), b"mine" * 4
    host.node.ledger(GROUP).admit("b", me, fence, (Left(fence, 0),))
    assert Reason.ACK is put(table, report("b", me, 3, range(20, 29), fence=fence))
    for ids in (range(20, 22), range(20, 23), range(20, 24)):
        assert Reason.EQUIVOCATION is put(table, report("b", me, 3, ids, fence=fence))
    assert Reason.ACK is put(table, report("b", me, 4, range(20, 22), fence=fence))

    assert {} == quarantined(host)
    assert {} == host.disk["suspected", GROUP]


def test_a_restart_forgets_neither():
    """The first of two equivocations is on disk, and so is what the second led to."""
    table, host = root()
    put(table, TWICE[0])
    table.restarts("r")
    put(table, TWICE[1])
    assert {"c": "equivocated twice"} == quarantined(host)
    table.restarts("r")

    assert {"c": "equivocated twice"} == quarantined(host)
    assert 2 == host.counted


def test_it_is_on_disk_before_the_answer():
    """One transaction, and before anybody hears of it."""
    table, host = root()
    mine = replace(SHRUNK, pinned=host.node.incarnation)
    effects = table.step("r", Received(mine))
    kinds = [type(effect) for effect in effects]

    assert Keep is kinds[0]
    assert 1 == kinds.count(Keep)
    assert {"c"} == set(effects[0].records["quarantined", GROUP])
    assert kinds.index(Note) < kinds.index(Send)


def test_the_log_says_whom_why_and_what_to_do():
    table, host = root()
    put(table, SHRUNK)
    put(table, SHRUNK)
    (note,) = [note for note in host.notes if note.what == "node quarantined"]

    assert (GROUP, "c", "shrunk") == tuple(note.facts[key] for key in ("group", "node", "why"))
    assert "nodes release c" in note.facts["todo"]


def test_released_it_counts_again_and_nothing_is_held_against_it():
    """The operator has looked: what was before is not a first time."""
    table, host = root()
    put(table, SHRUNK)
    table.step("r", SetQuarantine(GROUP, "c", quarantined=False))
    assert 5 == host.counted
    put(table, TWICE[0])
    table.step("r", SetQuarantine(GROUP, "c", quarantined=False))
    put(table, TWICE[1])

    assert {} == quarantined(host)


def test_what_an_operator_said_first_stays_what_was_said():
    """One cause, and since when: it is not out for longer for being out twice."""
    table, host = root()
    table.step("r", SetQuarantine(GROUP, "c"))
    table.passes(60)
    put(table, SHRUNK)

    assert {"c": QuarantineEntry("operator", EPOCH)} == host.node.excluded(GROUP)[1]


def test_it_outlives_the_store():
    """An aggregator that begins an empty one takes along what is held against its nodes."""
    table = Table()
    table.root("r")
    host = table.aggregator("a", under="r")
    put(table, report(), "a")
    put(table, SHRUNK, "a")
    table.moved("a", under="q")

    assert {"c": "shrunk"} == quarantined(table.hosts["a"])
    assert {"c"} == set(host.disk["quarantined", GROUP])


def test_a_group_remembers_so_many_and_no_more(monkeypatch):
    """The longest ago is forgotten first; beyond what is set apart unasked a person must act."""
    monkeypatch.setattr(suspicion, "SLIPS", 3)
    monkeypatch.setattr(suspicion, "MOST_QUARANTINED", 2)
    table, host = root()
    for i, node in enumerate("efgh"):
        table.time += 1
        put(table, report(node, ids=(20 + i,)))
        put(table, report(node, ids=(30 + i,)))
    assert set("fgh") == set(host.disk["suspected", GROUP])
    for i, node in enumerate("fgh"):
        put(table, report(node, ids=(40 + i,)))

    assert set("fg") == set(quarantined(host))
    assert ["h"] == [n.facts["node"] for n in host.notes if n.what == "quarantine is full"]
    table.step("r", SetQuarantine(GROUP, "d"))
    assert set("fgd") == set(quarantined(host))


def test_slips_are_dated_by_a_clock_that_does_not_jump():
    """One hour of waiting: neither a restart nor a wall clock that is set makes it another."""
    quarantine = Quarantine()
    now = Now(0.0, EPOCH)
    said = (bytes([i]) * 16 for i in range(9))
    judged = []
    for wait in (0.0, AGAIN_S + 1, AGAIN_S + 1, 1.0):
        now = Now(now.steady + wait, EPOCH - now.steady * 50)
        judged.append(quarantine.judge_refused(TWICE[0], Reason.EQUIVOCATION, next(said), now))

    assert [None, None, None, "equivocated twice"] == judged
