"""Readings that settled the fleet's schema: each is learnt once, whatever dies in between."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from submerge.aggregator.group import GroupPlan
from submerge.client.node import ClientNode
from submerge.client.pending_finals import CHECKPOINT, PAST
from submerge.protocol.machine import Flush, Forget, Keep, Reading
from submerge.protocol.messages import Answer, Counts, Reason, successor
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel, Schema
from support.nodes import GROUP, IDS, Table, new_incarnation, write

ROWS = 10
"""Readings from which the root settles the scaling."""


class Perilous(Table):
    """A table at which the client `c` dies after one of its effects, and a write may fail."""

    def __init__(self, dies_after: int = -1, fails: int = -1) -> None:
        super().__init__()
        self.dies_after, self.fails, self.performed = dies_after, fails, -1
        plans = {GROUP: GroupPlan(self.summaries, IDS, learns_scaling=True)}
        self.root("r", plans=plans, scaling_rows=ROWS, report_every_s=60, model_every_s=1)
        self.aggregator("a", report_every_s=60)
        for name in "cd":
            self.client(name, learns_scaling=True, report_every_s=100, checkpoint_every_s=50)

    def step(self, label, event, *, asked_by=None):
        if label != "c" or self.performed < 0:
            return super().step(label, event, asked_by=asked_by)
        host = self.hosts["c"]
        effects = host.node.step(event, self.now("c"))
        for effect in effects:
            if self.performed == self.dies_after:
                self.dies("c")
                break
            if not (isinstance(effect, Keep) and self.performed == self.fails):
                self._perform(host, effect)
            self.performed += 1
        return effects

    def _perform(self, host, effect):
        if isinstance(effect, Keep):
            write(host.disk, effect)
            return
        step, host.node.step = host.node.step, lambda *_: [effect]
        try:
            super().step("c", None)
        finally:
            host.node.step = step

    def measured(self) -> None:
        """Both clients have measured, and have a checkpoint; nothing is settled."""
        self.reads("c", 4)
        self.passes(300)
        assert self.hosts["c"].disk[CHECKPOINT].measured is not None
        self.performed = 0

    def settles(self) -> None:
        """The other client measures enough; the fleet goes over, and comes to rest."""
        self.reads("d", ROWS)
        self.passes(500)

    def at_rest(self) -> tuple[int, int, int]:
        """Readings at the root: by their ids, as counted, and as known."""
        self.dies_after = -1
        if self.hosts["c"].node is None:
            self.starts("c")
        for _ in range(3):
            for name in "cd":
                self.step(name, Flush())
            self.passes(500)
        root = self.hosts["r"]
        assert root.ledger.schema.scaling is not None
        assert not self.summaries.doubled
        counts = root.ledger.counts()
        return root.counted, counts.learnt, counts.generated


ALL = (4 + ROWS,) * 3


def test_readings_that_settled_the_scaling_are_learnt():
    """Each once; the row that measured says that they are counted elsewhere."""
    table = Perilous()
    table.measured()
    before = table.hosts["c"].node.current.incarnation
    table.settles()

    assert ALL == table.at_rest()
    old = [row.report for row in table.hosts["a"].ledger.rows.values()]
    moved = {each.stamp.incarnation: each.counts for each in old if each.summary is None}
    assert Counts(moved=4) == moved[before]
    assert 4 == table.hosts["c"].node.lifetime
    assert () == table.hosts["c"].disk[PAST].finals


@pytest.mark.slow
def test_a_client_may_die_between_any_two_effects():
    """From the first checkpoint on: after its restart each reading is counted, and once."""
    number = 0
    while True:
        table = Perilous(dies_after=number)
        table.measured()
        table.settles()
        if table.hosts["c"].node is not None:
            break  # there were no more effects
        assert (number, ALL) == (number, table.at_rest())
        number += 1
    assert number >= 8


@pytest.mark.slow
def test_a_write_may_fail_before_a_client_dies():
    """It goes on without that write, and dies at any later effect."""
    for fails in range(12):
        for dies in range(fails + 1, 20):
            table = Perilous(dies_after=dies, fails=fails)
            table.measured()
            table.settles()

            assert (fails, dies, ALL) == (fails, dies, table.at_rest())


def test_a_client_that_restarts_before_the_settling_loses_nothing():
    """What it measured waits as a final; its moments count meanwhile."""
    table = Perilous()
    table.measured()
    for _ in range(2):
        table.restarts("c")
        table.passes(200)
        assert 4 == table.hosts["r"].ledger.moments().count
        assert 4 == table.hosts["c"].node.finals.measured
        assert table.hosts["c"].node.all_delivered
    table.settles()

    assert ALL == table.at_rest()
    assert 0 == table.hosts["c"].node.finals.measured


def test_a_client_that_was_away_learns_what_it_has_measured():
    """It measures on while it is cut off, also after the fleet has settled."""
    table = Perilous()
    table.measured()
    table.hosts["c"].cut = True
    table.settles()
    table.reads("c", 3)
    table.back("c")
    table.passes(500)

    assert (7 + ROWS,) * 3 == table.at_rest()


def test_a_client_that_never_had_a_parent_learns_what_it_has_measured():
    """Its first join brings the settled schema: what it has read before is for that parent."""
    table = Perilous()
    table.settles()
    table.dies("a")
    table.client("e", learns_scaling=True)
    table.reads("e", 5)
    table.starts("a")
    table.passes(600)

    assert (5 + ROWS,) * 2 == (table.hosts["r"].counted, table.hosts["r"].ledger.counts().learnt)


def test_an_old_card_counts_nothing_twice():
    """A card from before the settling goes over under the same name: the parent knows it."""
    table = Perilous()
    table.measured()
    old = dict(table.hosts["c"].disk)
    table.settles()
    table.reads("c", 2)
    table.passes(300)
    table.dies("c")
    table.hosts["c"].disk = old
    table.starts("c")

    counted, learnt, generated = table.at_rest()
    # The last two were on the card that is gone, and with the parent.
    assert (6 + ROWS, 6 + ROWS, 6 + ROWS) == (counted, learnt, generated)


def test_two_processes_of_one_card_count_nothing_twice():
    """A copy of the card goes over as well, beside the first."""
    table = Perilous()
    table.measured()
    table.copy("c", "c2")
    table.settles()
    table.passes(600)

    assert ALL[:2] == table.at_rest()[:2]


def test_another_parent_does_not_count_what_was_measured_for_the_first():
    """It may have it from the first: what it measured is lost, and said to be."""
    table = Perilous()
    table.measured()
    table.dies("c")
    table.settles()
    table.aggregator("b", report_every_s=60)
    disk = table.hosts["c"].disk
    host = table.client("c", under="b", learns_scaling=True, report_every_s=100)
    table.dies("c")
    host.disk = disk
    table.starts("c")

    assert (ROWS, ROWS, 4 + ROWS) == table.at_rest()
    assert ["the parent's store is another one"] == host.why("lost")


def test_a_node_that_is_forgotten_is_in_no_row():
    """Neither what was moved stays, nor the row that measured it."""
    table = Perilous()
    table.measured()
    table.settles()
    assert ALL == table.at_rest()
    table.step("a", Forget(GROUP, "c"))
    table.passes(300)

    assert (ROWS, ROWS) == (table.hosts["r"].counted, table.hosts["r"].ledger.counts().learnt)
    sealed = table.hosts["a"].ledger.sealed
    assert not [node for node, _ in sealed if node == "c"]


def test_the_name_follows_from_the_name_that_measured_and_the_schema():
    """The same for each copy; another for another schema, and for another incarnation."""
    first, other = new_incarnation(1), new_incarnation(2)
    name = successor(first, "ab" * 32)

    assert name == successor(first, "ab" * 32)
    assert 4 == len({name, first, successor(first, "cd" * 32), successor(other, "ab" * 32)})
    assert first.created_ms == name.created_ms


def of_channels(*names: str) -> Schema:
    """Ids, and other channels; the fleet is to settle the scaling."""
    return Schema((Channel("id"), *map(Channel, names)))


def configured(table: Table, *names: str) -> None:
    """Start root and client `c` again with these channels beside the ids."""
    schema, summaries = of_channels(*names), table.summaries
    chosen = ClientSettings(
        "c", GROUP, "r", learns_scaling=True, report_every_s=100, checkpoint_every_s=50
    )
    plans = {GROUP: GroupPlan(summaries, schema, learns_scaling=True)}
    there = "r" in table.hosts
    start = table.moved if there else table.aggregator
    start("r", under=None, plans=plans, scaling_rows=ROWS, model_every_s=1)
    host = table.hosts["c"] if there else table.client("c", under="r", schema=schema)
    host.make = lambda rng: ClientNode(chosen, schema, summaries, rng)
    table.restarts("c")


def reads(table: Table, n: int, width: int) -> None:
    """Have the client read ids, and other channels that follow from them."""
    for _ in range(n):
        row = [[float(table.ids), *(float(table.ids % 3 + i) for i in range(width - 1))]]
        table.ids += 1
        table.step("c", Reading(np.array(row)))
        table.run()


def test_what_was_measured_under_other_channels_waits_for_these_to_be_settled():
    """Without a message: a parent that measures other channels cannot take it."""
    table = Table()
    configured(table)
    reads(table, 4, 1)
    table.passes(300)
    configured(table, "heat")
    before = len(table.said)
    table.passes(3000)

    finals = [each for _, _, each in table.said[before:] if getattr(each, "final", False)]
    assert len(finals) <= 1
    assert len(table.said) - before < 100
    reads(table, ROWS, 2)
    table.passes(600)
    root = table.hosts["r"]
    assert root.ledger.schema.scaling is not None
    assert 4 + ROWS == root.counted == root.ledger.counts().learnt


def test_each_row_that_was_measured_goes_over_however_many_channels_have_come():
    """They are where they are measured from; a row of few known channels is a row."""
    table = Table()
    configured(table)
    reads(table, 4, 1)
    table.passes(300)
    configured(table, "heat", "flow", "power")
    reads(table, ROWS, 4)
    table.passes(600)

    root = table.hosts["r"]
    assert 4 + ROWS == root.counted == root.ledger.counts().learnt
    assert root.ledger.counts().generated == 4 + ROWS


@pytest.mark.parametrize("center", ["own", "fleet"])
def test_what_was_measured_of_another_schema_is_no_refusal_again_and_again(center):
    """It goes over, where rows of one are read as of the other; else it waits, and is not sent."""
    table = Table(Subspaces(2, oversample=4))
    for names, by in (("abc", "own"), ("ab", center)):
        schema = Schema(tuple(map(Channel, names)), center=by)
        plans = {GROUP: GroupPlan(table.summaries, schema, learns_scaling=True)}
        chosen = {"plans": plans, "scaling_rows": 400}
        settings = ClientSettings("c", parent="r", group=GROUP, learns_scaling=True)
        make = partial(ClientNode, settings, schema, table.summaries)
        if "r" in table.hosts:
            table.moved("r", under=None, **chosen)
            table.hosts["c"].make = make
            table.restarts("c")
        else:
            table.aggregator("r", under=None, **chosen)
            table.client("c", under="r", schema=schema, learns_scaling=True)
        table.passes(10)
        rows = np.random.default_rng(len(names)).normal(size=(100 if by == "own" else 400, 3))
        table.step("c", Reading(rows[:, : len(names)]))
        table.run()
        table.passes(1800)
    table.step("c", Reading(np.random.default_rng(0).normal(size=(400, 2))))
    table.run()
    table.passes(3600)

    root = table.hosts["r"]
    assert root.ledger.schema.scaling is not None
    assert all(each.reason is not Reason.SCHEMA for each in table.messages("r", Answer))
    measured = 100 if center == "fleet" else 0
    assert measured == table.hosts["c"].node.finals.measured
