"""AggregatorNode: its store, its children, its parent, and what the root makes of it all."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import STORE
from submerge.aggregator.root import AHEAD_MS
from submerge.aggregator.rows.ledger import AGGREGATOR_ROWS, CLIENT_ROWS, CLOSED
from submerge.protocol.machine import (
    Drop,
    Flush,
    Forget,
    Keep,
    Linked,
    Publish,
    Reading,
    Received,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import (
    BELIEVED,
    Answer,
    Census,
    Counts,
    Hello,
    Join,
    Joined,
    Left,
    Model,
    Reason,
    Report,
    Stamp,
)
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel, Scaling
from submerge_lab.simulator.samples import SampleSets
from support.alarm_statuses import ALARM, ALARM_STATUS
from support.nodes import (
    EPOCH,
    GROUP,
    IDS,
    ME,
    OTHER,
    Host,
    Table,
    answer,
    joined,
    kept,
    new_incarnation,
    report,
    samples,
    sent,
)
from support.strategies import rows_of

DAY = 86400.0
PATIENCE = 10.0
"""A hello is followed by a join within this time, and no second try comes within it."""


def root(**settings) -> tuple[Table, Host]:
    """A root; the test plays its children."""
    table = Table()
    return table, table.root("r", **settings)


def middle(*, top: bool = True, **settings) -> tuple[Table, Host]:
    """An aggregator that has joined a root that the test plays."""
    table = Table()
    host = table.aggregator("a", under="r", **settings)
    table.tell("a", joined(asks(table), top=top))
    return table, host


def asks(table: Table) -> Join:
    """The aggregator's newest join."""
    return table.messages("a", Join)[-1]


def reported(table: Table) -> Report:
    """The aggregator's newest report."""
    return table.reports("a")[-1]


def join(node: str = "c", number: int = 1, seq: int = 0, **fields) -> Join:
    stamp = Stamp(node, GROUP, new_incarnation(number), seq)
    return Join(stamp, **{"fence": b"", "past_fences": (), "schema": b"", **fields})


def put(table: Table, label: str, message: Report) -> Answer:
    """Have an aggregator hear a report for it; return its answer."""
    mine = replace(message, pinned=table.hosts[label].node.incarnation)
    return next(m for m in table.tell(label, mine) if isinstance(m, Answer))


def fleet(*clients: str) -> Table:
    """A root, an aggregator, and clients below it."""
    table = Table()
    table.root("r")
    table.aggregator("a")
    for name in clients:
        table.client(name)
    return table


# -- an unpinned store ------------------------------------------------------------


@pytest.mark.parametrize("message", [join(), report()], ids=["join", "report"])
def test_an_unpinned_store_names_no_incarnation(message):
    """Whoever it told its name could not be told apart from those who belong to its store."""
    table = Table()
    table.aggregator("a", under="r")
    (said,) = table.tell("a", message)

    assert (Reason.UNAVAILABLE, None) == (said.reason, said.pinned)
    assert [] == table.spread("a", Hello)
    assert {} == table.hosts["a"].disk


def test_an_unpinned_store_is_another_at_each_start():
    """It holds nothing, and nobody knows its name."""
    table = Table()
    host = table.aggregator("a", under="r")
    before = host.node.incarnation
    table.restarts("a")

    assert before != host.node.incarnation


def test_pinning_is_one_transaction():
    """Name, pin, fence, schema, model version and bans: all of them, or none."""
    table = Table()
    host = table.aggregator("a", under="r")
    effects = table.step("a", Received(joined(asks(table), top=True)))
    (keep,) = [effect for effect in effects if isinstance(effect, Keep)]

    of_group = {
        (kind, GROUP)
        for kind in (
            *("line", "schema", "asked", "version"),
            *("banned", "quarantined", "suspected", "wishes", "heard"),
        )
    }
    assert {STORE, *of_group} == set(keep.records)
    assert (host.node.incarnation, "r", ME, True) == (
        keep.records[STORE].incarnation,
        *keep.records[STORE].pin,
    )
    assert effects.index(keep) < min(
        i for i, e in enumerate(effects) if isinstance(e, Publish | Send)
    )


def test_a_pinned_store_says_that_it_is_there():
    """A new boot at each start, under the same name."""
    table = fleet("c")
    table.restarts("a")
    first, second = table.spread("a", Hello)

    assert first.boot != second.boot
    assert (first.incarnation, False) == (second.incarnation, second.top)


# -- whose store it is --------------------------------------------------------------


def test_a_restart_keeps_the_store():
    """A kill is not a loss: name, rows and number are as they were."""
    table = fleet("c")
    table.reads("c", 5)
    table.passes(900)
    before = table.hosts["a"].node.incarnation
    table.restarts("a")
    table.passes(900)

    assert before == table.hosts["a"].node.incarnation
    assert 5 == table.hosts["a"].counted == table.hosts["r"].counted


@pytest.mark.parametrize(
    ("first", "then"), [("r", "q"), (None, "r"), ("r", None)], ids=["other", "gained", "lost"]
)
def test_another_parent_is_another_store(first, then):
    """Its children start new incarnations in turn: else some reading is counted twice."""
    table = Table()
    table.root("r")
    table.root("q")
    table.aggregator("a", under=first)
    table.client("c")
    table.reads("c", 5)
    table.passes(900)
    before, child = table.hosts["a"].node.incarnation, table.hosts["c"].node.current.incarnation
    table.moved("a", under=then)

    assert before != table.hosts["a"].node.incarnation
    assert 0 == table.hosts["a"].counted
    table.passes(900)
    assert child != table.hosts["c"].node.current.incarnation


