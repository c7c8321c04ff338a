"""Wishes: what an operator wants of a node comes to it, once, whoever is away meanwhile."""

from __future__ import annotations

import pytest

from submerge.protocol.desired_state import (
    MOST_AT_ONCE,
    MOST_DESIRED,
    MOST_VERDICTS,
    DesiredState,
    DesiredStates,
)
from submerge.protocol.machine import SetDesired
from submerge.protocol.messages import Answer
from support.nodes import GROUP, Table

EVERY = 300.0 * 1.2
"""Reports come no further apart than this."""


def fleet() -> Table:
    """A root, an aggregator, and a client that has reported to it."""
    table = Table()
    table.root("r")
    table.aggregator("a")
    table.client("c")
    goes_on(table)
    return table


def goes_on(table: Table, rounds: int = 2) -> None:
    """Let everybody who is there read something, and report."""
    for _ in range(rounds):
        for name, host in table.hosts.items():
            if host.parent == "a" and host.node is not None:
                table.reads(name, 1)
        table.passes(EVERY)


def desired_of(table: Table, name: str = "c") -> DesiredState:
    """What a client has heard last that is wanted of it."""
    monitor = table.hosts[name].node._ingest.monitor
    assert monitor is not None
    return monitor.desired


def said(table: Table, source: str) -> int:
    """The newest wish that a node says it has heard of."""
    alarm_status = table.reports(source)[-1].alarm_status
    return 0 if alarm_status is None else alarm_status.desired


def withheld(table: Table) -> int:
    return table.hosts["c"].node.current.counts.withheld


def passed_on(table: Table, source: str) -> list[tuple[DesiredState, ...]]:
    """What a parent's answers carried, but for those that carried nothing."""
    return [
        answer.desired_states for answer in table.messages(source, Answer) if answer.desired_states
    ]


# -- what is kept ------------------------------------------------------------------


def test_what_is_not_named_stays_as_it_is():
    desired_states = DesiredStates()
    desired_states.set_desired("c", 1000, paused=True)
    desired = desired_states.set_desired("c", 2000, verdict=(7, True))

    assert DesiredState("c", 2000, paused=True, verdicts=((7, True),)) == desired
    assert {"c": desired} == desired_states.by_node


@pytest.mark.parametrize("wall_ms", [0, 1000, 999])
def test_numbers_rise_whatever_the_clock_does(wall_ms):
    """Over those of other nodes; those of the parent above are its own."""
    desired_states = DesiredStates(heard=1500)
    numbers = [
        desired_states.set_desired(node, at).number for node, at in (("c", 1000), ("d", wall_ms))
    ]

    assert [1000, 1001] == numbers


def test_the_newest_verdicts_are_kept():
    """One on each alarm: who thinks again takes the first back."""
    desired_states = DesiredStates()
    for number in range(MOST_VERDICTS + 2):
        desired_states.set_desired("c", 0, verdict=(number, True))
    desired = desired_states.set_desired("c", 0, verdict=(5, False))

    assert [*(n for n in range(2, MOST_VERDICTS + 2) if n != 5), 5] == [
        n for n, _ in desired.verdicts
    ]
    assert desired.accepted[5] is False


def test_a_wish_from_above_takes_the_place_of_an_older_one():
    desired_states = DesiredStates()
    old, new = DesiredState("c", 5, paused=False), DesiredState("c", 6, paused=True)

    assert desired_states.take([new], 1000)
    assert not desired_states.take([old], 1000)
    assert not desired_states.take([new], 2000)
    assert ({"c": DesiredState("c", 1000, paused=True)}, 6) == (
        desired_states.by_node,
        desired_states.heard,
    )


def test_what_two_levels_want_is_put_together():
    """Each thing by itself, the later said goes before, whatever either's clock says."""
    site = DesiredStates()
    site.set_desired("c", 9_000_000, paused=True, verdict=(1, True))  # an hour ahead
    site.take([DesiredState("c", 5, verdicts=((1, False), (2, True)))], 9_000_000)
    assert (True, {1: False, 2: True}) == (site.by_node["c"].paused, site.by_node["c"].accepted)

    site.take([DesiredState("c", 6, paused=False)], 9_000_000)
    assert (False, 9_000_002) == (site.by_node["c"].paused, site.by_node["c"].number)


def test_a_child_hears_what_it_has_not_heard_the_oldest_first():
    """So that the number which it then says holds for all before; a client hears its own."""
    desired_states = DesiredStates()
    for number in range(1, MOST_AT_ONCE + 4):
        desired_states.take([DesiredState(f"c{number}", number, paused=True)], 0)
    first = desired_states.due("a", 0, is_client=False)
    rest = desired_states.due("a", first[-1].number, is_client=False)

    assert list(range(1, MOST_AT_ONCE + 4)) == [desired.number for desired in (*first, *rest)]
    assert MOST_AT_ONCE == len(first)
    assert ["c3"] == [desired.node for desired in desired_states.due("c3", 0, is_client=True)]
    assert () == desired_states.due("c3", 3, is_client=True)


@pytest.mark.slow
def test_of_too_many_the_oldest_are_forgotten():
    desired_states = DesiredStates()
    desired_states.take(
        [DesiredState(f"c{number}", number) for number in range(1, MOST_DESIRED + 3)], 0
    )

    assert MOST_DESIRED == len(desired_states.by_node)
    assert not {"c1", "c2"} & desired_states.by_node.keys()


# -- on their way --------------------------------------------------------------------


