"""A history with gaps: a fault is as far from normal as by the complete history."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.history import folds
from submerge.history.detection import watching
from submerge.history.first_pass import FirstPass
from submerge.history.fit import fit
from submerge.history.recording import Recorded
from submerge.history.settings import FitSettings
from submerge.incremental import RowHistory, RowModel
from submerge.pca.expectation import estimate
from submerge_files.model_file import learnt_of
from support import oracle
from support.gappy import plant, slow_plant, with_gaps

N, NAMES, PERIOD = 3000, list("abcd"), 60.0


KINDS = ["1%", "5%", "10%", "start", "middle", "end", "flickers"]
KINDS += ["every other row", "two sensors of four"]


def by_fit(rows: np.ndarray) -> RowModel:
    """The model of `submerge fit`."""
    times = PERIOD * np.arange(len(rows))
    fitted = fit(lambda: [Recorded("m", rows, times)], NAMES)
    assert not fitted.folds.deviant
    return RowModel.of(fitted.scatter, fitted.folds.schema, fitted.folds.rank, FitSettings())


def by_calls(rows: np.ndarray, size: int) -> RowModel:
    """The model of rows that came in calls, and are not kept."""
    history = RowHistory(NAMES, FitSettings(), measures=False)
    for start in range(0, len(rows), size):
        history.add(rows[start : start + size])
    return history.model


WAYS = {
    "fit": by_fit,
    "one call": lambda rows: by_calls(rows, len(rows)),
    "calls of 50": lambda rows: by_calls(rows, 50),
    "calls of 7": lambda rows: by_calls(rows, 7),
}


def far(model: RowModel, noise: float) -> float:
    """The median distance of rows in which b is off by 15 noises."""
    rows = plant(200, noise, seed=5)
    rows[:, 1] += 15 * noise
    return float(np.median(model.distances(rows)))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [0.03, 0.3])
def test_a_fault_is_as_far_off_as_by_complete_rows(way, kind, noise):
    """Within 10 %, however closely channels are related, and whatever is missing."""
    rows = plant(N, noise, seed=0)

    found = far(WAYS[way](with_gaps(rows, kind)), noise)

    assert far(WAYS[way](rows), noise) == pytest.approx(found, rel=0.1)


@pytest.mark.parametrize("kind", ["5%", "start"])
def test_what_is_learnt_is_what_all_rows_say(kind):
    """The fixed point of expectation and maximisation over all rows, row by row."""
    rows = with_gaps(plant(600, 0.1, seed=0), kind)
    first = FirstPass(NAMES, FitSettings())
    first.add(Recorded("m", rows, PERIOD * np.arange(600)))
    first.end()
    groups = [cell.group for _, cell in sorted(first.cells.items())]
    both = groups[0]
    for group in groups[1:]:
        both = both.and_rows(group)

    _, (whole,) = estimate([both])

    learnt = rows[np.isfinite(rows).sum(axis=1) >= 2]
    truth = oracle.maximum_likelihood(learnt)
    scale = np.sqrt(np.diag(truth.scatter))
    assert len(groups) > 4
    assert np.allclose(truth.mean, whole.mean, rtol=1e-5)
    off = (truth.scatter - whole.scatter) / np.outer(scale, scale)
    assert np.abs(off).max() < 1e-5


@pytest.mark.slow
def test_more_rare_gaps_than_are_kept_are_filled_by_all_of_them(monkeypatch):
    """Forty channels, each row with a pattern of its own: rows come once more."""
    monkeypatch.setattr(folds, "MOST_RARE", 1 << 12)  # of some hours, not of days
    rng = np.random.default_rng(3)
    loadings = rng.normal(size=(5, 40))
    draw = lambda n: rng.normal(size=(n, 5)) @ loadings + 0.1 * rng.normal(size=(n, 40))  # noqa: E731
    rows, fault, read = draw(10_000), draw(200), []
    fault[:, 1] += 1.5
    gaps = np.where(rng.random(rows.shape) < 0.1, np.nan, rows)
    gaps[:2500, 7] = np.nan
    found = []
    for some in (rows, gaps):

        def reading(some=some):
            read.append(len(some))
            return [Recorded("m", some, PERIOD * np.arange(len(some)))]

        fitted = fit(reading, [f"c{i}" for i in range(40)], FitSettings(rank=5))
        model = RowModel.of(fitted.scatter, fitted.folds.schema, 5, FitSettings())
        found.append(float(np.median(model.distances(fault))))

    assert 9 == len(read)  # four times, and five: times, rows, again, blocks, all
    assert found[0] == pytest.approx(found[1], rel=0.03)


def test_a_machine_without_a_sensor_learns_from_the_others():
    """Each has a mean of its own, and what they share fills the gaps."""
    one, other = plant(1000, 0.1, seed=0), plant(1000, 0.1, seed=1) + 5
    lacks = other.copy()
    lacks[:, 3] = np.nan
    times = PERIOD * np.arange(1000)
    scatters = []
    for second in (other, lacks):
        parts = [Recorded("one", one, times), Recorded("other", second, times)]
        fitted = fit(lambda parts=parts: parts, NAMES)
        scatters.append(fitted.scatter.scatter)
        assert 2000 == fitted.scatter.weight

    small = np.linalg.eigvalsh(scatters[0])[0]
    assert small == pytest.approx(np.linalg.eigvalsh(scatters[1])[0], rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["5%", "start", "middle", "end"])
def test_limits_are_those_of_the_complete_history(kind):
    """What fills the gaps of a sensor agrees with the others, and is no measure of them."""
    limits = []
    for rows in (slow_plant(), with_gaps(slow_plant(), kind)):
        parts = [Recorded("m", rows, PERIOD * np.arange(len(rows)))]
        fitted = fit(lambda parts=parts: parts, NAMES)
        limits.append(watching(learnt_of(fitted)).limits)

    for by in ("ewma", "channel"):
        assert limits[0].known[by] == pytest.approx(limits[1].known[by], rel=0.35)
