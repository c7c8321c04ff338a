"""Landmarks that the fleet chooses: the schema stays open until then, and no reading is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import Scaling, Schema, UsageError
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.root import LandmarksWanted, choice_for, wanted
from submerge.features import Gaussian, Landmarks, Matern, OpenLandmarks, Polynomial, parse
from submerge.features.landmarks import as_left_open
from submerge.jobs.local_run import run_here
from submerge.protocol.machine import Reading, SettleLandmarks
from submerge.protocol.summaries import Subspaces
from submerge.schema import differences
from support.nodes import GROUP, Table

M = 12
OPEN = Schema(4, features=OpenLandmarks(Gaussian(), M), center="own")
SUMMARIES = Subspaces(3, oversample=2)
UNITS = np.array([1.0, 10.0, 100.0, 1000.0])


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 4)) * UNITS + 5 * UNITS


def house(schema: Schema = OPEN, *, learns: bool = True) -> Table:
    """A root, an aggregator and two clients."""
    table = Table(SUMMARIES, schema)
    plan = GroupPlan(SUMMARIES, schema, learns_scaling=learns)
    table.root("r", plans={GROUP: plan}, scaling_rows=600)
    table.aggregator("a")
    for i in range(2):
        table.client(f"c{i}", under="a", learns_scaling=learns)
    return table


def reads(table: Table, n: int, first: int = 0) -> np.ndarray:
    blocks = [rows(n, first + i) for i in range(2)]
    for i, block in enumerate(blocks):
        table.step(f"c{i}", Reading(block))
    table.run()
    table.passes(3000)
    return np.vstack(blocks)


def asked_of(table: Table, label: str = "r") -> LandmarksWanted | None:
    node = table.hosts[label].node
    return wanted(node.plan(GROUP), node.ledger(GROUP), node.settings.scaling_rows)


def chosen(table: Table) -> SettleLandmarks:
    """Choose as the root's job does, over rows as clients hold them."""
    asked = asked_of(table)
    parts = {f"c{i}": rows(300, i) for i in range(2)}
    answer = run_here("landmarks", asked.settings, parts)
    return SettleLandmarks(GROUP, asked.schema.fingerprint, answer["points"].astype(float))


def schema_of(table: Table, label: str) -> Schema:
    host = table.hosts[label]
    return host.ledger.schema if label in "ra" else host.node.current.schema


def counted(table: Table) -> int:
    return table.hosts["r"].ledger.counts().learnt


def test_nothing_is_settled_before_the_landmarks_are_there():
    """Neither scaling nor gamma: the schema changes once."""
    table = house()
    reads(table, 299)
    assert asked_of(table) is None
    reads(table, 300, 7)

    assert schema_of(table, "r") == OPEN
    assert schema_of(table, "c0") == OPEN
    assert asked_of(table) is not None


def test_landmarks_settle_the_schema_and_what_was_measured_counts():
    """All nodes have the same landmarks, scaled; each reading of the time before counts once."""
    table = house()
    every = reads(table, 300)
    event = chosen(table)
    table.step("r", event)
    table.passes(3000)
    reads(table, 100, 20)

    settled = {schema_of(table, each) for each in ("r", "a", "c0", "c1")}
    assert 1 == len(settled)
    found = settled.pop()
    expected = (event.points - every.mean(axis=0)) / every.std(axis=0)
    np.testing.assert_allclose(expected, found.features.points, rtol=1e-9, atol=1e-9)
    assert Gaussian().auto(4.0) == pytest.approx(found.features.kernel.gamma)
    assert 800 == counted(table)
    assert table.hosts["r"].model.summary is not None


def test_a_restarted_root_keeps_its_landmarks():
    """They are in the schema that its store has kept."""
    table = house()
    reads(table, 300)
    table.step("r", chosen(table))
    table.passes(100)
    before = schema_of(table, "r")
    table.restarts("r")
    table.passes(3000)

    assert before == schema_of(table, "r")
    assert asked_of(table) is None


def test_a_root_that_restarts_before_asks_again():
    """Nothing of a choice is kept but its result."""
    table = house()
    reads(table, 300)
    table.restarts("r")
    table.passes(3000)

    assert asked_of(table) is not None


def test_with_a_given_scaling_rows_are_scaled_already():
    """Then landmarks are taken as they come."""
    scaling = Scaling(tuple((5 * UNITS).tolist()), tuple(UNITS.tolist()))
    table = house(replace(OPEN, scaling=scaling), learns=False)
    reads(table, 300)
    asked = asked_of(table)
    points = (rows(M) - 5 * UNITS) / UNITS
    table.step("r", SettleLandmarks(GROUP, asked.schema.fingerprint, points))

    assert asked.settings["scale"] is False
    np.testing.assert_array_equal(points, schema_of(table, "r").features.points)


