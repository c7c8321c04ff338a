"""A history becomes a model: however it was cut, what was odd in it, and which alarms follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge.condition import Condition
from submerge.errors import NothingLearnt
from submerge.history.detection import HistoryDetector, watching
from submerge.history.first_pass import FirstPass
from submerge.history.fit import fit
from submerge.history.layout import CellGrid, most_cells
from submerge.history.recording import Recorded
from submerge.history.settings import SOON, FitSettings
from submerge_files.model_file import learnt_of
from support.gappy import slow_plant
from support.six_channels import (
    EPOCH,
    NAMES,
    OFFSET,
    PATTERN,
    PERIOD,
    SCALE,
    learnt,
    normal,
    recorded,
)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 1499), max_size=7))
def test_a_history_is_the_same_however_it_was_cut_into_files(cuts: list[int]):
    """To the last bit: scatter, rank, limits, and what is known of the channels."""
    rows = normal(1500)
    rows[::97, 2] = np.nan
    whole, parts = learnt(recorded(rows)), learnt(recorded(rows, tuple(cuts)))

    assert whole.scatter.scatter.tobytes() == parts.scatter.scatter.tobytes()
    assert whole.model.schema == parts.model.schema
    assert whole.sketches.maxima.packed == parts.sketches.maxima.packed
    assert whole.model.limits == parts.model.limits or (
        whole.model.limits.spe == parts.model.limits.spe
        and whole.model.limits.distance == parts.model.limits.distance
    )
    assert (whole.folds.rank, whole.first.rows) == (parts.folds.rank, parts.first.rows)


def test_all_is_learnt_exactly():
    """The scatter of the cells is that of all rows, scaled by their mean and deviation."""
    rows = normal(3000)
    fitted = learnt(recorded(rows))
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)

    np.testing.assert_allclose(scaled.T @ scaled, fitted.scatter.scatter, rtol=1e-9, atol=1e-6)
    assert 3000 == fitted.model.counts.learnt


def test_memory_does_not_grow_with_the_rows():
    """There are never more cells than `most_cells` and one."""
    first, most = FirstPass(NAMES, FitSettings()), 0
    for part in recorded(normal(20_000), tuple(range(500, 20_000, 500))):
        first.add(part)
        most = max(most, len(first.cells))
    first.end()

    assert most <= most_cells(6) + 1
    assert 20_000 == sum(round(cell.scatter.weight) for cell in first.cells.values())


@pytest.mark.parametrize("period", [60.0, 3600.0])
def test_every_block_of_a_history_has_a_maximum(period: float):
    """However many cells there are, and however long a node would remember."""
    rows, times = normal(10_000), EPOCH + period * np.arange(10_000)
    maxima = fit(lambda: [Recorded("m", rows, times)], NAMES).sketches.maxima

    blocks = int(10_000 * period / maxima.length_s)
    if period > 600:
        blocks = 10_000 // round(maxima.length_s / period)
    assert blocks - 2 <= maxima.ewma.n <= blocks
    assert maxima.ewma.n == maxima.longest


def test_the_rank_is_chosen_or_as_configured():
    """Chosen by held-out likelihood; below the dimension in any case."""
    chosen = learnt(recorded(normal(6000))).folds.rank

    assert 2 <= chosen < len(NAMES)
    assert 3 == learnt(recorded(normal(2000)), rank=3).folds.rank
    assert 5 == learnt(recorded(normal(2000)), rank=16).folds.rank


def test_a_span_that_is_unlike_all_others_is_left_out_and_named():
    """A fault in the history must not become normal."""
    rows = normal(12_000)
    rows[5000:5300, 3] += 12 * SCALE[3]
    with_it, without = learnt(recorded(rows), leaves_out=False), learnt(recorded(rows))
    clean = learnt(recorded(normal(12_000)))
    begin, end = EPOCH + 5000 * PERIOD, EPOCH + 5300 * PERIOD
    (span,) = without.folds.deviant

    assert span.first < end
    assert span.last > begin
    assert not clean.folds.deviant
    assert not with_it.folds.deviant
    assert without.model.limits.distance[2] < 1.2 * clean.model.limits.distance[2]


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("rows", [40, 150, 400, 900])
@pytest.mark.parametrize("start", [700, 2931])
def test_a_fault_is_left_out_whole(start: int, rows: int, timed: bool):
    """A part of it that were learnt would make limits that the next one does not reach."""
    faulty = slow_plant()
    faulty[start : start + rows, 1] += 1.5
    parts, usual = (recorded(each, timed=timed) for each in (faulty, slow_plant()))
    fitted, clean = fit(lambda: parts, list("abcd")), fit(lambda: usual, list("abcd"))
    (span,) = fitted.folds.deviant
    unit = fitted.first.laid.grid.unit
    where = span.begin.number * unit, (span.end.number + 1) * unit
    begin, end = where if not timed else tuple((each - EPOCH) / PERIOD for each in where)

    # A row or two in the next cell raise no limit.
    assert begin - 2 <= start
    assert start + rows <= end + 2
    assert end - begin < rows + 5 * unit / (PERIOD if timed else 1)
    limits, least = (watching(learnt_of(each)).limits for each in (fitted, clean))
    assert limits.known["ewma"] < 1.5 * least.known["ewma"]
    assert not fitted.raised(limits)[1]


def test_rows_that_make_limits_high_are_named():
    """A weak fault of fifteen hours is no span that is unlike all others, and a person decides."""
    faulty = slow_plant()
    faulty[2931:3831, 1] += 0.5
    fitted = fit(lambda: recorded(faulty), list("abcd"))
    times, spans = fitted.raised(watching(learnt_of(fitted)).limits)
    clean = fit(lambda: recorded(slow_plant()), list("abcd"))

    assert times > 5
    assert all(EPOCH + 2931 * PERIOD <= span.first <= EPOCH + 3831 * PERIOD for span in spans)
    assert not clean.raised(watching(learnt_of(clean)).limits)[1]


@pytest.mark.slow
@pytest.mark.parametrize("size", [12.0, 1e4])
@pytest.mark.parametrize(("start", "rows"), [(5000, 300), (5100, 300), (0, 500), (8000, 1000)])
def test_what_is_left_of_a_fault_beside_the_span_goes_with_it(start: int, rows: int, size: float):
    """Wherever a cell begins: limits are those of the history without the fault."""
    table, times = normal(12_000), EPOCH + PERIOD * np.arange(12_000)
    table[start : start + rows, 3] += size * SCALE[3]
    free = np.ones(12_000, dtype=bool)
    free[start : start + rows] = False
    fitted = learnt(recorded(table))
    best = learnt([Recorded("m", table[free], times[free])])
    found, expected = (watching(learnt_of(each)).limits.known for each in (fitted, best))

    kept = fitted.model.counts.learnt
    assert 12_000 - rows - 500 < kept < 12_000 - rows + 10
    for kind, limit in expected.items():
        assert limit == pytest.approx(found[kind], rel=0.2)


def test_limits_are_of_rows_that_were_not_learnt():
    """So they hold on rows that come later, also where few rows were learnt."""
    fitted = learnt(recorded(normal(400)))
    detector = HistoryDetector(fitted.model, fitted.states["m"], PERIOD, SOON)
    over = np.concatenate(
        [part.scores.over["distance"] for part in detector.add(recorded(normal(4000, 1))[0])]
    )

    assert 0.005 < np.mean(over >= 0.99) < 0.03


def slow_causes(n: int, seed: int) -> np.ndarray:
    """Return rows of four channels whose two causes change little from row to row."""
    rng = np.random.default_rng(seed)
    causes = np.zeros((n, 2))
    for i in range(1, n):
        causes[i] = 0.98 * causes[i - 1] + 0.2 * rng.normal(size=2)
    return causes @ PATTERN[:, :4] + 0.1 * rng.normal(size=(n, 4))


@pytest.mark.slow
@pytest.mark.parametrize("n", [600, 1300, 6000])
def test_each_limit_is_passed_by_as_many_normal_rows_as_it_says(n: int):
    """Also that of T2, where causes are slow, and that of SPE, of one degree of freedom."""
    passed: dict[str, list[float]] = {}
    for seed in range(12):
        rows, times = slow_causes(n + 3000, seed), EPOCH + PERIOD * np.arange(n + 3000)
        part = Recorded("m", rows[:n], times[:n])
        fitted = fit(lambda part=part: [part], NAMES[:4])
        detector = HistoryDetector(fitted.model, fitted.states["m"], PERIOD, SOON)
        judged = list(detector.add(Recorded("m", rows[n:], times[n:])))
        for kind in ("t2", "spe", "distance"):
            over = np.concatenate([each.scores.over[kind] for each in judged])
            passed.setdefault(kind, []).append(float(np.mean(over >= 0.99)))

    # The median, for some six lengths of a cause are no year: one history of many is unlike it.
    assert all(0.003 < np.median(each) < 0.017 for each in passed.values()), passed


@pytest.mark.parametrize("fault", [0.0, 3.0, 30.0])
@pytest.mark.parametrize("n", [200, 500])
def test_no_limit_comes_from_rows_that_are_judged(n: int, fault: float):
    """A fault that fills the file is over the limits from its first rows to its last."""
    fitted = learnt(recorded(normal(n)))
    rows = normal(600, 1)
    rows[:, 4] += fault * SCALE[4]
    detector = HistoryDetector(fitted.model, fitted.states["m"], PERIOD, SOON)
    list(detector.add(recorded(rows, first=EPOCH + 1e6)[0]))

    found = list(detector.found.values())
    expected = watching(learnt_of(fitted)).limits
    assert expected.known == detector.monitor.detector.limits.known
    assert expected.provisional_s / PERIOD == detector.stated_rows > n / 2
    assert not expected.counted
    if not fault:
        assert len(found) <= 2 * 600 / detector.stated_rows
        return
    (alarm,) = found
    assert (True, None) == (alarm.began.row <= 10, alarm.ended)


def test_breaks_in_a_judged_file_leave_its_limits_as_they_are():
    """The third of equal faults is judged as the first."""
    fitted = learnt(recorded(normal(500)))
    rows = normal(900, 1)
    for start in (100, 400, 700):
        rows[start : start + 40, 4] += 6 * SCALE[4]
    detector = HistoryDetector(fitted.model, fitted.states["m"], PERIOD, SOON)
    before = watching(learnt_of(fitted)).limits.known
    list(detector.add(recorded(rows, first=EPOCH + 1e6)[0]))

    assert before == detector.monitor.detector.limits.known
    begins = [alarm.began.row for alarm in detector.found.values()]
    assert all(any(start < row <= start + 12 for row in begins) for start in (100, 400, 700))


@pytest.mark.parametrize("n", [20, 60])
def test_rows_that_no_others_judge_give_no_limits(n: int):
    """A history of a single span has no held-out scores: it says so and judges nothing."""
    fitted = learnt(recorded(normal(n), first=EPOCH // 65536 * 65536))

    assert 1 == fitted.folds.count
    assert not watching(learnt_of(fitted)).limits.known


@pytest.mark.parametrize("pieces", [1024, 1 << 22])
def test_provisional_limits_are_of_all_rows_of_all_machines(pieces: int):
    """In however many pieces they were judged; a machine that is unknown is judged by the same."""
    hours = [Recorded(f"m{i}", normal(1100, i), EPOCH + 3600.0 * np.arange(1100)) for i in range(2)]
    fitted = fit(lambda: hours, NAMES, FitSettings(judged_rows=pieces))
    first, second = (fitted.states[name].detector.highest for name in ("m0", "m1"))

    assert first == second
    assert 2000 < first.rows["ewma"] <= 2200


def test_a_fault_is_found_at_its_rows_and_named():
    fitted = learnt(recorded(normal(20_000)))
    rows = normal(3000, 1)
    rows[1000:1100, 4] += 3 * SCALE[4]
    detector = HistoryDetector(fitted.model, fitted.states["m"], PERIOD, SOON)
    (part,) = recorded(rows, first=EPOCH + 1e7)
    judged = list(detector.add(part))
    (found,) = detector.found.values()

    assert 3000 == sum(len(each.block) for each in judged)
    assert 1001 <= found.began.row <= 1010
    assert 1100 <= found.ended.row <= 1160
    assert EPOCH + 1e7 + PERIOD * (found.began.row - 1) == found.began.time
    assert "c4" == found.alarm.first[0][0]
    alarmed = np.concatenate([each.alarmed for each in judged])
    assert found.ended.row - found.began.row == alarmed.sum()


def test_alarms_are_at_their_rows_where_others_are_left_out():
    """Rows that cannot be judged have no part in the times of alarms."""
    fitted = learnt(recorded(normal(20_000)))
    rows = normal(600, 1)
    rows[::3] = np.nan
    rows[301:401, 4] += 3 * SCALE[4]
    detector = HistoryDetector(fitted.model, fitted.states["m"], PERIOD, SOON)
    list(detector.add(recorded(rows)[0]))
    (found,) = detector.found.values()

    assert 302 <= found.began.row <= 315
    assert EPOCH + PERIOD * (found.began.row - 1) == found.began.time


def test_rows_without_times_are_learnt_file_by_file():
    """Their alarms have rows and no times."""
    fitted = learnt(recorded(normal(6000), (2000, 4000), timed=False))
    rows = normal(500, 1)
    rows[200:300, 1] += 5 * SCALE[1]
    detector = HistoryDetector(fitted.model, fitted.states["m"], 0.0, SOON)
    list(detector.add(Recorded("m", rows, None)))
    (found,) = detector.found.values()

    assert (0.0, 0.0) == (fitted.first.period_s, fitted.model.created)
    assert 201 <= found.began.row <= 210
    assert np.isnan(found.began.time)


def machines(*offsets: float, n: int = 6000) -> list[Recorded]:
    """Return the rows of several machines, each at a level of its own."""
    times = EPOCH + PERIOD * np.arange(n)
    return [
        Recorded(f"m{i}", normal(n, i) + offset * SCALE, times, f"m{i}.csv")
        for i, offset in enumerate(offsets)
    ]


def test_machines_are_measured_from_their_own_means():
    """The scatter of several machines is that within each; a machine's level is no alarm."""
    parts = machines(0.0, 30.0, -20.0)
    fitted = learnt(parts)
    scale = np.array(fitted.folds.schema.scaling.scale)
    within = sum((p.rows - p.rows.mean(axis=0)).T @ (p.rows - p.rows.mean(axis=0)) for p in parts)

    expected = within / scale / scale[:, None]
    np.testing.assert_allclose(expected, fitted.scatter.scatter, rtol=1e-8, atol=1e-6)
    assert "own" == fitted.folds.schema.center
    assert ["m0", "m1", "m2"] == sorted(fitted.states)
    assert not fitted.folds.deviant
    for i, offset in enumerate((0.0, 30.0, -20.0)):
        rows = normal(1500, 10 + i) + offset * SCALE
        rows[1000:1100, 2] += 4 * SCALE[2]
        detector = HistoryDetector(fitted.model, fitted.states[f"m{i}"], PERIOD, SOON)
        list(detector.add(recorded(rows)[0]))
        (found,) = [each for each in detector.found.values() if each.began.row > 1000]
        assert 1001 <= found.began.row <= 1012
        assert "c2" == found.alarm.first[0][0]


