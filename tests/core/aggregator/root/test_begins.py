"""A fleet that begins waits for no model: neither its schema does, nor its first model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.protocol.machine import Reading, SetQuarantine
from submerge.protocol.summaries import Subspaces
from support.nodes import GROUP, Table

SCHEMA, KIND = Schema(3, center="own"), Subspaces(2)
HOUR_S = 3600.0


@pytest.fixture
def table() -> Table:
    """A root that makes a model every hour, and a client that reports every five seconds."""
    table = Table(KIND, SCHEMA)
    plans = {GROUP: GroupPlan(KIND, SCHEMA, learns_scaling=True)}
    table.root("r", plans=plans, scaling_rows=40, model_every_s=HOUR_S)
    table.client("c", under="r", learns_scaling=True, report_every_s=5)
    return table


def read(table: Table, n: int) -> None:
    """Have the client read rows, and a few seconds pass."""
    table.step("c", Reading(np.random.default_rng(n).standard_normal((n, 3)) + 7))
    table.passes(20)


def test_the_schema_is_settled_as_soon_as_there_are_enough_readings(table):
    """And what has measured it is in a model that nodes score with: seconds later, not an hour."""
    read(table, 30)
    assert table.hosts["r"].ledger.schema.scaling is None
    read(table, 31)

    assert table.hosts["r"].ledger.schema.scaling is not None
    assert 61 == table.hosts["r"].model.summary.weight
    assert 61 == table.hosts["c"].node.model.summary.weight


def test_later_models_have_their_time(table):
    """Only the first does not wait."""
    read(table, 50)
    version = table.hosts["r"].model.version
    read(table, 51)
    assert version == table.hosts["r"].model.version
    table.passes(HOUR_S)

    assert 101 == table.hosts["r"].model.summary.weight


def test_a_new_root_of_nodes_that_have_scored_waits_for_more_of_them(table):
    """They have a model of the whole fleet; the rows of the first to come are less."""
    read(table, 50)
    read(table, 51)
    table.dies("r")
    table.hosts["r"].disk.clear()
    table.starts("r")
    read(table, 52)
    table.passes(20)

    assert table.hosts["r"].model.summary is None


# -- a node that is unlike the others --------------------------------------------------------

FIVE = "cdefg"


def fleet(parent: str, honest: str = FIVE, *, rows: int = 330, **plan: Any) -> Table:
    """A root, or a root with an aggregator, above honest clients, and one that is not."""
    table = Table(KIND, SCHEMA)
    plans = {GROUP: GroupPlan(KIND, SCHEMA, learns_scaling=True, **plan)}
    table.root("r", plans=plans, scaling_rows=rows, report_every_s=5, model_every_s=10)
    if parent != "r":
        table.aggregator(parent, under="r", report_every_s=5)
    for name in (*honest, "z"):
        table.client(name, under=parent, learns_scaling=True, report_every_s=5)
    return table


def wild(n: int, mean: float = 1e11) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, 3)) * mean / 10 + mean


@pytest.mark.parametrize("parent", ["r", "a"])
@pytest.mark.parametrize("mean", [1e11, -1e11, 1e3])
def test_no_node_of_five_or_more_sets_the_scale(parent, mean):
    """It is settled for good: at the root, and by what a site sends up."""
    table = fleet(parent)
    table.step("z", Reading(wild(30, mean)))
    for i, name in enumerate(FIVE):
        table.step(name, Reading(np.random.default_rng(i).standard_normal((60, 3)) * 2 + 7))
    table.passes(60)
    scaling = table.hosts["r"].ledger.schema.scaling

    np.testing.assert_allclose(scaling.offset, 7, atol=1)
    np.testing.assert_allclose(scaling.scale, 2, rtol=0.5)
    assert 330 == table.hosts["r"].model.counts.generated
    said = [each for each in table.hosts[parent].notes if each.what == "scale of a node refused"]
    assert ["z"] == [note.facts["node"] for note in said]


def few(rows: int, *, trusted: tuple[str, ...] = ()) -> Table:
    """A root above two honest clients that have read so many rows together, and a wild one."""
    table = fleet("r", "cd", rows=230, trusted=trusted)
    table.step("z", Reading(wild(30)))
    for i, name in enumerate("cd"):
        rng = np.random.default_rng(i)
        table.step(name, Reading(rng.standard_normal((rows // 2, 3)) * 2 + 7))
    table.passes(60)
    return table


def test_with_fewer_than_five_a_scale_that_one_node_decides_waits_and_names_it():
    """It was settled for good, 1e9 times too wide; left out, it decides nothing."""
    table = few(300)
    said = [each for each in table.hosts["r"].notes if each.what == "node decides the scale"]

    assert table.hosts["r"].ledger.schema.scaling is None
    assert [("z", "warning")] == [(note.facts["node"], note.level) for note in said]
    table.step("r", SetQuarantine(GROUP, "z"))
    table.passes(60)
    np.testing.assert_allclose(table.hosts["r"].ledger.schema.scaling.scale, 2, rtol=0.3)


@pytest.mark.parametrize(("rows", "trusted"), [(2300, ()), (300, ("z*",))])
def test_it_waits_for_ten_times_as_many_readings_or_for_trust(rows, trusted):
    """Of two nodes no one could say which is wrong: after a warning they all count."""
    assert few(rows, trusted=trusted).hosts["r"].ledger.schema.scaling.scale[0] > 1e9


def test_the_wild_node_does_not_end_the_wait_by_what_it_claims():
    table = few(300)
    table.step("z", Reading(wild(5000)))
    table.passes(60)

    assert table.hosts["r"].ledger.schema.scaling is None


@pytest.mark.parametrize("parent", ["r", "a"])
def test_nodes_that_differ_settle_as_all_rows_together_do(parent):
    """Medians over nodes of one kind are close to what pooling gives."""
    table = fleet(parent)
    rows = {
        name: np.random.default_rng(i).standard_normal((60, 3)) * (1, 10, 0) + (i, 5, 3)
        for i, name in enumerate((*FIVE, "z"))
    }
    for name, of in rows.items():
        table.step(name, Reading(of))
    table.passes(60)
    scaling, whole = table.hosts["r"].ledger.schema.scaling, np.concatenate([*rows.values()])

    np.testing.assert_allclose(scaling.offset, whole.mean(axis=0), atol=1.5)
    np.testing.assert_allclose(scaling.scale[:2], whole.std(axis=0)[:2], rtol=0.3)
    assert 1.0 == scaling.scale[2]