def test_a_lost_database_is_a_new_store():
    """What it had said stays at its parent, under the old name; nothing is said twice."""
    table = fleet("c")
    table.reads("c", 5)
    table.passes(900)
    table.hosts["a"].disk.clear()
    table.restarts("a")
    table.passes(15)
    table.reads("c", 3)
    table.passes(1800)

    assert 2 == len(table.hosts["r"].ledger.rows)
    assert 8 == table.hosts["r"].counted
    assert 0 == table.summaries.doubled


def test_a_copy_of_a_store_begins_an_empty_one():
    """Two processes of one store: the newcomer joins; the other is fenced, then told LINEAGE."""
    table = fleet("c", "d")
    table.reads("c", 5)
    table.passes(900)
    first = table.hosts["a"].node.incarnation
    table.copy("a", "a*")
    assert first == table.hosts["a*"].node.incarnation
    table.reads("c", 2)
    table.passes(1800)

    refused = [m.reason for m in table.messages("r", Answer) if m.reason is not Reason.ACK]
    assert [Reason.FENCED] == refused
    assert Reason.LINEAGE in [m.reason for m in table.messages("r", Joined)]
    assert first == table.hosts["a*"].node.incarnation
    assert first != table.hosts["a"].node.incarnation
    assert ["lineage"] == table.hosts["a"].why("new store")[1:]
    assert 0 == table.summaries.doubled


def test_a_restored_backup_is_given_up():
    """Its parent holds a number that it does not know that it gave out."""
    table = fleet("c")
    table.reads("c", 5)
    table.passes(900)
    backup = dict(table.hosts["a"].disk)
    table.reads("c", 5)
    table.passes(900)
    before = table.hosts["a"].node.incarnation
    table.dies("a")
    table.hosts["a"].disk = backup
    table.starts("a")
    table.passes(900)

    assert before != table.hosts["a"].node.incarnation
    assert "lineage" == table.hosts["a"].why("new store")[-1]
    assert 10 == table.hosts["r"].counted


def test_a_backup_of_the_same_fence_is_given_up_for_its_number():
    """The same process's fence, an older number: `newest` gives it away."""
    table, host = middle()
    before = host.node.incarnation
    table.restarts("a")
    table.tell("a", joined(asks(table), seq=7, top=True))

    assert before != host.node.incarnation
    assert "the parent holds later reports than this node has sent" in host.why("new store")


def test_an_answer_gives_a_backup_away_as_well():
    """At any answer, not at joins alone."""
    table, host = middle()
    before = host.node.incarnation
    stamp = Stamp("a", GROUP, before, 1)
    table.tell("a", answer(stamp, newest=9, fence=asks(table).fence))

    assert before != host.node.incarnation


def test_a_parent_from_a_backup_takes_its_children_back():
    """It holds a fence that they remember: it is the parent that is behind."""
    table = fleet("c")
    table.reads("c", 5)
    table.passes(900)
    backup = dict(table.hosts["r"].disk)
    before = table.hosts["a"].node.incarnation
    for _ in range(3):
        table.restarts("a")
        table.reads("c", 2)
        table.passes(900)
    table.dies("r")
    table.hosts["r"].disk = backup
    table.starts("r")
    table.passes(5000)

    assert before == table.hosts["a"].node.incarnation
    assert 11 == table.hosts["r"].counted


@pytest.mark.parametrize("reason", [Reason.STALE, Reason.EQUIVOCATION])
def test_an_answer_that_closes_a_store(reason):
    """As for a client: an empty one, created above the floor."""
    table, host = middle()
    before, floor = host.node.incarnation, new_incarnation(0).created_ms + 10**9
    said = Stamp("a", GROUP, before, 0)
    table.tell("a", answer(said, reason, floor=floor, fence=asks(table).fence))

    assert before != host.node.incarnation
    assert floor + 1 == host.node.incarnation.created_ms


def test_a_lost_root_is_no_loss():
    """Its children rebind, unchanged, to the root in its place, and say everything again."""
    table = fleet("c")
    table.client("d", under="r")
    table.reads("c", 5), table.reads("d", 4)
    table.passes(900)
    stores = table.hosts["a"].node.incarnation, table.hosts["d"].node.current.incarnation
    table.hosts["r"].disk.clear()
    table.restarts("r")
    table.passes(900)

    assert 9 == table.hosts["r"].counted
    assert stores == (
        table.hosts["a"].node.incarnation,
        table.hosts["d"].node.current.incarnation,
    )
    assert table.hosts["r"].node.incarnation == table.hosts["a"].disk[STORE].pin.incarnation


# -- fences -------------------------------------------------------------------------


def test_a_fence_is_kept_before_the_join_that_carries_it():
    """Else a restart between the two would forget that it has spoken."""
    table, _ = middle()
    disk = dict(table.hosts["a"].disk)
    table.dies("a")
    table.starts("a")
    host = table.hosts["a"]
    old = disk["line", GROUP]
    effects = host.make(np.random.default_rng(5)).step(Start(disk), table.now("a"))
    fence = sent(effects, Join)[0].fence
    keeps = [i for i, e in enumerate(effects) if isinstance(e, Keep)]
    joins = [i for i, e in enumerate(effects) if isinstance(e, Send)]

    assert fence == kept(effects)["line", GROUP].fence
    assert (*old.past, Left(old.fence, old.seq)) == kept(effects)["line", GROUP].past
    assert max(keeps) < min(joins)


def test_an_answer_for_another_process_of_the_store_is_not_taken():
    """On a shared way a copy hears what the other is told: the fence says whom it is for."""
    table, host = middle()
    before = host.node.incarnation
    table.restarts("a")
    mine = asks(table)
    table.tell("a", joined(mine._replace(fence=b"hers" * 4), Reason.LINEAGE))
    assert before == host.node.incarnation
    table.tell("a", joined(mine, Reason.LINEAGE))

    assert before != host.node.incarnation


