"""A ban holds in every group, here and below, until it is taken back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.aggregator.group import GroupPlan
from submerge.protocol.desired_state import MOST_DESIRED, DesiredState, DesiredStates
from submerge.protocol.machine import Forget, Received, SetBan, SetDesired, SetQuarantine
from submerge.protocol.messages import Join, Reason, Stamp
from submerge.schema import Schema
from support.nodes import GROUP, IDS, ME, Table, report

ATTIC = "attic"
EVERY = 300.0 * 1.2
"""Reports come no further apart than this."""


def fleet() -> Table:
    """A root of two groups, two aggregators one below the other, and a client in each group."""
    table = Table()
    plans = dict.fromkeys((GROUP, ATTIC), GroupPlan(table.summaries, IDS))
    below = dict.fromkeys((GROUP, ATTIC), GroupPlan(table.summaries, None))
    table.root("r", plans=plans)
    table.aggregator("a", plans=below)
    table.aggregator("b", under="a", plans=below)
    table.client("c", under="b")
    table.client("d", under="b", group=ATTIC)
    goes_on(table)
    return table


def goes_on(table: Table, rounds: int = 3) -> None:
    """Let both clients read, and all report."""
    for _ in range(rounds):
        for name in ("c", "d"):
            if table.hosts[name].node is not None:
                table.reads(name, 1)
        table.passes(EVERY)


def banned(table: Table, label: str) -> dict[str, frozenset[str]]:
    """Who is banned at an aggregator, by group."""
    return {group: table.hosts[label].node.excluded(group)[0] for group in (GROUP, ATTIC)}


def everywhere(*names: str) -> dict[str, frozenset[str]]:
    return {GROUP: frozenset(names), ATTIC: frozenset(names)}


def refusals(table: Table, source: str) -> int:
    return sum(
        answer.reason is Reason.BANNED for _, _, answer in table.said if _is_to(answer, source)
    )


def _is_to(message: object, node: str) -> bool:
    return hasattr(message, "reason") and message.stamp.node == node  # type: ignore[attr-defined]


def test_a_ban_holds_in_all_groups_and_goes_down_two_levels():
    """And the node below is refused by its own aggregator, in any group."""
    table = fleet()
    table.step("r", SetBan("c"))
    assert everywhere("c") == banned(table, "r")
    goes_on(table)

    assert everywhere("c") == banned(table, "a") == banned(table, "b")
    assert 0 < refusals(table, "c")
    assert 0 == refusals(table, "d")


def test_it_is_taken_back_in_the_same_way():
    """And the node reports again, by itself."""
    table = fleet()
    table.step("r", SetBan("c"))
    goes_on(table)
    table.step("r", SetBan("c", banned=False))
    goes_on(table)
    before = refusals(table, "c")
    goes_on(table)

    assert everywhere() == banned(table, "r") == banned(table, "a") == banned(table, "b")
    assert before == refusals(table, "c")
    assert table.hosts["r"].counted == len({*range(table.ids)}) // 2


@pytest.mark.parametrize("order", ["release", "unban"])
def test_a_release_in_one_group_takes_it_back_in_all(order):
    """`nodes release` did that for one group; now a ban is the node's."""
    table = fleet()
    table.step("r", Forget(GROUP, "c", ban=True))
    assert everywhere("c") == banned(table, "r")
    back = SetBan("c", banned=False) if order == "unban" else SetQuarantine(ATTIC, "c", False)
    table.step("r", back)
    goes_on(table)

    assert everywhere() == banned(table, "r") == banned(table, "b")


def test_it_holds_where_it_is_while_the_parent_is_away_and_after_a_restart():
    """Each aggregator keeps it in its own store."""
    table = fleet()
    table.step("r", SetBan("c"))
    goes_on(table)
    table.dies("r")
    table.restarts("a")
    table.restarts("b")

    assert everywhere("c") == banned(table, "a") == banned(table, "b")


def test_a_ban_that_is_given_again_goes_down_again():
    """A site has taken it back meanwhile."""
    table = fleet()
    table.step("r", SetBan("c"))
    goes_on(table)
    table.step("b", SetBan("c", banned=False))
    assert everywhere() == banned(table, "b")
    table.step("r", SetBan("c"))
    goes_on(table)

    assert everywhere("c") == banned(table, "b")


def test_a_site_that_is_upgraded_later_gets_the_bans_that_it_had_confirmed_unread():
    """The version before read desired states, not the bans in them, and kept no ages."""
    table = fleet()
    table.step("r", SetBan("c"))
    goes_on(table)
    for name in "ab":
        table.dies(name)
        disk = table.hosts[name].disk
        for key in [key for key in disk if key[0] in ("banned", "wishes", "elapsed", "first")]:
            del disk[key]
        table.restarts(name)
    goes_on(table, rounds=6)

    assert everywhere("c") == banned(table, "a") == banned(table, "b")


