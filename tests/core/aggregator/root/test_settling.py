"""The root chooses a group's rank once, from the rows below, and publishes it with each model."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import Schema, spe
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.root import ENOUGH
from submerge.protocol.machine import Reading
from submerge.protocol.messages import Model
from submerge.protocol.summaries import Subspaces
from support.nodes import GROUP, Table

DIM, TRUE, START = 10, 4, 2
KIND = Subspaces(START, rank_max=7, oversample=2)
SCHEMA = Schema(DIM, center="own")
CLIENTS = "cdef"


def readings(n: int, seed: int) -> np.ndarray:
    """Rows (n, 10) with 4 common factors, the same for all seeds."""
    loadings = 3 * np.random.default_rng(5).standard_normal((TRUE, DIM))
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, TRUE)) @ loadings + rng.standard_normal((n, DIM))


def fleet(
    *, clients: str = CLIENTS, schema: Schema = SCHEMA, kind: Subspaces = KIND, auto: bool = True
) -> Table:
    table = Table(kind, schema)
    plan = GroupPlan(kind, schema, chooses_rank=auto)
    table.root("r", plans={GROUP: plan}, report_every_s=60)
    for name in clients:
        table.client(name, under="r", report_every_s=100, min_rows=20)
    return table


def learn(table: Table, rows: int) -> Model:
    """Let clients learn so many rows together; return the root's model."""
    names = [name for name in table.hosts if name != "r"]
    for i, name in enumerate(names):
        table.step(name, Reading(readings(rows // len(names), i)))
    table.passes(500)
    return table.hosts["r"].model


def test_until_there_are_enough_rows_the_configured_rank_is_published():
    """Of few rows each direction looks like noise."""
    table = fleet()
    assert learn(table, ENOUGH - 4).rank == START
    assert ("rank", GROUP) not in table.hosts["r"].disk


def test_the_rank_follows_from_the_children_and_is_kept():
    """It is chosen once: neither a restart nor other rows change it."""
    table = fleet()
    assert learn(table, ENOUGH).rank == TRUE
    assert table.hosts["r"].disk["rank", GROUP] == TRUE
    table.restarts("r")
    for i, name in enumerate(CLIENTS):
        table.step(name, Reading(np.random.default_rng(i).standard_normal((2000, DIM))))
    table.passes(500)
    assert table.hosts["r"].model.rank == TRUE


def test_a_number_in_the_configuration_overrules_the_choice():
    """The operator's number is published, and what was chosen is forgotten."""
    table = fleet()
    learn(table, ENOUGH)
    fixed = fleet(auto=False, clients="")
    fixed.hosts["r"].disk.update(table.hosts["r"].disk)
    fixed.restarts("r")
    fixed.client("c", under="r", report_every_s=100, min_rows=20)
    fixed.step("c", Reading(readings(100, 0)))
    fixed.passes(500)
    assert fixed.hosts["r"].model.rank == START
    assert fixed.hosts["r"].disk.get(("rank", GROUP)) is None


def test_three_children_do_not_choose():
    """A spread over three says nothing; the configured rank stays."""
    assert learn(fleet(clients="cde"), ENOUGH).rank == START


def lying(table: Table, honest: int, kind: str) -> Model:
    """Let clients learn so many rows together, and one report something else."""
    names = [name for name in table.hosts if name not in "rz"]
    for i, name in enumerate(names):
        table.step(name, Reading(readings(honest // len(names), i)))
    table.step("z", Reading(lies(honest // len(names), kind)))
    table.passes(500)
    return table.hosts["r"].model


def lies(n: int, kind: str) -> np.ndarray:
    """Rows of one node that are to move the choice."""
    rng = np.random.default_rng(77)
    match kind:
        case "many":
            return rng.standard_normal((30 * n, DIM))
        case "large":
            return 1e6 * rng.standard_normal((n, DIM))
        case _:
            # Where the others do not vary, with as much energy as theirs.
            shared = np.linalg.svd(readings(5000, 5), full_matrices=True)[2]
            return 8 * rng.standard_normal((n, DIM - TRUE)) @ shared[TRUE:]


@pytest.mark.parametrize("center", ["own", "fleet"])
@pytest.mark.parametrize("kind", ["many", "large", "opposite"])
def test_one_child_does_not_choose_the_rank(kind, center):
    """It can move the choice by one direction: a model has its directions, too."""
    table = fleet(clients="cdefghiz", schema=Schema(DIM, center=center))
    assert abs(lying(table, 2 * ENOUGH, kind).rank - TRUE) <= 1


def test_one_child_does_not_make_the_root_choose_early():
    """It claims readings enough for all; a choice from few rows is low, and for good."""
    table = fleet(clients="cdefghiz")
    assert lying(table, 210, "many").rank == START
    table = fleet(clients="cdefz")
    table.step("z", Reading(readings(2 * ENOUGH, 7)))
    for i, name in enumerate("cdef"):
        table.step(name, Reading(readings(30, i)))
    table.passes(500)
    assert ("rank", GROUP) not in table.hosts["r"].disk


def test_nodes_score_with_the_rank_of_the_model():
    """SPE and T2 of a client are of the directions that the root has chosen."""
    table = fleet()
    model = learn(table, ENOUGH)
    rows = readings(50, 9)
    table.step("c", Reading(rows))
    scoring = table.hosts["c"].node._ingest.monitor._scoring_model(model)
    expected = spe(rows, model.scoring_summary.parts[0].truncated(TRUE))
    assert expected == pytest.approx(scoring.scorer.statistics(rows, rows).spe)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_published_rank_is_below_the_dimension(dim):
    """SPE by all directions would be rounding. One channel has one direction."""
    schema = Schema(dim, center="own")
    table = fleet(schema=schema, kind=Subspaces(8, rank_max=16), clients="c")
    table.step("c", Reading(readings(200, 1)[:, :dim]))
    table.passes(500)
    assert table.hosts["r"].model.rank == max(1, dim - 1)