def test_what_a_twin_is_told_confirms_nothing():
    """Its report had the same number, and said something else: ours is still to be taken."""
    table, _ = middle(report_every_s=100)
    put(table, "a", report("c", new_incarnation(1), 1, range(3)))
    upward = reported(table)
    table.tell("a", answer(upward, fence=b"hers" * 4, root=ME, durable=upward.stamp.seq))
    many = len(table.reports("a"))
    assert 0 == put(table, "a", report("c", new_incarnation(1), 2, range(3))).durable
    table.passes(30)

    assert many < len(table.reports("a"))


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.name)
def test_what_a_twin_is_told_closes_nothing(reason):
    """EQUIVOCATION is between it and the parent; the process that is let in stays."""
    table, host = middle()
    put(table, "a", report())
    before, joins = host.node.incarnation, len(table.messages("a", Join))
    told_her = answer(reported(table), reason, fence=b"hers" * 4, newest=99, pinned=OTHER)
    assert [] == table.tell("a", told_her)

    assert before == host.node.incarnation
    assert joins == len(table.messages("a", Join))
    assert 3 == host.counted


def test_every_answer_echoes_the_fence():
    """Taken, fenced, for another parent, or for a group that is not here: all of them."""
    table, host = root()
    table.tell("r", join("a", fence=b"f" * 16))
    mine = {"fence": b"f" * 16, "pinned": host.node.incarnation}
    elsewhere = Stamp("a", "hall", new_incarnation(1), 1)
    messages = [
        report("a", **mine),
        report("a", **mine | {"fence": b"g" * 16}),
        report("a", **mine | {"pinned": OTHER}),
        replace(report("a", **mine), stamp=elsewhere),
    ]
    said = [next(m for m in table.tell("r", m) if isinstance(m, Answer)) for m in messages]

    assert [m.fence for m in messages] == [m.fence for m in said]
    assert [Reason.ACK, Reason.FENCED, Reason.WRONG_PARENT, Reason.UNAVAILABLE] == [
        m.reason for m in said
    ]


def test_a_report_that_waits_goes_out_under_the_new_fence():
    """FENCED: it joins again, and says the same report once more, if it is let in."""
    table, host = middle()
    put(table, "a", report())
    first = reported(table)
    table.tell("a", answer(first, Reason.FENCED))
    again = asks(table)
    assert again.fence != first.fence
    assert first.fence in dict(again.past_fences)
    table.tell("a", joined(again, top=True))
    table.step("a", Tick())

    assert (first.stamp, again.fence) == (reported(table).stamp, reported(table).fence)
    assert host.node.incarnation == first.stamp.incarnation


def test_64_fences_are_remembered_and_the_one_that_was_let_in():
    """The parent may be restored from a backup of so many starts ago, or just be away."""
    table, _ = middle()
    let_in = asks(table).fence
    for _ in range(80):
        table.restarts("a")
    mine = asks(table)

    assert let_in in dict(mine.past_fences)
    assert 64 == len(dict(mine.past_fences))


def test_nothing_may_have_been_said_under_a_fence_after_it_was_left():
    """Two processes of one store, and a parent that was restored to before it heard of the second.

    It lets the first go on, and then the second in, whose past holds the first's fence: what
    the first has said since would be replaced (seed 489 of swarm-1 found it).
    """
    table, _ = root()
    first, second, third = (bytes([n]) * 16 for n in range(3))
    table.step("r", Received(join("a", fence=first)))
    put(table, "r", report("a", ids=range(5), seq=9, fence=first))
    put(table, "r", report("a", ids=range(8), seq=10, fence=first))
    reported = [
        table.tell("r", join("a", fence=third, past_fences=(Left(first, seq), Left(second, 11))))
        for seq in (9, 10)
    ]

    assert [Reason.LINEAGE, Reason.ACK] == [
        m.reason for said in reported for m in said if isinstance(m, Joined)
    ]


def test_a_retried_join_repeats_its_fence():
    """A fence is drawn at a start, not at a try."""
    table = Table()
    table.aggregator("a", under="r")
    table.passes(600)

    assert len(table.messages("a", Join)) > 2
    assert 1 == len({m.fence for m in table.messages("a", Join)})


def test_the_parent_keeps_the_new_fence_before_it_answers():
    """The join of an aggregator changes the store; a client's does not."""
    table, _ = root()
    effects = table.step("r", Received(join("a", fence=b"f" * 16)))

    assert [Keep, Send] == [type(e) for e in effects if isinstance(e, Keep | Send)][:2]
    assert {new_incarnation(1): b"f" * 16} == kept(effects)["member", GROUP, "a"].fences
    assert {} == kept(table.step("r", Received(join("c"))))


def test_a_report_without_the_fence_is_not_taken():
    """FENCED: another process speaks for this store."""
    table, host = root()
    table.tell("r", join("a", fence=b"f" * 16))

    assert Reason.FENCED is put(table, "r", report("a", fence=b"g" * 16)).reason
    assert 0 == host.counted


def test_a_number_is_kept_before_it_is_spoken():
    """Else a restart could give it out twice, for two reports."""
    table, host = middle()
    effects = table.step("a", Received(report(pinned=host.node.incarnation)))
    (said,) = sent(effects, Report)
    keeps = [i for i, e in enumerate(effects) if isinstance(e, Keep)]
    sends = [i for i, e in enumerate(effects) if isinstance(e, Send)]

    assert said.stamp.seq == kept(effects)["line", GROUP].seq
    assert max(keeps) < min(sends)


