"""What an aggregator says is read first: an injected fault costs its own node, and no other."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from submerge.aggregator.group import GroupPlan
from submerge.aggregator.self_check import MOST_TRIALS, UNSENT
from submerge.protocol.machine import Note, Received, SetQuarantine
from submerge.protocol.messages import Answer, Model, Report
from submerge_lab.simulator.samples import SampleSets, bits_of
from support.nodes import GROUP, IDS, Host, Table, new_incarnation, report

FAULTY = 10_000
"""Ids from here on make a message unreadable."""


def objection(message: Model | Report) -> str | None:
    """Find the fault that the test injects."""
    return "no node can read it" if bits_of(message.summary) >> FAULTY else None


def never(_: Model | Report) -> str | None:
    """Find fault with every message."""
    return "no node can read any"


class Brittle(SampleSets):
    """Merging raises for the injected fault."""

    def union(self, parts):
        """As `SampleSets`, or an error."""
        merged = super().union(parts)
        if merged.bits >> FAULTY and merged.bits % (1 << FAULTY):
            raise ValueError("no number comes of these two")
        return merged


def table_of(*, under: str | None = None, reads=objection, summaries=None) -> tuple[Table, Host]:
    """An aggregator that reads what it says; with a parent, one below it."""
    summaries = SampleSets() if summaries is None else summaries
    table = Table(summaries)
    plan = GroupPlan(summaries, IDS if under is None else None, objection=reads)
    if under is not None:
        table.root(under)
    return table, table.aggregator("r" if under is None else "a", under=under, plans={GROUP: plan})


def put(table: Table, host: Host, node: str, seq: int = 1, ids=(), **fields) -> None:
    """Have an aggregator take a node's report."""
    message = report(node, new_incarnation(1), seq, ids, **fields)
    mine = replace(message, pinned=host.node.incarnation)
    (answer,) = [m for m in table.tell(host.label, mine) if isinstance(m, Answer)]
    assert answer.newest == seq


def rejected(host: Host) -> list[Note]:
    return [note for note in host.notes if note.what in UNSENT.values()]


def quarantined(host: Host) -> dict[str, str]:
    return {node: each.cause for node, each in host.node.excluded(GROUP)[1].items()}


def test_the_culprit_is_named_and_quarantined_and_the_model_is_of_the_others():
    """Also if it was the tenth of many, and had been readable before."""
    table, host = table_of()
    for i in range(20):
        put(table, host, f"n{i}", ids=[i])
    table.passes(100)
    assert 20 == host.model.counts.learnt
    for i in range(20):
        put(table, host, f"n{i}", 2, ids=[i, 100 + i, FAULTY + i] if i == 9 else [i, 100 + i])
    table.passes(100)

    (note,) = rejected(host)
    assert ("model rejected", ("n9",)) == (note.what, note.facts["nodes"])
    assert {"n9": "unreadable"} == quarantined(host)
    assert 38 == host.model.counts.learnt == host.counted
    assert not bits_of(host.model.summary) >> FAULTY


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=4))
    )
)
def test_exactly_the_culprits_are_found(drawn):
    """Any few of any number: all of them, and nobody else."""
    n, culprits = drawn
    table, host = table_of()
    for i in range(n):
        put(table, host, f"n{i}", ids=[i, FAULTY + i] if i in culprits else [i])
    table.passes(100)

    assert {f"n{i}": "unreadable" for i in culprits} == quarantined(host)
    assert n - len(culprits) == host.counted
    assert host.model.counts.learnt == host.counted


def test_the_search_is_bounded_and_the_next_one_finds_the_rest():
    """Half of two hundred are culprits: a few are found each time, and no innocent one."""
    table, host = table_of()
    made = []
    wrapped = host.node._plans[GROUP].objection

    def counting(message):
        made.append(message)
        return wrapped(message)

    host.node._groups[GROUP]._check._objection = counting
    for i in range(200):
        put(table, host, f"n{i:03}", ids=[i, FAULTY + i] if i % 2 else [i])
    for _ in range(60):
        before = len(made)
        table.step("r", SetQuarantine(GROUP, "nobody"))  # the rows are looked at again
        table.passes(100)
        assert len(made) - before <= 2 * MOST_TRIALS + 2

    assert {f"n{i:03}" for i in range(1, 200, 2)} == quarantined(host).keys() - {"nobody"}
    assert 100 == host.model.counts.learnt