def test_memory_is_bounded_by_files_and_outages_too():
    """A minute a day for years, and hundreds of files without times."""
    rows = normal(60)
    days = [
        Recorded("m", rows, EPOCH + 86400 * day + np.arange(60.0), f"{day}.csv")
        for day in range(600)
    ]
    files = [Recorded("m", rows, None, f"{i}.csv") for i in range(300)]
    for parts in (days, files):
        first = FirstPass(NAMES, FitSettings())
        for part in parts:
            first.add(part)
        first.end()

        assert len(first.cells) <= most_cells(6) + 1
        assert 60 * len(parts) == sum(round(each.scatter.weight) for each in first.cells.values())
    assert 60 * 300 == learnt(files).model.counts.learnt


def test_how_far_machines_are_apart_is_no_variation():
    """Scales are those within a machine; machines that never vary teach nothing."""
    near, far = learnt(machines(0.0, 1.0)), learnt(machines(0.0, 1e6))
    level = [Recorded(name, np.full((200, 6), x), None, name) for name, x in (("a", 1), ("b", 9))]

    np.testing.assert_allclose(
        near.folds.schema.scaling.scale, far.folds.schema.scaling.scale, rtol=1e-6
    )
    with pytest.raises(NothingLearnt, match="expected channels that vary"):
        learnt(level)


