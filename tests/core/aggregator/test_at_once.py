"""Two machines of one kit: they are named, and nothing else looks like them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.presence import INTERVALS, Turns
from submerge.protocol.machine import Note, Received
from submerge.protocol.messages import Incarnation
from submerge_lab.simulator import Faults, Plan, run
from support.nodes import Table, new_incarnation
from support.seeds import seeds

INTERVAL_S = 300.0


class Heard:
    """Reports of incarnations, by letters: `ABAB`; each comes so many seconds after the last."""

    def __init__(self, apart_s: float = 150.0) -> None:
        self.turns, self.steady, self._apart_s = Turns(INTERVAL_S), 0.0, apart_s
        self.notes: list[Note] = []

    def hears(self, letters: str) -> str:
        """Return the letters of the incarnations that run at once."""
        for letter in letters:
            self.steady += self._apart_s
            self.turns.take("c", self._incarnation(letter), self.steady)
            self.notes += self.turns.notes("room", "c", self.steady)
        return self.now()

    def now(self) -> str:
        found = self.turns.at_once("c", self.steady)
        return "".join(sorted(chr(64 + each.nonce) for each in found))

    def ends(self, letter: str) -> None:
        self.turns.end("c", self._incarnation(letter))

    def _incarnation(self, letter: str) -> Incarnation:
        return new_incarnation(ord(letter) - 64)


def test_two_machines_that_report_in_turns_are_named_once():
    heard = Heard()

    assert "" == heard.hears("ABABAB")
    assert "AB" == heard.hears("A")
    assert "AB" == heard.hears("BABABABAB")
    (note,) = heard.notes
    assert ("two machines report as one", "c") == (note.what, note.facts["node"])
    assert ("c",) == heard.turns.nodes_at_once(heard.steady)


@pytest.mark.parametrize("letters", ["AABABBAABBAB", "AAAABBBBAAAABBBBAAAABBBBAAAA"])
def test_how_often_each_of_them_reports_has_no_part_in_it(letters):
    assert "AB" == Heard().hears(letters)


def test_machines_that_report_seldom_are_named_as_well():
    """The aggregator's interval is not its clients'."""
    assert "AB" == Heard(apart_s=7200.0).hears("ABABABA")


def test_three_machines_are_three():
    assert "ABC" == Heard().hears("ABCABCABCABC")


@pytest.mark.parametrize(
    "letters",
    [
        "AAAAAAAA",
        "AABBBBCCCCDDDD",  # restarts
        "AABABBCBCCDCDDEDEE",  # and after each a late report of the process before
        "AAAAABABBBBBB",
    ],
)
def test_restarts_are_one_machine_also_if_reports_come_late(letters):
    heard = Heard()

    assert "" == heard.hears(letters)
    assert [] == heard.notes


def test_they_are_one_again_some_intervals_after_one_has_stopped():
    """Or as soon as its row is sealed or dropped; another is said again."""
    heard = Heard()
    heard.hears("ABABABA")
    # The last return of B was 150 s before that of A.
    heard.steady += INTERVALS * INTERVAL_S - 150.0
    assert "AB" == heard.now()
    heard.steady += 1.0
    assert "" == heard.now()
    heard.hears("AAAA")
    heard.ends("B")
    assert "" == heard.hears("AAA")
    assert "AC" == heard.hears("CACACAC")
    assert 2 == len(heard.notes)


@given(st.text("AB", max_size=30), st.text("AB", max_size=4))
def test_what_is_forgotten_leaves_nothing(letters, ends):
    heard = Heard()
    heard.hears(letters)
    for letter in (*ends, "A", "B"):
        heard.ends(letter)

    assert ("", {}, {}) == (heard.now(), heard.turns._returns, heard.turns._last)
    assert set() == heard.turns._named


# -- nodes that ship -------------------------------------------------------------------


def at_once(table: Table, label: str = "r") -> tuple[str, ...]:
    return table.hosts[label].ledger.presence.turns.nodes_at_once(table.time)


def reads_for(table: Table, rounds: int, *labels: str) -> None:
    for _ in range(rounds):
        for label in labels:
            table.reads(label, 5)
        table.passes(400.0)


def told(table: Table, label: str = "r") -> list[Any]:
    notes = table.hosts[label].notes
    return [each.facts["node"] for each in notes if each.what == "two machines report as one"]


@pytest.fixture
def table() -> Table:
    table = Table()
    table.root("r")
    table.client("c", under="r")
    reads_for(table, 3, "c")
    return table


def test_a_copied_card_whose_machines_both_run_is_named(table):
    table.copy("c", "c*")
    reads_for(table, 8, "c", "c*")

    assert (("c",), ["c"]) == (at_once(table), told(table))


def test_a_kit_in_a_second_machine_without_the_card_is_named(table):
    table.copy("c", "c*")
    table.dies("c*")
    table.hosts["c*"].disk.clear()
    table.starts("c*")
    reads_for(table, 8, "c", "c*")

    assert (("c",), ["c"]) == (at_once(table), told(table))


def test_a_card_that_moved_to_another_machine_is_one(table):
    """The first has been switched off; its last report comes again, as from a broker."""
    last = table.reports("c")[-1]
    table.dies("c")
    table.copy("c", "c*")
    for _ in range(8):
        reads_for(table, 1, "c*")
        table.step("r", Received(last))
        table.run()

    assert ((), []) == (at_once(table), told(table))


def test_a_node_that_restarts_again_and_again_is_one(table):
    """With its card and without; by a clock that is right, or years off."""
    for i in range(12):
        table.dies("c")
        if i % 3 == 0:
            table.hosts["c"].disk.clear()
        table.hosts["c"].clock_error = (-1) ** i * 1e8 * (i % 2)
        table.starts("c")
        reads_for(table, 1, "c")

    assert ((), []) == (at_once(table), told(table))


def test_a_root_that_starts_again_knows_it_after_some_reports(table):
    table.copy("c", "c*")
    reads_for(table, 8, "c", "c*")
    table.restarts("r")
    assert () == at_once(table)
    reads_for(table, 8, "c", "c*")

    assert ("c",) == at_once(table)


# -- the simulated fleet ---------------------------------------------------------------


def named(faults: Faults | str, seed: int, **plan: Any) -> set[str]:
    """Return the nodes that aggregators name in a seed."""
    found: set[str] = set()

    class Noting(AggregatorNode):
        def step(self, event: Any, now: Any) -> Any:
            effects = super().step(event, now)
            for effect in effects:
                if isinstance(effect, Note) and effect.what == "two machines report as one":
                    found.add(effect.facts["node"])
            return effects

    outcome = run(Plan(faults=faults, **plan), seed, aggregator=Noting)
    assert [] == outcome.violations
    return found


ONE_MACHINE = Faults(
    loss=0.2,
    duplicate=0.3,
    reorder=0.2,
    delay_s=5.0,
    broker=1.0,
    redeliver=1.0,
    partition=0.3,
    slow=0.2,
    kill=0.5,
    card_lost=0.15,
    card_back=0.2,
    store_back=0.1,
    move=0.15,
    clock=0.1,
)
"""Everything that can go wrong, but no second process."""


@pytest.mark.slow
def test_no_simulated_fleet_of_single_machines_has_a_node_named():
    assert [] == [(seed, names) for seed in seeds(24) if (names := named(ONE_MACHINE, seed))]
    assert [] == [(seed, names) for seed in seeds(12) if (names := named("kills", seed))]


@pytest.mark.slow
def test_of_simulated_fleets_with_copied_cards_most_have_a_node_named():
    found = [named(Faults(card_clone=0.3), seed, hours=8) for seed in range(5)]

    assert sum(map(bool, found)) >= 4