def test_a_ban_from_above_is_noted_once():
    table = fleet()
    table.step("r", SetBan("c"))
    goes_on(table)
    table.step("r", SetBan("c"))
    goes_on(table)

    notes = [each for each in table.hosts["b"].notes if each.what == "order from above"]
    assert [{"verb": "ban", "node": "c"}] == [each.facts for each in notes]


def test_a_banned_node_is_not_shown_the_channels():
    """An answer to a join says how schemas differ; to a banned node it says nothing."""
    table = fleet()
    table.step("r", SetBan("x"))
    table.step("r", Received(Join(Stamp("x", GROUP, ME, 0), b"", (), Schema(7).canonical)))

    answer = table.said[-1].message
    assert (Reason.BANNED, (), b"") == (answer.reason, answer.lines, answer.schema)


def test_an_aggregator_that_is_new_below_gets_it():
    """With the answers to its first reports; so does one whose store is empty."""
    table = fleet()
    table.step("r", SetBan("c"))
    goes_on(table)
    table.dies("b")
    table.hosts["b"].disk.clear()
    table.starts("b")
    goes_on(table)

    assert everywhere("c") == banned(table, "b")


def test_a_group_that_is_new_here_has_it_too():
    """A restart with one more group in the configuration."""
    table = Table()
    plan = GroupPlan(table.summaries, IDS)
    table.root("r", plans={GROUP: plan})
    table.step("r", SetBan("c"))
    table.dies("r")
    old, table.hosts["r"].disk = table.hosts["r"].disk, {}
    host = table.root("r", plans={GROUP: plan, ATTIC: plan}, start=False)
    host.disk, host.starts = old, 1
    table.starts("r")

    assert everywhere("c") == banned(table, "r")


def test_a_node_is_banned_before_it_is_known_and_changes_nothing():
    """No row, no schema: the first message is refused."""
    table = Table()
    table.root("r")
    table.step("r", SetBan("c"))
    me = table.hosts["r"].node.incarnation
    (answer,) = table.tell("r", report("c", pinned=me))

    assert Reason.BANNED is answer.reason
    assert not table.hosts["r"].ledger.knows("c")
    assert ME != me


def test_an_order_of_another_kind_leaves_a_ban_alone():
    """A pause and its end go down beside it."""
    table = fleet()
    table.step("r", SetBan("d"))
    table.step("r", SetDesired(GROUP, "d", paused=True))
    table.step("r", SetDesired(GROUP, "d", paused=False))
    goes_on(table)

    assert everywhere("d") == banned(table, "b")


def test_a_ban_that_comes_down_twice_gets_one_number():
    """Else it would go down from here again, and again at each restart."""
    table = fleet()
    table.step("r", SetBan("c"))
    goes_on(table)
    before = dict(table.hosts["a"].node.desired_states(GROUP))
    table.restarts("a")
    goes_on(table)

    assert before == table.hosts["a"].node.desired_states(GROUP)


@pytest.mark.slow
def test_no_ban_is_forgotten_for_another_order():
    """Of too many desired states the oldest without a ban goes."""
    states = DesiredStates()
    states.set_desired("banned", 1, banned=True)
    states.take([DesiredState(f"c{n}", n + 1, paused=True) for n in range(MOST_DESIRED + 5)], 0)

    assert MOST_DESIRED == len(states.by_node)
    assert states.by_node["banned"].banned


orders = st.tuples(
    st.sampled_from(
        ("ban", "unban", "cut a", "cut b", "restart a", "restart b", "go on", "lose b")
    ),
    st.sampled_from(("c", "d", "e")),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(orders, max_size=12))
def test_all_levels_agree_in_the_end(steps):
    """Whatever was away, restarted or lost its store meanwhile: the root's last order holds."""
    table, banned_now = fleet(), set[str]()
    for what, node in steps:
        verb, _, label = what.partition(" ")
        if verb in ("ban", "unban"):
            (banned_now.add if verb == "ban" else banned_now.discard)(node)
            table.step("r", SetBan(node, banned=verb == "ban"))
        elif verb == "cut":
            table.hosts[label].cut = not table.hosts[label].cut
        elif verb == "restart":
            table.restarts(label)
        elif verb == "lose":
            table.dies(label)
            table.hosts[label].disk.clear()
            table.starts(label)
        else:
            goes_on(table, 1)
    for label in ("a", "b"):
        table.hosts[label].cut = False
        table.back(label)
    goes_on(table, 4)

    expected = everywhere(*banned_now)
    assert expected == banned(table, "r") == banned(table, "a") == banned(table, "b")