def test_a_number_is_given_out_once():
    """Through any number of restarts, answered or not."""
    table, _ = middle(report_every_s=100)
    for n in range(1, 8):
        put(table, "a", report(seq=n, ids=range(n)))
        table.passes(130)
        table.restarts("a")
        table.tell("a", joined(asks(table), top=True))
    said = {r.stamp.seq: r.counts.learnt for r in table.reports("a")}

    assert len(said) >= 7
    for message in table.reports("a"):
        assert said[message.stamp.seq] == message.counts.learnt


# -- children -------------------------------------------------------------------------


def test_an_acknowledgement_rests_on_what_is_kept():
    """The Keep that holds the row comes before the answer, and holds all of it."""
    table, host = root()
    message = report(pinned=host.node.incarnation)
    effects = table.step("r", Received(message))
    keeps = [i for i, e in enumerate(effects) if isinstance(e, Keep)]
    answers = [i for i, e in enumerate(effects) if isinstance(e, Send)]
    rows = [record for key, record in kept(effects).items() if key[0] == "row"]

    assert [message] == [row.report for row in rows]
    assert max(keeps) < min(answers)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4), st.booleans()), max_size=15))
def test_nothing_is_acknowledged_that_a_restart_forgets(deliveries):
    """After each answer the store alone comes to the same rows."""
    table, host = root()
    for node, seq, final in deliveries:
        ids = range(10 * node, 10 * node + seq)
        put(table, "r", report(f"c{node}", new_incarnation(node), seq, ids, final=final))
        before = host.ledger.summary(), host.ledger.counts(), set(host.ledger.rows)
        table.restarts("r")

        assert before == (host.ledger.summary(), host.ledger.counts(), set(host.ledger.rows))


def test_a_report_for_another_parent_is_told_so():
    """Directly: the child learns who is here."""
    table, host = root()
    (said,) = table.tell("r", report(pinned=OTHER))

    assert (Reason.WRONG_PARENT, host.node.incarnation, True) == (
        said.reason,
        said.pinned,
        said.top,
    )
    assert 0 == host.counted


def test_what_is_refused_is_not_kept():
    """WRONG_PARENT, UNAVAILABLE, LINEAGE: the store is as it was."""
    table, host = root()
    table.tell("r", join("a", fence=b"f" * 16))
    before = dict(host.disk)
    said = [
        *table.tell("r", report(pinned=OTHER)),
        *table.tell("r", replace(report(), stamp=Stamp("c", "hall", new_incarnation(1), 1))),
        *table.tell("r", join("a", fence=b"g" * 16)),
    ]

    assert [Reason.WRONG_PARENT, Reason.UNAVAILABLE, Reason.LINEAGE] == [m.reason for m in said]
    assert before == host.disk


def test_on_a_shared_way_it_is_somebody_elses():
    """Not answered: another aggregator's child hears nothing wrong."""
    table, host = root()

    assert [] == table.tell("r", report(pinned=OTHER), shared=True)
    assert 0 == host.counted


def named(*channels: str) -> Schema:
    """A schema of channels like "flow l/s"."""
    return Schema(tuple(Channel(*channel.split()) for channel in channels))


@pytest.mark.parametrize(
    ("first", "then", "counted"),
    [
        (named("flow l/s"), named("flow l/s", "heat K"), 3),
        (named("flow l/s", "heat K"), named("heat K"), 3),
        (
            replace(IDS, scaling=Scaling((0.0,), (1.0,))),
            replace(IDS, scaling=Scaling((0.0,), (2.0,))),
            0,
        ),
        (IDS, replace(IDS, half_life=60.0), 0),
        (named("flow l/s"), replace(named("flow l/s"), center="own"), 0),
    ],
    ids=["more channels", "fewer channels", "no names", "half-life", "center"],
)
def test_a_root_goes_over_to_the_schema_it_is_configured_for(first, then, counted):
    """At the next start, under the same store: rows are read as of it, or leave the model."""
    table = Table(schema=first)
    before = table.root("r").node.incarnation
    put(table, "r", report(fingerprint=first.fingerprint))
    assert 3 == table.hosts["r"].counted
    host = table.moved("r", under=None, plans={GROUP: GroupPlan(table.summaries, then)})

    assert (before, then) == (host.node.incarnation, host.ledger.schema)
    assert then.canonical == host.disk["schema", GROUP] == host.model.schema
    assert counted == host.counted
    assert then.canonical == table.tell("r", join(schema=then.canonical))[0].schema


@pytest.mark.parametrize(
    ("theirs", "lines"),
    [
        (named("flow l/s"), ["missing channel: heat"]),
        (named("flow l/s", "heat K", "z"), ["extra channel: z"]),
        (named("flow l/s", "heat C"), ["unit of heat: expected 'K', got 'C'"]),
        (named("heat K", "flow l/s"), ["order: expected flow, heat, got heat, flow"]),
        (named("flow m3", "z"), ["missing channel: heat", "extra channel: z", "unit of flow: "]),
        (replace(named("flow l/s", "heat K"), half_life=9.0), ["half_life: expected None, got 9"]),
    ],
    ids=["missing", "extra", "unit", "order", "several", "half-life"],
)
def test_other_channels_are_refused_line_by_line(theirs, lines):
    """Whoever installed the sensor reads what to change; nothing is kept of the attempt."""
    table = Table(schema=named("flow l/s", "heat K"))
    host = table.root("r")
    before = dict(host.disk)
    (said,) = table.tell("r", join(schema=theirs.canonical))

    assert (Reason.SCHEMA, len(lines)) == (said.reason, len(said.lines))
    assert all(got.startswith(line) for line, got in zip(lines, said.lines, strict=True))
    assert before == host.disk


