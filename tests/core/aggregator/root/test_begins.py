"""A fleet that begins waits for no model: neither its schema does, nor its first model."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.protocol.machine import Reading
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