def test_what_merging_raises_is_a_rejection_too():
    """An error that numbers of one node lead to does not end the aggregator."""
    table, host = table_of(summaries=Brittle())
    put(table, host, "good", ids=[1])
    table.passes(100)
    put(table, host, "bad", ids=[FAULTY])
    put(table, host, "fine", ids=[2])
    table.passes(100)

    (note,) = rejected(host)
    assert "ValueError" in note.facts["why"]
    assert 1 == len(quarantined(host))
    assert host.model.counts.learnt == 2


def test_if_nobodys_rows_are_the_cause_the_last_good_model_stays():
    """Nobody is quarantined for a fault that remains without any rows."""
    table, host = table_of()
    put(table, host, "c", ids=[1])
    table.passes(100)
    good = host.model
    host.node._groups[GROUP]._check._objection = never
    put(table, host, "c", 2, ids=[1, 2])
    table.passes(100)

    (note,) = rejected(host)
    assert "nodes" not in note.facts
    assert ({}, good) == (quarantined(host), host.model)
    assert [good.version] == [m.version for m in table.spread("r", Model)][-1:]


def test_after_a_restart_all_nodes_are_suspects():
    """Which rows have changed since the last good model is not stored."""
    table, host = table_of(reads=None)
    for node, ids in {"a": [1], "b": [2, FAULTY], "d": [3]}.items():
        put(table, host, node, ids=ids)
    host.node._plans[GROUP] = GroupPlan(SampleSets(), IDS, objection=objection)
    plans = host.node._plans
    make = host.make
    host.make = lambda rng: _with_plans(make(rng), plans)
    table.restarts("r")
    table.passes(100)

    assert {"b": "unreadable"} == quarantined(host)
    assert 2 == host.model.counts.learnt


def _with_plans(node, plans):
    node._plans = plans
    return node


def test_a_site_leaves_the_culprit_out_of_its_report():
    """What goes up can be read: the site says whose rows are not in it."""
    table, host = table_of(under="r")
    table.passes(10)
    put(table, host, "good", ids=[1])
    put(table, host, "bad", ids=[2, FAULTY])
    table.passes(1000)

    (note,) = rejected(host)
    assert ("own report rejected", ("bad",)) == (note.what, note.facts["nodes"])
    assert 1 == table.hosts["r"].counted
    assert {} == quarantined(table.hosts["r"])


def test_a_site_that_cannot_say_anything_goes_on_asking_for_work_once_an_interval():
    """It neither spins nor stops: as soon as there is something to say, it is said."""
    table, host = table_of(under="r")
    table.passes(10)
    check = host.node._groups[GROUP]._check
    check._objection = never
    put(table, host, "c", ids=[1])
    table.passes(3000)
    assert [] == table.reports("a")
    assert 3 < len(rejected(host)) < 30
    check._objection = objection
    table.passes(1000)

    assert 1 == table.hosts["r"].counted


def test_released_it_is_quarantined_again_as_long_as_it_says_the_same():
    """And stays released once it says something else."""
    table, host = table_of()
    put(table, host, "c", ids=[1])
    put(table, host, "bad", ids=[2, FAULTY])
    table.passes(100)
    table.step("r", SetQuarantine(GROUP, "bad", quarantined=False))
    table.passes(100)
    assert {"bad": "unreadable"} == quarantined(host)
    table.step(
        "r",
        Received(
            replace(report("bad", new_incarnation(1), 2, range(2, 5)), pinned=host.node.incarnation)
        ),
    )
    table.step("r", SetQuarantine(GROUP, "bad", quarantined=False))
    table.passes(100)

    assert {} == quarantined(host)
    assert 4 == host.model.counts.learnt