def test_a_schema_that_is_none_is_refused():
    """Foreign bytes cost that message, and nothing else."""
    table, _ = root()
    (said,) = table.tell("r", join(schema=b"{}"))

    assert Reason.SCHEMA is said.reason
    assert said.lines


def test_a_group_that_is_not_served_is_refused():
    """The answer names those that are."""
    table, _ = root()
    message = join()
    (said,) = table.tell("r", message._replace(stamp=message.stamp._replace(group="hall")))

    assert Reason.SCHEMA is said.reason
    assert "no group 'hall' here, but room" in said.lines[0]


def test_a_banned_node_stays_out():
    """Its readings leave, its joins and reports are refused, also after a restart."""
    table, host = root()
    put(table, "r", report())
    table.step("r", Forget(GROUP, "c", ban=True))
    table.restarts("r")

    assert 0 == host.counted
    assert Reason.BANNED is put(table, "r", report(incarnation=new_incarnation(2))).reason
    assert Reason.BANNED is table.tell("r", join(number=3))[0].reason


@pytest.mark.parametrize(
    "event",
    [
        Forget(GROUP, "d"),
        Drop(GROUP, "d", new_incarnation(1)),
        Drop(GROUP, "d", None),
        Forget("x", "c"),
    ],
    ids=["forget", "drop", "drop what closed ones left", "no such group"],
)
def test_a_node_that_nobody_knows_is_noted(event):
    """It may be further down, or misspelt: the operator hears so, and nothing changes."""
    table, host = root()
    put(table, "r", report("c"))
    table.passes(100)
    before, models = dict(host.disk), len(table.spread("r", Model))
    table.step("r", event)
    table.passes(100)

    facts = [note.facts for note in host.notes if note.what == "unknown node"]
    assert [{"group": event.group, "node": event.node}] == facts
    assert before == host.disk
    assert models == len(table.spread("r", Model))


def test_a_node_is_banned_before_it_is_known():
    """It is noted as well: whoever misspelt the name reads so."""
    table, host = root()
    table.step("r", Forget(GROUP, "d", ban=True))

    assert 1 == len([note for note in host.notes if note.what == "unknown node"])
    assert Reason.BANNED is put(table, "r", report("d")).reason
    assert 0 == host.counted


def test_a_forgotten_client_starts_from_zero():
    """Its running incarnation gets STALE; the next one is counted."""
    table = fleet("c", "d")
    table.reads("c", 5), table.reads("d", 4)
    table.passes(900)
    table.step("a", Forget(GROUP, "c"))
    table.run()
    table.passes(900)
    assert 4 == table.hosts["r"].counted
    table.reads("c", 2)
    table.passes(900)
    assert 4 == table.hosts["r"].counted  # STALE came with these two
    table.reads("c", 3)
    table.passes(900)

    assert 7 == table.hosts["r"].counted
    assert 0 == table.summaries.doubled


def test_forgetting_gives_the_model_of_a_fleet_that_never_had_the_node():
    """To the byte, at the root, two levels up; with real subspaces."""
    schema, kind = Schema.anonymous(5), Subspaces(2, oversample=1)
    ends = []
    for nodes in (("c", "d", "gone"), ("c", "d")):
        table = Table(kind, schema)
        table.root("r"), table.aggregator("a"), table.aggregator("b")
        for i, node in enumerate(("c", "d", "gone")):
            if node in nodes:
                table.client(node, under="b" if node == "d" else "a")
                table.step(node, Reading(rows_of("decaying", 200, 5, seed=i)))
        table.passes(1500)
        if "gone" in nodes:
            assert 600 == table.hosts["r"].ledger.counts().learnt
            table.step("a", Forget(GROUP, "gone"))
        table.run()
        table.passes(1500)
        ends.append(table.hosts["r"].model)
    with_it, without = ends

    assert 400 == with_it.counts.learnt
    assert kind.packed(without.summary) == kind.packed(with_it.summary)


def test_an_operator_drops_a_dead_aggregators_row():
    """What it said and nobody says any more; its other rows stay."""
    table, host = root()
    for n in (1, 2):
        fence = bytes([n]) * 16
        table.tell("r", join("a", n, fence=fence))
        put(table, "r", report("a", new_incarnation(n), ids=[n], fence=fence))
    table.step("r", Drop(GROUP, "a", new_incarnation(1)))

    assert samples([2]) == host.ledger.summary()


def test_two_stores_of_one_aggregator_interleaved():
    """Late, twice and out of order: the rows stay disjoint, both count, nothing is lost."""
    first = [report("a", new_incarnation(1), n, range(n), fence=b"1" * 16) for n in range(1, 5)]
    second = [
        report("a", new_incarnation(2), n, range(50, 50 + n), fence=b"2" * 16) for n in range(1, 5)
    ]
    for seed in range(30):
        table, host = root()
        table.tell("r", join("a", 1, fence=b"1" * 16))
        table.tell("r", join("a", 2, fence=b"2" * 16))
        order = np.random.default_rng(seed).permutation([*range(8), *range(8)])
        for i in order:
            put(table, "r", (first + second)[i])

        assert samples([*range(4), *range(50, 54)]) == host.ledger.summary()
        assert 2 == len(host.ledger.rows)
        assert 0 == table.summaries.doubled


def test_rows_of_a_reborn_aggregator_fold_beyond_four():
    """A dead store's last row stays; of more than four, the longest silent is folded."""
    table = fleet("c")
    for _ in range(7):
        table.reads("c", 2)
        table.passes(900)
        table.hosts["a"].disk.clear()
        table.restarts("a")
        table.passes(900)
    root = table.hosts["r"]

    assert AGGREGATOR_ROWS == len(root.ledger.rows)
    assert 14 == root.counted
    assert 0 == table.summaries.doubled