def test_a_machine_that_is_new_learns_its_own_mean_first():
    """As a new client does: its first rows say where it is."""
    fitted = learnt(machines(0.0, 30.0))
    detector = HistoryDetector(fitted.model, None, PERIOD, SOON)
    rows = normal(4000, 9) + 100 * SCALE
    rows[3000:3100, 2] += 4 * SCALE[2]
    list(detector.add(recorded(rows)[0]))
    (found,) = detector.found.values()

    assert 3001 <= found.began.row <= 3012


def test_rows_in_another_state_are_left_out():
    rows = normal(3000)
    rows[:1000, 0] = OFFSET[0] + 100 * SCALE[0]
    when = Condition.parse(f"c0 < {OFFSET[0] + 50 * SCALE[0]}", NAMES)
    fitted = learnt(recorded(rows), when=when)

    assert 2000 == fitted.model.counts.learnt
    assert 1000 == fitted.first.left_out["other state"]


def test_what_cannot_be_learnt_is_said_in_one_line():
    with pytest.raises(NothingLearnt, match="expected rows that can be learnt, got none"):
        learnt(recorded(np.full((100, 6), np.nan)))
    with pytest.raises(NothingLearnt, match="expected channels that vary"):
        learnt(recorded(np.ones((100, 6))))
    with pytest.raises(NothingLearnt, match="expected channels that vary"):
        learnt(recorded(np.ones((2000, 6))))
    with pytest.raises(UsageError, match="at most 512 channels, got 600"):
        FirstPass([f"c{i}" for i in range(600)], FitSettings())
    with pytest.raises(UsageError, match="rank must be at most rank_max = 16, got 20"):
        FitSettings(rank=20)


def test_few_rows_have_provisional_limits_that_say_so():
    """400 rows of a second promise no false alarm a week: the rate that they support is stated."""
    fitted = learnt(recorded(normal(400)))
    detector = HistoryDetector(fitted.model, fitted.states["m"], PERIOD, SOON)
    list(detector.add(recorded(normal(200, 1))[0]))

    assert detector.stated_rows > 0


def test_a_grid_has_cells_of_some_rows_and_doubles_exactly():
    grid = CellGrid.of(60.0)
    (part,) = recorded(normal(10))
    cell, _ = grid.first_cell(part, 0, 0, 0)

    assert 64 * 60.0 <= grid.unit < 2 * 64 * 60.0
    assert cell.larger(longer=True) == grid.larger(longer=True).first_cell(part, 0, 0, 0)[0]


def read(parts: list[Recorded]) -> Iterator[Recorded]:
    yield from parts


def test_progress_counts_every_row_of_every_pass():
    seen: list[int] = []
    fit(lambda: read(recorded(normal(3000))), NAMES, replace(FitSettings()), advance=seen.append)

    assert 2 * 3000 < sum(seen) <= 3 * 3000
