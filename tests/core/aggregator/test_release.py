"""Rows go out only with those of five nodes: in models, and in an aggregator's own reports."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.aggregator.group import GroupPlan
from submerge.protocol.machine import Flush, Forget, SetDesired
from submerge.protocol.messages import Model, Report
from support.nodes import GROUP, Table

NODES = tuple(f"c{i}" for i in range(6))

BEGINS = [("reads", node, 40) for node in NODES] + [("passes", "", 100)]

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("reads"), st.sampled_from(NODES), st.integers(1, 30)),
        st.tuples(st.just("passes"), st.just(""), st.integers(1, 200)),
        st.tuples(st.sampled_from(["order", "flush"]), st.sampled_from(NODES), st.just(0)),
    ),
    max_size=40,
)


def fleet(
    floor: bool | None = None, nodes: tuple[str, ...] = NODES, *, site: bool = False
) -> Table:
    table = Table()

    def plans(schema) -> dict[str, GroupPlan]:
        return {GROUP: GroupPlan(table.summaries, schema, floor=floor)}

    table.root("r", plans=plans(table.schema), model_every_s=20)
    if site:
        table.aggregator("s", plans=plans(None), report_every_s=30)
        table.passes(5)
    for name in nodes:
        table.client(name, under="s" if site else "r", report_every_s=30, together=8)
    table.passes(5)
    return table


def happens(table: Table, owner: dict[int, str], what: str, node: str, how: int) -> None:
    if what == "reads":
        owner |= dict.fromkeys(table.reads(node, how), node)
    elif what == "passes":
        table.passes(how)
    elif what == "order":
        table.step("r", SetDesired(GROUP, node, drill=True))
        table.run()
    else:
        table.step(node, Flush())
        table.run()


def check(told: list[int], owner: dict[int, str]) -> None:
    """Each set of ids is the one before, and what five nodes read since, eight ids each."""
    for before, after in pairwise(told):
        nodes = [Counter(owner[i] for i in bits_of(each)) for each in (before, after)]
        assert not before & ~after
        if len(nodes[0]) >= 5 and before != after:
            assert sum(rows >= 8 for rows in (nodes[1] - nodes[0]).values()) >= 5


def bits_of(ids: int) -> list[int]:
    return [i for i in range(ids.bit_length()) if ids >> i & 1]


def models(table: Table) -> list[int]:
    return [each.summary.bits for each in table.spread("r", Model) if each.summary is not None]


@settings(max_examples=60, deadline=None)
@given(EVENTS)
def test_a_model_goes_out_with_the_rows_of_five_nodes(events) -> None:
    """Whatever the order of events is."""
    table, owner = fleet(), dict[int, str]()
    for event in [*BEGINS, *events]:
        happens(table, owner, *event)
    table.passes(500)

    check(models(table), owner)


@settings(max_examples=60, deadline=None)
@given(EVENTS)
def test_so_does_an_aggregator_s_own_report(events) -> None:
    """Orders are confirmed with the rows of the report before; all of it is acknowledged."""
    table, owner = fleet(site=True), dict[int, str]()
    for event in [*BEGINS, *events]:
        happens(table, owner, *event)
    table.passes(500)
    told = [each.summary.bits for each in table.messages("s", Report) if each.summary is not None]

    check(told, owner)
    for node in NODES:  # no durable answer rests on rows that wait
        current = table.hosts[node].node.current
        held = [r for r in table.reports(node) if r.stamp.seq == current.durable and r.summary]
        for report in held:
            assert not report.summary.bits & ~table.hosts["r"].ledger.summary().bits


def all_read(table: Table, rows: int, nodes: tuple[str, ...] = NODES) -> None:
    for node in nodes:
        table.reads(node, rows)
    table.passes(300)


def test_all_rows_go_out_in_time() -> None:
    """Once five of six have read enough."""
    table = fleet()
    all_read(table, 40)
    all_read(table, 16, NODES[:5])

    assert 6 * 32 + 5 * 16 == models(table)[-1].bit_count()


def test_a_group_of_fewer_nodes_publishes_as_before() -> None:
    """Unless that is asked for: then all of them are needed."""
    few = NODES[:3]
    table, asked = fleet(nodes=few), fleet(True, few)
    for each in (table, asked):
        all_read(each, 40, few)
        all_read(each, 16, few)
        all_read(each, 16, few[:1])

    assert 3 * 48 + 16 == models(table)[-1].bit_count()
    assert 3 * 48 == models(asked)[-1].bit_count()


def test_silent_nodes_are_not_waited_for() -> None:
    """A fleet of five with a dead one is one of four."""
    table = fleet(nodes=NODES[:5])
    all_read(table, 40, NODES[:5])
    table.dies("c4")
    table.passes(7 * 3600)
    all_read(table, 16, NODES[:4])
    all_read(table, 16, NODES[:4])

    assert 5 * 32 + 4 * 32 == models(table)[-1].bit_count()


def test_a_model_whose_rows_wait_is_renewed() -> None:
    """Else it would expire, and no node would take it that knows a later version."""
    table = fleet()
    all_read(table, 40)
    before = table.spread("r", Model)[-1]
    for _ in range(20):
        table.reads("c0", 1)
        table.passes(200)
    after = table.spread("r", Model)[-1]

    assert before.summary == after.summary
    assert (before.version, before.expires) < (after.version, after.expires)


def test_rows_that_wait_have_no_model_made() -> None:
    """One went down every few seconds, under a new version, with the rows of before."""

    def made(waiting: int) -> int:
        table = fleet()
        all_read(table, 40)
        table.reads("c0", waiting)
        table.passes(200)
        before = len(table.spread("r", Model))
        table.passes(2000)
        return len(table.spread("r", Model)) - before

    assert made(0) == made(20)


def test_an_aggregator_whose_rows_wait_is_heard() -> None:
    """It reports as often as any; what it knows of its nodes' silence is new."""
    table = fleet(site=True)
    all_read(table, 40)
    told = len(table.messages("s", Report))
    for _ in range(20):
        table.reads("c0", 1)
        table.passes(30)

    assert len(table.messages("s", Report)) > told + 10
    row = table.hosts["r"].ledger.live("s")[0]
    assert table.hosts["r"].ledger.presence.silence("s", row, table.time) < 100


def test_a_node_that_is_removed_is_not_waited_for() -> None:
    """A poisoned row must not stay in a model until others have read enough."""
    table = fleet()
    all_read(table, 40)
    table.step("r", Forget(GROUP, "c0"))
    table.run()
    table.passes(60)

    assert 5 * 32 == models(table)[-1].bit_count()


def test_an_end_says_all() -> None:
    """So that nothing waits for a process that may never come back."""
    table = fleet(site=True)
    all_read(table, 40)
    all_read(table, 16, NODES[:1])
    table.step("s", Flush())
    table.run()

    assert 6 * 32 + 16 == table.hosts["r"].counted