def test_silent_lives_are_sealed_in_time():
    """After `seal_after_s`, once another life of the node was heard later."""
    table = fleet("c")
    table.reads("c", 5)
    table.passes(900)
    table.hosts["c"].disk.clear()  # no card: no final comes
    table.restarts("c")
    table.reads("c", 5)
    table.passes(3000)
    assert 2 == len(table.hosts["a"].ledger.rows)
    table.passes(3600)

    assert 1 == len(table.hosts["a"].ledger.rows)
    assert 10 == table.hosts["r"].counted


@pytest.mark.slow
@pytest.mark.parametrize("make", [root, middle])
def test_a_client_that_reboots_for_ever_costs_no_memory(make):
    """10,000 boots: six rows, 64 closed names, one sealed row; every reading is there."""
    table, host = make()
    weights = []
    for n in range(10_000):
        table.time += 30
        message = report("c", new_incarnation(30_000 * n), ids=[n % 512], counts=Counts(1))
        assert Reason.ACK is put(table, host.label, message).reason
        table.wire.clear(), table.said.clear(), table.published.clear()
        if n % 1000 == 999:
            weights.append(len(pickle.dumps((host.node, host.disk))))
    ledger = host.ledger

    assert len(ledger.rows) <= CLIENT_ROWS
    assert len(ledger.presence.heard) == len(ledger.rows)
    assert CLOSED == len(ledger.member("c").closed)
    assert Counts(10_000) == ledger.counts()
    # Numbers grow by a digit, and what is due now and then is due or not.
    np.testing.assert_allclose(weights[1:], weights[1], rtol=0.05)


# -- what the root holds for certain --------------------------------------------------


def test_a_verdict_travels_up_at_once_and_figures_do_not():
    """As an alarm does: an operator sees at the root that the node has heard."""
    table, _ = middle(report_every_s=100)
    child = report("c", new_incarnation(1), 1, range(3))
    began = replace(ALARM, node="c", began=EPOCH, peaked=EPOCH)
    over = replace(began, ended=EPOCH + 1)
    states = {
        "start": began,
        "figures": replace(began, worst=9.0, withheld=99),
        "over": over,
        "verdict": replace(over, verdict="rejected"),
    }
    said = {}
    for seq, (what, alarm) in enumerate(states.items(), 1):
        stamp = child.stamp._replace(seq=seq)
        put(
            table,
            "a",
            replace(child, stamp=stamp, alarm_status=replace(ALARM_STATUS, alarms=(alarm,))),
        )
        said[what] = reported(table).alarms == (alarm,)
        table.tell("a", answer(reported(table), root=ME))

    assert {"start": True, "figures": False, "over": True, "verdict": True} == said


def test_durable_is_what_the_root_has():
    """An aggregator acknowledges before its parent knows: `durable` says what the root knows."""
    table, _ = middle(report_every_s=100)
    child = report("c", new_incarnation(1), 1, range(3))
    first = put(table, "a", child)
    assert (1, 0) == (first.newest, first.durable)
    table.passes(130)
    upward = reported(table)
    second = put(table, "a", replace(child, stamp=child.stamp._replace(seq=2)))
    assert (2, 0) == (second.newest, second.durable)  # said, and not answered
    table.tell("a", answer(upward, root=ME, durable=upward.stamp.seq))
    third = put(table, "a", replace(child, stamp=child.stamp._replace(seq=3)))

    # The root has the report that held 1; 2 came after it was made.
    assert (3, 1, ME) == (third.newest, third.durable, third.root)


def test_durable_reaches_a_client_through_two_levels():
    """Root, aggregator, aggregator, client: the number is of the client's own reports."""
    table = Table()
    table.root("r")
    table.aggregator("a2", under="r", report_every_s=50)
    table.aggregator("a1", under="a2", report_every_s=50)
    host = table.client("c", under="a1", report_every_s=50)
    seen = []
    for _ in range(30):
        table.reads("c", 1)
        table.passes(50)
        node = host.node
        there = table.hosts["r"].counted
        told_to_root = [r for r in table.reports("c") if r.stamp.seq <= node.current.durable]
        seen.append(max((r.counts.learnt for r in told_to_root), default=0))

        assert seen[-1] <= there
    assert seen == sorted(seen)
    assert seen[-1] >= 20
    assert table.hosts["r"].node.incarnation == host.node.current.root


def test_durable_begins_anew_under_another_root():
    """Another root holds nothing for certain until it says so."""
    table, _ = middle(report_every_s=100)
    put(table, "a", report("c", new_incarnation(1), 1, range(3)))
    table.passes(130)
    table.tell("a", answer(reported(table), root=ME, durable=reported(table).stamp.seq))
    assert 1 == put(table, "a", report("c", new_incarnation(1), 2, range(3))).durable
    table.tell("a", Hello("r", OTHER, True, boot=5))
    table.passes(PATIENCE)
    table.tell("a", joined(asks(table), pinned=OTHER, top=True))
    table.passes(1)
    upward = reported(table)
    table.tell("a", answer(upward, pinned=OTHER, root=OTHER, durable=0))
    again = put(table, "a", report("c", new_incarnation(1), 3, range(3)))

    assert (OTHER, 0) == (again.root, again.durable)