def test_a_pause_goes_down_two_levels_and_is_obeyed():
    """With the answers to reports; from then on all that is read is withheld, and counted."""
    table = fleet()
    table.step("r", SetDesired(GROUP, "c", paused=True))
    goes_on(table)
    before = table.hosts["c"].node.current.counts.learnt, withheld(table)
    table.reads("c", 5)

    assert desired_of(table).paused
    assert (before[0], before[1] + 5) == (
        table.hosts["c"].node.current.counts.learnt,
        withheld(table),
    )
    table.passes(EVERY)
    assert "paused" == table.reports("c")[-1].alarm_status.state

    table.step("r", SetDesired(GROUP, "c", paused=False))
    goes_on(table)
    table.reads("c", 5)
    assert before[0] + 5 <= table.hosts["c"].node.current.counts.learnt
    assert "paused" != table.reports("c")[-1].alarm_status.state


def test_the_log_says_what_an_operators_order_changed():
    """One line each; what stays as it was is not named again."""
    table = fleet()
    for order in (
        SetDesired(GROUP, "c", paused=True),
        SetDesired(GROUP, "c", verdict=(7, False)),
        SetDesired(GROUP, "c", paused=False),
    ):
        table.step("r", order)
        goes_on(table)

    notes = [(what, facts) for what, facts, _ in table.hosts["c"].notes if "verdicts" in facts]
    assert [
        ("learning paused by operator", {"paused": True, "verdicts": 0}),
        ("operator's verdicts received", {"paused": True, "verdicts": 1}),
        ("learning resumed by operator", {"paused": False, "verdicts": 1}),
    ] == notes


def test_a_verdict_goes_down_likewise():
    """On an alarm that the client may have forgotten: then it is heard, and nothing comes of it."""
    table = fleet()
    table.step("r", SetDesired(GROUP, "c", verdict=(7, False)))
    goes_on(table)

    assert {7: False} == desired_of(table).accepted
    assert () == table.hosts["c"].node._ingest.alarms


def test_what_was_heard_is_said_upward_and_not_said_again():
    """Level by level: an answer carries it until the child has said that it knows."""
    table = fleet()
    table.step("r", SetDesired(GROUP, "c", paused=True))
    goes_on(table, 3)

    numbers = [table.hosts[name].node.desired_states(GROUP)["c"].number for name in ("a", "r")]
    assert numbers == [said(table, "c"), said(table, "a")]
    reported = [len(passed_on(table, source)) for source in ("r", "a")]
    goes_on(table, 3)
    assert reported == [len(passed_on(table, source)) for source in ("r", "a")]


def test_it_is_kept_where_it_was_said_and_on_its_way():
    """Whoever restarts goes on with it; a client knows for itself that it is paused."""
    table = fleet()
    table.step("r", SetDesired(GROUP, "c", paused=True))
    table.restarts("r")
    goes_on(table)
    assert desired_of(table).paused

    for name in ("a", "c"):
        table.restarts(name)
    before = withheld(table)
    table.reads("c", 5)
    assert before + 5 == withheld(table)


def test_who_was_away_hears_of_it_when_it_is_back():
    table = fleet()
    table.hosts["a"].cut = True
    table.step("r", SetDesired(GROUP, "c", paused=True))
    goes_on(table)
    assert not desired_of(table).paused

    table.back("a")
    goes_on(table)
    assert desired_of(table).paused


@pytest.mark.parametrize("lost", ["a", "c"])
def test_a_disk_that_is_lost_is_told_again(lost):
    """It says that it has heard of nothing."""
    table = fleet()
    table.step("r", SetDesired(GROUP, "c", paused=True))
    goes_on(table)
    table.dies(lost)
    table.hosts[lost].disk.clear()
    table.starts(lost)
    goes_on(table, 3)

    assert desired_of(table).paused
    assert table.hosts["a"].node.desired_states(GROUP)["c"].paused


def test_a_client_hears_of_nobody_else():
    table = fleet()
    table.client("d")
    table.step("r", SetDesired(GROUP, "d", paused=True))
    goes_on(table, 3)

    assert desired_of(table, "d").paused
    assert (0, 0) == (desired_of(table).number, said(table, "c"))


def test_another_parent_is_heard_from_the_beginning():
    """Its numbers are its own: what one parent said is no measure for another."""
    table = fleet()
    table.hosts["r"].clock_error = 1e6
    table.step("r", SetDesired(GROUP, "c", paused=True))
    goes_on(table)
    assert desired_of(table).paused
    table.dies("r")
    table.hosts["r"].disk.clear()
    table.hosts["r"].clock_error = 0.0
    table.starts("r")
    goes_on(table)
    table.step("r", SetDesired(GROUP, "c", paused=False))
    goes_on(table, 3)

    assert desired_of(table).paused is False


def test_it_may_be_said_half_way():
    """Where the node reports, too; each change keeps what it does not name."""
    table = fleet()
    table.step("a", SetDesired(GROUP, "c", paused=True))
    goes_on(table)
    assert desired_of(table).paused

    table.passes(1.0)
    table.step("a", SetDesired(GROUP, "c", verdict=(7, True)))
    goes_on(table)
    assert (True, {7: True}) == (desired_of(table).paused, desired_of(table).accepted)


def test_many_come_in_several_answers():
    """No answer grows with the fleet; the next one follows as soon as one is confirmed."""
    table, names = fleet(), {f"d{i}" for i in range(1000)}
    for name in sorted(names):
        table.step("r", SetDesired(GROUP, name, paused=True))
    table.passes(5.0)

    sizes = [len(desired_states) for desired_states in passed_on(table, "r")]
    assert MOST_AT_ONCE == max(sizes)
    assert names == set(table.hosts["a"].node.desired_states(GROUP))
