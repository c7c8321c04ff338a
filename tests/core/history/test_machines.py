"""Machines of one fleet, each judged by its own rows and the fleet's, and by limits of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge.history.detection import ByMonitor, HistoryDetector, watching
from submerge.history.fit import Fitted, fit
from submerge.history.recording import Recorded
from submerge.history.settings import SOON
from submerge.judge.prepare import RowTime, prepare
from submerge.protocol.machine import Now
from submerge_files.model_file import learnt_of
from support import oracle_factor

DIM, ROWS, PERIOD = 6, 3000, 60.0
NAMES = tuple(f"c{i}" for i in range(DIM))
ALIKE = ("pump-0", "pump-1", "pump-2", "pump-3", "pump-4")
OTHER = "fan"
LOADINGS = np.random.default_rng(5).standard_normal((2, 2, DIM))


def drawn(machine: str, n: int, seed: int) -> np.ndarray:
    """Rows of a machine: two causes, and at `OTHER` with other loadings; each has a level."""
    rng = np.random.default_rng((seed, *machine.encode()))
    level = np.random.default_rng(machine.encode()[-1]).uniform(0, 50, DIM)
    causes = rng.standard_normal((n, 2)) @ LOADINGS[int(machine == OTHER)]
    return level + causes + 0.2 * rng.standard_normal((n, DIM))


def recorded(machine: str, n: int = ROWS, seed: int = 0) -> Recorded:
    return Recorded(machine, drawn(machine, n, seed), PERIOD * np.arange(n))


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    return fit(lambda: [recorded(each) for each in (*ALIKE, OTHER)], NAMES)


def detector(fitted: Fitted, machine: str) -> HistoryDetector:
    return HistoryDetector(fitted.model, fitted.states[machine], PERIOD, SOON, machine=machine)


def judged(by: HistoryDetector, rows: np.ndarray, machine: str) -> np.ndarray:
    """Return the distances of rows that come after the history."""
    times = PERIOD * np.arange(ROWS, ROWS + len(rows))
    found = [each.scores.even["distance"] for each in by.add(Recorded(machine, rows, times))]
    return np.concatenate(found)


def test_the_scatter_of_a_machine_is_that_of_its_rows(fitted):
    """About its own mean, and scaled as the schema has it."""
    scale = np.array(fitted.folds.schema.scaling.scale)
    rows = (drawn(OTHER, ROWS, 0) - fitted.folds.schema.scaling.offset) / scale
    off = rows - rows.mean(axis=0)
    own = fitted.states[OTHER].scatter

    assert pytest.approx(ROWS) == own.weight
    np.testing.assert_allclose(off.T @ off, own.sums, rtol=1e-6, atol=1e-6)


def test_a_machine_of_another_kind_keeps_to_itself_and_is_no_fault(fitted):
    """None of its rows is left out of the history."""
    assert fitted.states[OTHER].scatter.kappa <= 3
    assert not fitted.folds.deviant


@pytest.mark.parametrize("machine", [ALIKE[0], OTHER])
def test_rows_of_a_machine_are_far_off_by_what_is_unusual_there(fitted, machine):
    """One reading that the others contradict raises an alarm, at either."""
    rows = drawn(machine, 1200, seed=1)
    rows[1000:, 2] += 2.5

    by = detector(fitted, machine)
    distances = judged(by, rows, machine)

    assert DIM / 2 < distances[:1000].mean() < 1.1 * DIM
    *_, alarm = by.found.values()
    assert 1000 < alarm.began.row <= 1030
    assert alarm.alarm.worst > 2
    assert "c2" == alarm.alarm.top[0][0]


def test_distances_are_by_both_covariances(fitted):
    """The dense twin, at the first rows, before more is learnt."""
    by = ByMonitor(fitted.model, fitted.states[OTHER], PERIOD, SOON, OTHER)
    block = prepare(drawn(OTHER, 8, 1), by.schema, fill=by.filled, time=RowTime(PERIOD))
    own, mean = by.monitor.scatter, by.monitor.own
    scores = by.monitor.judge(block, fitted.model, Now(0.0, 0.0)).scores

    (factors,) = fitted.model.factors
    summary = fitted.model.scoring_summary
    fleet = oracle_factor.dense(factors.loadings_of(summary), factors.noise)
    both, noise = own.mixed(fleet, own.kappa)
    dense = both + np.diag(noise)
    expected = oracle_factor.distances(block.rows - mean.rows, dense) / mean.excess
    np.testing.assert_allclose(expected, scores.distance, rtol=0.02)  # steps add to the noise


def test_a_machine_goes_on_where_it_was_kept(fitted):
    """The next process scores the same rows the same."""
    rows, machine = drawn(OTHER, 900, seed=2), OTHER
    whole, first = detector(fitted, machine), detector(fitted, machine)
    expected = judged(whole, rows, machine)
    judged(first, rows[:500], machine)
    kept = replace(first.monitor.kept, resolution=None)
    states = fitted.states | {machine: kept}
    found = judged(detector(replace(fitted, states=states), machine), rows[500:], machine)

    assert first.monitor.scatter.weight + first.monitor.scatter.rows > ROWS + 300
    np.testing.assert_allclose(expected[500:], found, rtol=0.05)


def test_what_an_open_alarm_learns_is_not_how_the_machine_varies(fitted):
    """The fault lasts for days; its rows are learnt by the mean alone."""
    rows = drawn(OTHER, 4000, seed=3)
    rows[100:, 2] += 2.5 * np.random.default_rng(0).standard_normal(3900)
    by = detector(fitted, OTHER)
    judged(by, rows[:200], OTHER)
    before = by.monitor.scatter
    judged(by, rows[200:], OTHER)

    assert by.monitor.alarms[0].is_open
    assert before.weight + before.rows == pytest.approx(
        by.monitor.scatter.weight + by.monitor.scatter.rows, rel=0.1
    )


def test_each_machine_has_limits_of_its_own():
    """One whose readings scatter more is held to higher ones than the others, and they to lower."""

    wild = recorded("pump-9")
    noise = np.random.default_rng(0).standard_t(3, wild.rows.shape)
    wild = replace(wild, rows=wild.rows + 0.2 * noise)
    weeks = [replace(each, times=10 * each.times) for each in (*map(recorded, ALIKE), wild)]
    fitted = fit(lambda: weeks, NAMES)
    learnt = learnt_of(fitted)
    usual, calm, loud = (
        watching(learnt, state=state).limits.known["ewma"]
        for state in (None, fitted.states["pump-0"], fitted.states["pump-9"])
    )

    assert calm < usual <= loud


@pytest.fixture(scope="module")
def short() -> Fitted:
    """Sixty machines of fifty rows, all of the same hour."""
    return fit(lambda: [recorded(f"run-{i}", 50) for i in range(60)], NAMES)


def test_runs_of_one_hour_are_judged_by_those_of_other_machines(short):
    """There is no other time to judge them by."""
    assert 8 == short.folds.count
    for fold in range(8):
        inside = {cell.machine for cell, each in short.folds.fold_of.items() if each == fold}
        assert pytest.approx(3000 - 50 * len(inside)) == short.folds.without(fold).weight


def test_short_runs_have_limits_from_all_of_them(short):
    """No machine lasts for a day; a rate is stated that their rows support, and it is kept."""
    learnt = learnt_of(short)
    limits = watching(learnt).limits
    assert 3 * 60 * 40 * PERIOD == pytest.approx(limits.provisional_s, rel=0.01)

    raised = []
    for machine, state in learnt.monitors:
        by = HistoryDetector(learnt.model, state, PERIOD, SOON, machine=machine)
        rows = drawn(machine, 50, seed=1)
        if len(raised) < 10:
            rows[20:, 2] += 2.0
        [*by.add(Recorded(machine, rows, PERIOD * np.arange(50, 100)))]
        raised.append([(each.began.row, each.alarm.top[0][0]) for each in by.found.values()])

    found = [row for alarms in raised[:10] for row, channel in alarms if "c2" == channel]
    assert 9 <= len([row for row in found if 20 < row <= 35])
    assert 1 >= len([row for alarms in raised[10:] for row, _ in alarms])
