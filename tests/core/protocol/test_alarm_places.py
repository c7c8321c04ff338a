"""Places: what one child reports takes places from its own alarms first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from submerge.protocol.alarm_status import (
    MOST_ALARMS,
    MOST_OF_NODE,
    Alarm,
    chosen,
    most_of_each_node,
    most_urgent_first,
    pooled,
)
from support.alarmed import alarm, alarm_status

FUTURE = 253_402_300_799.0


def of_node(node: str, most: int) -> st.SearchStrategy[list[Alarm]]:
    """Some alarms of a node, open and over, each number once."""
    numbers = st.lists(st.integers(1, 10_000), max_size=most, unique=True)
    return st.builds(
        lambda ns, ends: [
            alarm(node, n, ended=n + 5.0 if end else 0.0) for n, end in zip(ns, ends, strict=False)
        ],
        numbers,
        st.lists(st.booleans(), min_size=most, max_size=most),
    )


def names(alarms) -> list[str]:
    return [each.name for each in alarms]


chains = st.lists(of_node("c", 9) | of_node("d", 9) | of_node("e", 9), max_size=5)


@given(chains)
def test_where_there_is_room_all_are_listed_the_open_ones_first_then_the_newest(chains):
    every = [each for chain in chains for each in chain]

    assert tuple(sorted(every, key=most_urgent_first)) == chosen(chains, MOST_ALARMS)


@given(chains, st.integers(1, 12))
def test_each_child_gets_its_share_of_places(chains, most):
    """Of m places each of c children gets m // c at least, if it has so many open alarms."""
    chains = [
        [each for each in chain if each.is_open and each.node == "cde"[i % 3]]
        for i, chain in enumerate(chains)
    ]
    chains = [chain for chain in chains if chain]
    kept = chosen(chains, most)

    assert min(most, sum(map(len, chains))) == len(kept)
    for chain in chains:
        share = sum(1 for each in chain if each in kept)
        assert share >= min(len(chain), most // len(chains))


def test_one_child_with_dates_of_the_far_future_pushes_no_other_out():
    """64 alarms of its own, of year 9999, beside an alarm of each of three honest children."""
    forged = [alarm(f"x{i}", i, began=FUTURE) for i in range(1, 65)]
    honest = [[alarm(node, 1)] for node in "cde"]

    assert {"c-1", "d-1", "e-1"} <= set(names(chosen([forged, *honest], MOST_ALARMS)))
    assert {"c-1", "d-1", "e-1"} <= set(names(chosen([forged, *honest], 6)))


def test_many_alarms_of_one_node_push_no_other_node_of_the_child_out():
    """Each node's newest open alarm comes before the second of any."""
    forged = [alarm("x", i, began=FUTURE) for i in range(1, 80)]
    kept = names(chosen([[*forged, alarm("c", 1), alarm("d", 2)]], 3))

    assert {"c-1", "d-2"} <= set(kept)


def test_an_open_alarm_comes_before_all_that_are_over():
    over = [[alarm(node, n, ended=n + 1.0) for n in range(1, 10)] for node in "cdefghij"]
    kept = names(chosen([*over, [alarm("x", 1)]], 5))

    assert "x-1" == kept[0]
    assert 5 == len(kept)


def test_a_node_has_nine_alarms():
    several = [alarm("c", n, ended=n + 1.0) for n in range(1, 12)]
    kept, excess = most_of_each_node([*several, alarm("c", 90), alarm("d", 1)])

    assert MOST_OF_NODE == sum(each.node == "c" for each in kept)
    assert {"c-5a", "c-b", "d-1"} <= set(names(kept))
    assert {"c-1", "c-2", "c-3"} == set(names(excess))


def test_a_child_that_reports_one_alarm_twice_reports_that_it_is_over():
    kept, excess = most_of_each_node([alarm("c", 1), alarm("c", 1, ended=5.0)])

    assert ([False], []) == ([each.is_open for each in kept], excess)


def test_pooled_statuses_list_at_most_what_fits():
    parts = [alarm_status(alarm(f"n{i}", i)) for i in range(1, 100)]
    whole = pooled(parts)

    assert (MOST_ALARMS, 99) == (len(whole.alarms), whole.open)
