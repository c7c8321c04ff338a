"""A client of a group whose models carry noise: no row decides what becomes of another."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import Scaling, Schema
from submerge.client.node import ClientNode
from submerge.pca.row_sums import RowSums
from submerge.protocol.machine import Now, Reading, Received, Start
from submerge.protocol.messages import Counts, Model, Told
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces

SCHEMA = Schema(4, Scaling((5.0,) * 4, (1.0,) * 4), clip=3.0)
NONE = RowSums.none(SCHEMA.fingerprint, 4, 3.0)
ROWS = np.random.default_rng(0).standard_normal((300, 2)) @ [[1, 0, 1, 0], [0, 1, 1, 1]] + 5.0
NOW = Now(0.0, 1.7e9)


def model(version: int = 5, told: Told | None = None, summary: bool = True) -> Model:
    sums = NONE.with_rows(SCHEMA.scaled(ROWS))
    found = Subspaces(2).directions(sums) if summary else None
    named = SCHEMA.canonical, SCHEMA.fingerprint, found, None, Counts(300), 1, (1.0, 1.0, 1.0)
    times = {"created": 1.7e9, "expires": 2e9}
    return Model("g", version, *named, **times, epsilon=0.5, told=told)


def client() -> ClientNode:
    """One that has the fleet's model, and raises alarms."""
    settings = ClientSettings("c", "g", "root", fills_gaps=True, alarms=AlarmSettings())
    node = ClientNode(settings, SCHEMA, Subspaces(2), np.random.default_rng(0))
    node.step(Start({}), NOW)
    node.step(Received(model()), NOW)
    return node


def sums_of(node: ClientNode) -> RowSums:
    return node.current.summary(NOW)


def read(node: ClientNode, rows: np.ndarray) -> None:
    for i, row in enumerate(rows):
        node.step(Reading(row[None]), Now(60.0 * i, 1.7e9 + 60.0 * i))


@pytest.mark.parametrize("first", [0.0, 40.0, np.nan])
def test_whole_rows_are_summed_as_they_came_whatever_came_before(first):
    """A fault, and a gap, change nothing of what is learnt of the rows behind them."""
    node, rows = client(), ROWS[:40].copy()
    rows[:12, 1] += first  # an alarm, or a channel that has fallen silent
    read(node, rows)
    whole = rows[~np.isnan(rows).any(axis=1)]

    assert NONE.with_rows(SCHEMA.scaled(whole)).packed == sums_of(node).packed
    assert len(whole) == node.current.counts.learnt
    assert 40 == node.current.counts.generated


def test_a_report_says_the_most_that_models_have_told():
    """Also if a root whose store is lost has told nothing yet."""
    node = client()
    node.step(Received(model(6, Told(9, 0.25))), NOW)
    node.step(Received(model(7, Told(2, 0.1), summary=False)), NOW)
    node.step(Received(model(8, None)), NOW)
    read(node, ROWS[:2])

    assert Told(9, 0.25) == node._report(NOW).told
