"""A recipe, carried out in plain NumPy, scores and raises alarms as the product does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import UsageError
from submerge.history.detection import HistoryDetector
from submerge.history.recording import Recorded
from submerge.history.settings import SOON
from submerge_bridges.export.command import recipe_of
from submerge_bridges.export.interpreter import (
    GAPS,
    SCORED,
    TOO_LARGE,
    ExportResult,
    ExportState,
    step,
)
from submerge_bridges.export.recipe import Recipe
from submerge_files.model_file import SavedModel
from support import exported, pump_files
from support.exported import by_product


@pytest.fixture(scope="module")
def pump() -> SavedModel:
    return exported.pump()


def carried_out(recipe: Recipe, rows: np.ndarray) -> list[ExportResult]:
    state, results = ExportState(), []
    for row in rows:
        result, state = step(recipe, row, state)
        results.append(result)
    return results


def check(saved: SavedModel, recipe: Recipe, rows: np.ndarray, machine: str | None = None) -> None:
    """Compare every number that a recipe gives with the product's."""
    product = by_product(saved, recipe, rows, machine)
    results = carried_out(recipe, rows)

    assert product.which.tolist() == [i for i, each in enumerate(results) if each.status == SCORED]
    scored = [results[i] for i in product.which]
    for kind in recipe.scores:
        np.testing.assert_allclose([each.scores[kind] for each in scored],
                                   product.scores.even[kind], rtol=1e-11)  # fmt: skip
        assert product.scores.over[kind].tolist() == [each.passed[kind] for each in scored]
    for kind in recipe.alarm.kinds:
        np.testing.assert_allclose([each.statistics[kind] for each in scored],
                                   product.statistics[kind], rtol=1e-10)  # fmt: skip
    shares = product.scores.blame()
    np.testing.assert_allclose([each.shares for each in scored], shares, atol=1e-10)
    blamed = shares.argmax(axis=1)
    assert blamed.tolist() == [each.blame for each in scored]
    scale = recipe.scale[blamed]
    errors = np.take_along_axis(product.scores.errors, blamed[:, None], axis=1)[:, 0]
    np.testing.assert_allclose([each.deviation for each in scored], errors * scale, rtol=1e-9)


def test_it_scores_as_the_product(pump: SavedModel):
    """Scores, limits passed, statistics of alarms, and channels to blame, of a day with a fault."""
    recipe = recipe_of(pump)

    check(pump, recipe, pump_files.bad_day()[700:1000])
    assert ("channel", "ewma") == recipe.alarm.kinds


@pytest.mark.slow
def test_each_machine_has_its_own_mean():
    """Where machines differ in their means, a recipe is of one of them."""
    rows = np.concatenate([pump_files.readings(4000), pump_files.readings(4000, 1, level=9.0)])
    saved = exported.fitted(rows, pump_files.NAMES, machines=2)
    with pytest.raises(UsageError, match="one that was learnt"):
        recipe_of(saved)
    recipe = recipe_of(saved, machine="m1")

    check(saved, recipe, rows[4000:4100], "m1")
    assert recipe.excess > 1


def test_without_factors_there_is_no_distance(pump: SavedModel):
    """A model of an aggregator without energies of channels has SPE and T2 alone."""
    saved = pump._replace(model=replace(pump.model, factors=()))
    recipe = recipe_of(saved)

    check(saved, recipe, pump_files.bad_day()[800:900])
    assert ("spe", "t2") == recipe.scores
    assert "distance" not in recipe.alarm.kinds


def test_alarms_are_those_of_detect(pump: SavedModel):
    """An alarm begins and ends at the rows at which `submerge detect` begins and ends it."""
    rows, recipe = pump_files.bad_day(), recipe_of(pump)
    alarmed = exported.by_detect(pump, rows)

    assert alarmed.any()
    assert alarmed.tolist() == [each.alarm for each in carried_out(recipe, rows)]


def test_limits_are_those_of_detect(pump: SavedModel):
    """The limits that recorded rows are compared with, at the rate that is promised."""
    detector = HistoryDetector(pump.model, dict(pump.learnt.monitors)["m0"], 60.0, SOON)
    list(detector.add(Recorded("m0", pump_files.readings(10), None)))

    assert detector.monitor.detector.limits.known == recipe_of(pump).alarm.limits


def test_a_row_that_cannot_be_scored_is_marked_and_changes_nothing(pump: SavedModel):
    """A gap, an infinity, and a number beyond all sense; a gap beside an infinity is the latter."""
    recipe, fine = recipe_of(pump), pump_files.readings(1)[0]
    rows = np.tile(fine, (5, 1))
    rows[0, 1] = rows[3, 1] = rows[4, 1] = np.nan
    rows[1, 2] = rows[3, 3] = np.inf
    rows[2, 0] = rows[4, 0] = 1e200
    _, state = step(recipe, fine, ExportState())

    for status, row in zip([GAPS, TOO_LARGE, TOO_LARGE, TOO_LARGE, GAPS], rows, strict=True):
        result, after = step(recipe, row, state)
        assert (status, state) == (result.status, after)


def test_one_statistic(pump: SavedModel):
    """A recipe of one score has that score, and the alarms that follow from it alone."""
    recipe = recipe_of(pump)

    assert (("distance",), ("ewma",)) == (
        recipe.only("distance").scores,
        recipe.only("distance").alarm.kinds,
    )
    assert ((("spe",), ())) == (recipe.only("spe").scores, recipe.only("spe").alarm.kinds)
    with pytest.raises(UsageError, match="statistic of the model"):
        recipe.only("channel")