def test_an_answer_of_a_parent_that_is_gone_is_not_taken():
    """It speaks of another store: what it held is no comfort."""
    table, _ = middle(report_every_s=100)
    put(table, "a", report("c", new_incarnation(1), 1, range(3)))
    table.passes(130)
    upward = reported(table)
    table.tell("a", Hello("r", OTHER, True, boot=5))
    table.passes(PATIENCE)
    table.tell("a", joined(asks(table), pinned=OTHER, top=True))
    table.tell("a", answer(upward, pinned=ME, root=ME, durable=upward.stamp.seq))
    again = put(table, "a", report("c", new_incarnation(1), 2, range(3)))

    assert 0 == again.durable
    assert (OTHER, upward.counts) == (reported(table).pinned, reported(table).counts)


# -- models -----------------------------------------------------------------------------


def test_versions_rise():
    """With every model, though the clock is set back by an hour each time."""
    table, host = root()
    for n in range(1, 6):
        put(table, "r", report(seq=n, ids=range(n)))
        host.clock_error -= 3600
        table.passes(100)
    versions = [model.version for model in table.spread("r", Model)]

    assert versions == sorted(set(versions))
    assert len(versions) >= 5


def test_versions_survive_a_restart():
    """A version is kept before it is sent; the next process goes on above it."""
    table, host = root()
    effects = table.step("r", Flush())
    assert [host.model.version] == [v for k, v in kept(effects).items() if k[0] == "version"]
    assert isinstance(effects[0], Keep)
    before = host.model.version
    host.clock_error = -1e9
    table.restarts("r")

    assert before < host.model.version


def test_a_version_rises_above_those_in_use():
    """A lost root whose clock is years behind does not freeze the fleet."""
    table = fleet("c")
    table.hosts["r"].clock_error = 5e8  # 16 years ahead
    table.restarts("r")
    table.reads("c", 5)
    table.passes(900)
    before = table.hosts["c"].node.model.version
    table.hosts["r"].disk.clear()
    table.hosts["r"].clock_error = 0.0
    table.restarts("r")
    assert table.hosts["r"].model.version < before
    table.reads("c", 5)
    table.passes(1500)

    assert before < table.hosts["c"].node.model.version == table.hosts["r"].model.version