@pytest.mark.parametrize(
    ("fingerprint", "points", "what"),
    [
        ("0" * 64, rows(3), "landmarks ignored"),
        ("", rows(M + 1), "landmarks refused"),
        ("", rows(3)[:, :2], "landmarks refused"),
        ("", rows(3) * np.inf, "landmarks refused"),
    ],
    ids=["another schema", "too many", "too narrow", "not finite"],
)
def test_other_landmarks_change_nothing(fingerprint, points, what):
    """A note says why, and the choice is still wanted."""
    table = house()
    reads(table, 300)
    known = schema_of(table, "r").fingerprint
    table.step("r", SettleLandmarks(GROUP, fingerprint or known, points))

    assert what in [note.what for note in table.hosts["r"].notes]
    assert schema_of(table, "r") == OPEN


def test_only_a_root_chooses():
    """An aggregator below it has the schema from there."""
    table = house()
    reads(table, 1200)
    event = SettleLandmarks(GROUP, schema_of(table, "a").fingerprint, rows(3))
    table.step("a", event)

    assert asked_of(table, "a") is None
    assert schema_of(table, "a") == OPEN
    assert "landmarks refused" in [note.what for note in table.hosts["a"].notes]


def test_landmarks_can_be_chosen_again():
    """An operator's order: rows are then as the settled schema scales them."""
    table = house()
    reads(table, 300)
    table.step("r", chosen(table))
    table.passes(3000)
    before = schema_of(table, "r")
    plan = table.hosts["r"].node.plan(GROUP)
    asked, points = choice_for(plan, before), np.eye(4)
    table.step("r", SettleLandmarks(GROUP, asked.schema.fingerprint, points))
    table.passes(3000)

    after = schema_of(table, "c1")
    assert asked.settings["scale"] is False
    np.testing.assert_array_equal(points, after.features.points)
    assert (before.scaling, before.features.kernel) == (after.scaling, after.features.kernel)


def test_landmarks_of_a_file_are_not_chosen_again():
    """They are a person's."""
    plan = GroupPlan(SUMMARIES, replace(OPEN, features=Landmarks(Gaussian(1.0), np.eye(4))))

    with pytest.raises(UsageError, match="not left to the fleet"):
        choice_for(plan, plan.schema)


# -- the open map ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian(0.5), Matern(0.1, 2.5), Polynomial(4)])
def test_an_open_map_has_a_spec(kernel):
    """It is part of the schema's text, under a kind of its own."""
    map_ = OpenLandmarks(kernel, 300)

    assert map_ == parse(map_.spec())
    assert "nystrom-open" == map_.spec()["kind"]
    assert not map_.settled
    assert 300 == map_.dim(9)


def test_an_open_map_lifts_nothing():
    """There is nothing to lift with."""
    for attempt in (OpenLandmarks(Gaussian(1.0), 3).lift, OpenLandmarks(Gaussian(1.0), 3).pullback):
        with pytest.raises(UsageError, match="has not chosen"):
            attempt(*([np.eye(2)] * (2 if attempt.__name__ == "pullback" else 1)))


@pytest.mark.parametrize(
    ("found", "fits"),
    [
        (Landmarks(Gaussian(0.3), np.eye(4)), True),
        (Landmarks(Gaussian(0.3), np.ones((M + 1, 4))), False),
        (Landmarks(Matern(0.3), np.eye(4)), False),
        (OpenLandmarks(Gaussian(), M), True),
        (OpenLandmarks(Gaussian(), M - 1), False),
    ],
)
def test_a_client_takes_landmarks_that_its_schema_leaves_open(found, fits):
    """As many as it says at most, of its own kernel."""
    settled = replace(OPEN, features=found)

    assert fits == settled.is_like(OPEN)
    assert fits == (not differences(settled, OPEN))
    assert fits == (as_left_open(found, OPEN.features) == OPEN.features)


def test_a_client_with_its_own_gamma_takes_no_other():
    """What a schema gives is not left open."""
    own = replace(OPEN, features=OpenLandmarks(Gaussian(0.5), M))

    assert replace(OPEN, features=Landmarks(Gaussian(0.5), np.eye(4))).is_like(own)
    assert not replace(OPEN, features=Landmarks(Gaussian(0.4), np.eye(4))).is_like(own)