def test_a_version_above_all_clocks_is_a_lie():
    """One node is believed for a century; what is above is no count of milliseconds."""
    table, host = root()
    before = host.model.version
    put(table, "r", report("c", version=BELIEVED + 1))
    put(table, "r", report("e", version=BELIEVED))
    table.passes(100)
    assert before < host.model.version < before + 10**6
    put(table, "r", report("d", version=before + AHEAD_MS // 2))
    table.passes(100)

    # The lie does not hide what others truthfully use.
    assert before + AHEAD_MS // 2 + 1 == host.model.version


def test_one_node_cannot_make_the_version_run_away():
    """Whatever one node says, in however many incarnations, directly or through a site."""
    table = Table()
    root = table.root("r")
    site = table.aggregator("a")
    table.passes(100)
    for i in range(1, 6):
        lie = report("liar", new_incarnation(i), ids=[i], version=BELIEVED)
        for label in ("r", "a"):
            put(table, label, lie)
        table.passes(400)

    assert root.model.version < (EPOCH + table.time) * 1000 + 10**6
    assert site.node.model(GROUP).version == root.model.version


def test_a_century_ahead_a_root_that_is_lost_again_still_rises():
    """What one lie may cost at most: versions count on from there, and nothing freezes."""
    table = fleet("c")
    root = table.hosts["r"]
    high = int(EPOCH * 1000) + AHEAD_MS
    table.tell("r", report("liar", ids=[999], version=high, pinned=root.node.incarnation))
    table.reads("c", 5)
    table.passes(900)
    used = table.hosts["c"].node.model.version
    assert high < used
    root.disk.clear()
    table.restarts("r")
    table.reads("c", 5)
    table.passes(2000)

    assert used < table.hosts["c"].node.model.version == root.model.version


def test_a_version_that_three_nodes_use_is_believed_up_to_the_highest():
    """A fleet that is there already gets models again from a root that knows nothing."""
    table = fleet("c")
    root = table.hosts["r"]
    for i in range(3):
        told = report(f"n{i}", ids=[900 + i], version=BELIEVED, pinned=root.node.incarnation)
        table.tell("r", told)
    seen = []
    for _ in range(3):
        table.reads("c", 5)
        table.passes(900)
        assert root.model.version == table.hosts["c"].node.model.version
        seen.append(root.model.version)

    assert BELIEVED < seen[0] < seen[1] < seen[2]
    assert 16 + 2 == table.hosts["c"].node.model.counts.learnt


def test_a_model_says_how_much_it_counts():
    """Coverage: learnt over all that are known of; nodes; silence in powers of two."""
    table, host = root()
    put(table, "r", report("c", ids=range(6), counts=Counts(6, withheld=3, lost=1)))
    put(table, "r", report("d", ids=range(6, 8)))
    table.step("r", Flush())
    model = host.model

    assert 8 / 12 == model.coverage
    assert (2, Counts(8, 3, 1)) == (model.nodes, model.counts)
    assert (2.0, 2.0, 2.0) == model.staleness


def test_staleness_counts_silence():
    """Half were heard within 2 s, the other half 100 s ago."""
    table, host = root()
    put(table, "r", report("c"))
    table.passes(100)
    put(table, "r", report("d", ids=[9]))
    table.step("r", Flush())

    assert (2.0, 128.0, 128.0) == host.model.staleness


def test_silence_is_added_up_over_levels():
    """The middle of a client's bin when its aggregator last spoke, and the time since then."""
    table, host = root()
    table.tell("r", join("a", fence=b"f" * 16))
    counted = Census(3, (2, 0, 0, 0, 0, 0, 1))
    put(table, "r", report("a", fence=b"f" * 16, census=counted))
    table.passes(30)
    table.step("r", Flush())
    # 1.5 s and 30 s twice, 96 s and 30 s once.
    assert (3, (32.0, 128.0, 128.0)) == (host.model.nodes, host.model.staleness)
    table.passes(970)
    table.step("r", Flush())

    assert (3, (1024.0, 2048.0, 2048.0)) == (host.model.nodes, host.model.staleness)


def test_nodes_below_an_aggregator_are_counted_above():
    """Clients, not aggregators; each once, though it has lived twice."""
    table = fleet("c", "d", "e")
    for node in "cde":
        table.reads(node, 5)
    table.passes(900)
    table.restarts("e")
    table.reads("e", 5)
    table.passes(900)

    assert 3 == table.hosts["r"].model.nodes
    assert 20 == table.hosts["r"].model.counts.learnt


def test_a_model_is_made_no_faster_than_its_setting():
    """Reports come in bursts; children hear one model for all of them."""
    table, _ = root(model_every_s=60)
    table.passes(100)
    before = len(table.spread("r", Model))
    for n in range(1, 50):
        put(table, "r", report(seq=n, ids=range(n)))
        table.passes(1)

    assert before + 1 == len(table.spread("r", Model))


def test_an_aggregator_hands_a_newer_model_down_once():
    """To all children; an older one, or the same, stays where it is."""
    table = fleet("c")
    table.passes(60)
    model = table.hosts["r"].model
    said = len(table.spread("a", Model))
    for each in (model, replace(model, version=model.version - 1), model):
        table.tell("a", each)
    assert said == len(table.spread("a", Model))
    table.tell("a", replace(model, version=model.version + 1))

    assert said + 1 == len(table.spread("a", Model))


def test_a_child_with_an_older_model_is_given_the_newest():
    """With the answer to its report."""
    table, host = root()
    message = report(pinned=host.node.incarnation, version=host.model.version - 1)
    said = table.tell("r", message)

    assert [Answer, Model] == [type(m) for m in said]


def test_two_groups_do_not_mix():
    """Two schemas on one aggregator: each has its rows, its way up, and its model."""
    wide, sets = Schema.anonymous(2), SampleSets()
    table = Table(sets)
    plans = {"room": GroupPlan(sets, IDS), "hall": GroupPlan(sets, wide)}
    below = {"room": GroupPlan(sets), "hall": GroupPlan(sets)}
    table.root("r", plans=plans)
    table.aggregator("a", plans=below)
    table.client("c")
    table.client("h", schema=wide, group="hall")
    table.reads("c", 3)
    table.step("h", Reading(np.array([[100.0, 0.0], [101.0, 0.0]])))
    table.passes(900)
    node = table.hosts["r"].node

    assert samples(range(3)) == node.model("room").summary
    assert samples([100, 101]) == node.model("hall").summary
    assert 2 == table.hosts["h"].node.model.counts.learnt


def test_the_same_messages_make_the_same_decisions():
    """Same state, same event, same effects: to the byte."""
    runs = []
    for _ in range(2):
        table = fleet("c", "d")
        for _ in range(5):
            table.reads("c", 2), table.reads("d", 1)
            table.passes(500)
        table.restarts("a"), table.restarts("c")
        table.passes(500)
        runs.append([repr(letter)[:200] for letter in table.said])

    assert runs[0] == runs[1]


def test_a_link_that_opens_is_used_at_once():
    """Nobody waits out the back-off."""
    table, _ = middle()
    put(table, "a", report())
    table.passes(5000)
    before = len(table.said)
    effects = table.step("a", Linked())

    assert [Send] == [type(e) for e in effects if isinstance(e, Send)]
    assert before + 1 == len(table.said)


@pytest.mark.slow
def test_a_month_without_a_parent_leaves_one_report():
    """Children are answered meanwhile; one report waits, and says everything."""
    table, host = middle()
    for n in range(1, 31):
        assert Reason.ACK is put(table, "a", report(seq=n, ids=range(n))).reason
        table.passes(DAY)
        table.said.clear(), table.lost.clear()
    table.step("a", Linked())
    table.tell("a", joined(asks(table), seq=0, top=True))

    assert samples(range(30)) == reported(table).summary
    assert 1 == len(table.reports("a"))
    table.tell("a", answer(reported(table)))
    assert host.node.wakes_at > table.time


@pytest.mark.parametrize("event", [Tick(), Linked(), Flush()], ids=lambda e: type(e).__name__)
def test_nothing_is_said_to_a_parent_before_a_join(event):
    """Whatever is asked of it."""
    table = Table()
    table.aggregator("a", under="r")
    table.step("a", event)

    assert {Join} == {type(letter.message) for letter in table.said}


def test_what_nobody_expects_is_noted():
    """A root has no parent: an answer to it is nobody's."""
    table, host = root()
    table.tell("r", answer(report()))

    assert ["ignored"] == [note.what for note in host.notes if note.what != "new store"]


def test_order_of_children_is_no_matter():
    """Three clients' reports in any order: the same model bytes."""
    schema, kind = Schema.anonymous(4), Subspaces(2, oversample=1)
    learner = {}
    for i, node in enumerate("cde"):
        learner[node] = kind.learner(schema)
        rows = rows_of("decaying", 60, 4, seed=i)
        learner[node].learn(rows, rows)
    results = set()
    for order in itertools.permutations("cde"):
        table = Table(kind, schema)
        host = table.root("r")
        for node in order:
            fields = {"fingerprint": schema.fingerprint, "summary": learner[node].summary()}
            put(table, "r", report(node, ids=range(60), **fields))
        table.step("r", Flush())
        results.add(kind.packed(host.model.summary))

    assert 1 == len(results)
