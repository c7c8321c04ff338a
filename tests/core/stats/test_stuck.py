"""StuckDetector: predictions by other channels, and which channels are stuck."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import SAPCA, ShapeError
from submerge.pca.reconstruct import Reconstruction
from submerge.stats.stuck import (
    CHUNK,
    ENOUGH,
    FAR,
    LEAST_RUN,
    MEMORY,
    RARE,
    SETTLED,
    SHORT,
    TIMES,
    Habits,
    RunLengths,
    StuckDetector,
)
from support import oracle
from support.strategies import cuts

DIM = 6
CAUSES = np.random.default_rng(0).standard_normal((2, DIM))
MODEL = (
    SAPCA(2)
    .partial_fit(
        np.random.default_rng(1).standard_normal((4000, 2)) @ CAUSES
        + np.random.default_rng(2).normal(0, 0.2, (4000, DIM))
    )
    .shown
)
RECALL = Reconstruction(MODEL)
LONELY = DIM
"""A seventh channel, which has nothing to do with the others."""


def plant(n: int, seed: int = 3, *, still: bool = False) -> np.ndarray:
    """Rows of a plant that moves, slowly and a lot, or stands still; the last channel is alone."""
    rng = np.random.default_rng(seed)
    t = np.arange(n) * (0.0 if still else 1.0)
    causes = 1.5 * np.column_stack([np.sin(t / 40), np.cos(t / 97)])
    return np.column_stack([causes @ CAUSES + rng.normal(0, 0.2, (n, DIM)), rng.standard_normal(n)])


def predicted(rows: np.ndarray) -> np.ndarray:
    """Predictions by the others; for the unrelated channel, its mean."""
    known = np.where(np.isnan(rows), 0.0, rows)
    off = RECALL.left_out(known[:, :DIM] - MODEL.mean)
    return np.column_stack([known[:, :DIM] - off, np.zeros(len(rows))])


def see(
    stuck_detector: StuckDetector, rows: np.ndarray, block: int = 10, **options: np.ndarray
) -> list:
    """Let rows come in blocks; return what was stuck after each."""
    others, history = predicted(rows), []
    for first in range(0, len(rows), block):
        part = slice(first, first + block)
        stuck_detector.update(rows[part], others[part], **{k: v[part] for k, v in options.items()})
        history.append(stuck_detector.stuck)
    return history


def grown(n: int = 2000) -> StuckDetector:
    """Senses that know the plant."""
    stuck_detector = StuckDetector(DIM + 1)
    see(stuck_detector, plant(n), block=100)
    return stuck_detector


def same(first: StuckDetector, other: StuckDetector) -> None:
    """They are alike to the bit."""
    for name in ("run_lengths", "habits"):
        for ours, theirs in zip(getattr(first, name), getattr(other, name), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


# -- runs ------------------------------------------------------------------------

few = st.sampled_from([0.0, 1.0, 2.0, float("nan")])
history = st.lists(st.tuples(few, st.integers(1, 25)), min_size=1, max_size=12)


def column(parts: list[tuple[float, int]]) -> np.ndarray:
    """Readings, run by run."""
    return np.concatenate([np.full(length, value) for value, length in parts])


@given(st.lists(history, min_size=2, max_size=4), st.data())
def test_runs_are_what_one_would_count(channels, data):
    """Channel by channel, reading by reading, however rows are cut; gaps are passed over."""
    columns = [column(parts) for parts in channels]
    rows = np.column_stack([each[: min(map(len, columns))] for each in columns])
    known = RunLengths.none(len(columns))
    for part in data.draw(cuts(len(rows))):
        known, _ = known.after(rows[part])

    for j, readings in enumerate(rows.T):
        runs = oracle.runs(readings)
        values = [run.value for run in runs] or [np.nan]
        low, high = min(values), max(values)
        ended = [run for run in runs[:-1] if run.length > SHORT]
        inside = [run.length for run in ended if low < run.value < high]
        at_lowest = [run.length for run in ended if run.value == low]
        at_highest = [run.length for run in ended if run.value == high > low]
        assert (runs[-1].length if runs else 0) == known.run[j]
        np.testing.assert_array_equal([values[-1], low, high], [x[j] for x in known[:3]])
        assert max(inside, default=0) == known.longest[j]
        assert max(at_lowest, default=0) == known.at_lowest[j]
        # A run at a former end of the range shows only if it is the longest of all.
        assert max(at_highest, default=0) == known.at_highest[j]


def test_a_number_that_is_held_is_no_reading_of_a_run():
    """A channel that is silent for long is not stuck; one that keeps sending one number is."""
    silent, repeating = grown(), grown()
    rows = plant(400, seed=5)
    rows[:, 0] = rows[0, 0]
    held = np.zeros(rows.shape, dtype=bool)
    held[1:, 0] = True
    found = [
        see(silent, rows, held=held)[-1],
        see(repeating, rows, held=held & (np.arange(400) % 4 != 0)[:, None])[-1],
    ]

    assert [(), (0,)] == found
    assert [1, 100] == [each.run_lengths.run[0] for each in (silent, repeating)]


def test_a_range_that_widens_later_takes_its_old_end_in():
    """The run at what was the highest was inside, as it turns out rows later."""
    known = RunLengths.none(1)
    for readings in ([0.0] * 4 + [1.0] * 9 + [0.0], [2.0]):
        known, _ = known.after(np.array(readings)[:, None])

    assert [9, 0] == [known.longest[0], known.at_highest[0]]


@given(history)
def test_what_moved_has_said_something_else(parts):
    """Also if it came back."""
    readings = column(parts)[:, None]
    known, _ = RunLengths.none(1).after(np.array([[1.0]]))

    _, moved = known.after(readings)

    assert any(value not in (1.0,) and not np.isnan(value) for value, _ in parts) == moved[0]


@pytest.mark.parametrize(
    ("before", "at", "length", "unusual"),
    [
        ([0, 4, 2, 1, 3], 2, TIMES * LEAST_RUN + 1, True),
        ([0, 4, 2, 1, 3], 2, TIMES * LEAST_RUN, False),
        ([0, 4, 2, 1, 3], 4, 10_000, False),  # at the end of its range it may repeat itself
        ([0, 4, 2, 1, 3], 0, 10_000, False),
        ([0, 4] + [2] * (LEAST_RUN + 2) + [1], 2, TIMES * (LEAST_RUN + 2), False),
        ([0, 4] + [2] * (LEAST_RUN + 2) + [1], 2, TIMES * (LEAST_RUN + 2) + 1, True),
        ([0, 4] + [2] * RARE + [1], 3, 10_000, False),  # it is one that does
        ([2] * 10_000, 2, 10_000, False),  # not in use
        ([0] * 500 + [4, 2, 1], 2, TIMES * LEAST_RUN + 1, True),  # only ever so long at its end
        ([2] * 500 + [4, 1], 3, 10_000, False),  # what was an end at first, is not
    ],
)
def test_a_run_is_unusual_inside_the_range_of_who_never_has_any(before, at, length, unusual):
    """By its longest so far, which counts for no less than a few."""
    readings = np.array([*before, *[at] * length], dtype=float)[:, None]

    assert unusual == RunLengths.none(1).after(readings)[0].unusual[0]


# -- predictions by the others ---------------------------------------------------


def test_r2_is_what_others_tell_of_the_variance():
    """Against its definition; and of one that is alone, nothing."""
    rows = plant(3000)
    stuck_detector = StuckDetector(DIM + 1)
    see(stuck_detector, rows, block=100)
    weights = 0.998 ** np.arange(len(rows) - 1, -1, -1)  # about what it weighs them by

    errors = np.average((rows - predicted(rows)) ** 2, axis=0, weights=weights)
    spread = oracle.twin(rows, weights).scatter.diagonal() / weights.sum()

    np.testing.assert_allclose(1 - errors / spread, stuck_detector.r2, atol=0.03)
    np.testing.assert_allclose(errors, stuck_detector.typical_squares, rtol=0.15)
    assert [True] * DIM + [False] == stuck_detector.virtual.tolist()


def test_nothing_is_said_before_there_is_enough():
    """A thousand readings; nor of a channel that is always the same."""
    stuck_detector, rows = StuckDetector(DIM + 1), plant(ENOUGH)
    rows[:, 2] = 7.0
    see(stuck_detector, rows[:-1])
    assert np.isnan(stuck_detector.r2).all()
    assert np.isnan(stuck_detector.typical_squares).all()
    assert not stuck_detector.virtual.any()

    see(stuck_detector, rows[-1:])
    assert [2] == np.flatnonzero(np.isnan(stuck_detector.r2)).tolist()


@pytest.mark.slow
def test_habits_follow_a_plant_that_changes():
    """What others got wrong long ago counts for little; how rows are cut, for next to nothing."""
    stuck_detector, finer = StuckDetector(1), StuckDetector(1)
    rows = np.random.default_rng(0).standard_normal((3 * MEMORY, 1))
    others = rows.copy()
    others[:MEMORY] = 0.0
    stuck_detector.update(rows, others)
    for first in range(0, len(rows), 500):
        for part in (slice(first, first + 37), slice(first + 37, first + 500)):
            finer.update(rows[part], others[part])

    # The first third weighs 1/8 of what there was after two, which the last one fades by e.
    old = MEMORY * 2 / 3 * np.exp(-1)
    assert old / 8 / (old + MEMORY * (1 - np.exp(-1))) == pytest.approx(
        1 - stuck_detector.r2[0], rel=0.1
    )
    np.testing.assert_allclose(stuck_detector.r2, finer.r2, rtol=0.01)


def test_gaps_and_rows_of_an_alarm_teach_nothing():
    """As if they had not been; and a gap in one channel does not affect another."""
    rows = plant(2000)
    faulty = np.zeros(len(rows), dtype=bool)
    faulty[500:800] = True
    spoilt = rows.copy()
    spoilt[faulty] += 50.0
    apart, whole = StuckDetector(DIM + 1), StuckDetector(DIM + 1)
    see(apart, spoilt, block=50, learns=~faulty)
    see(whole, rows[~faulty], block=50)
    np.testing.assert_allclose(whole.typical_squares, apart.typical_squares)

    holed = rows.copy()
    holed[faulty, 3] = np.nan
    with_gaps = StuckDetector(DIM + 1)
    others = predicted(rows)
    with_gaps.update(holed, others)
    full = StuckDetector(DIM + 1)
    full.update(rows, others)
    assert 1700 == with_gaps.habits.learnt[3]
    np.testing.assert_array_equal(
        np.delete(full.typical_squares, 3), np.delete(with_gaps.typical_squares, 3)
    )


# -- stuck -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_plant_in_order_has_nothing_stuck():
    """However long it stands still."""
    stuck_detector = grown()

    assert {()} == set(see(stuck_detector, plant(5_000, seed=9)))
    assert {()} == set(see(stuck_detector, plant(1_000, seed=9, still=True)))


@pytest.mark.parametrize("channel", range(DIM + 1))
def test_a_stuck_channel_is_found(channel):
    """With predictions or alone; and it is no longer stuck as soon as it moves."""
    stuck_detector, rows = grown(), plant(600, seed=5)
    rows[200:500, channel] = rows[199, channel]

    history = see(stuck_detector, rows)

    found = history.index((channel,))
    assert 20 < found <= 20 + (TIMES * LEAST_RUN + SHORT) // 10 + 1
    assert {(channel,)} == set(history[found:50])
    assert {()} == set(history[:found] + history[50:])


def night_and_day(days: int, seed: int) -> np.ndarray:
    """A plant whose third channel is light: nothing for a quarter of each day."""
    rows = plant(400 * days, seed=seed)
    rows[:, 2] = np.maximum(rows[:, 2], np.quantile(plant(4000)[:, 2], 0.25))
    return rows


@pytest.mark.slow
def test_night_is_no_fault_and_a_light_that_misses_the_day_is():
    """At the end of its range only the prediction shows it."""
    stuck_detector = StuckDetector(DIM + 1)
    assert {()} == set(see(stuck_detector, night_and_day(20, seed=1)))

    rows = night_and_day(2, seed=2)
    dark = rows[:, 2].min()
    night = int(np.flatnonzero(rows[:, 2] == dark)[0])
    rows[night:, 2] = dark
    far = dark + FAR * stuck_detector.typical_squares[2] ** 0.5
    history = see(stuck_detector, rows)
    found = history.index((2,))
    assert predicted(rows)[: 10 * found + 10, 2].max() > far
    assert {(2,)} == set(history[found:])


@pytest.mark.parametrize(("share", "stuck"), [(1.6, False), (4.0, True)])
def test_a_setpoint_that_mostly_repeats(share, stuck):
    """It follows the others in steps that last; it is stuck once it does not for twice as long."""
    stuck_detector, usual = StuckDetector(DIM + 1), plant(6000)
    usual[:, 2] = np.round(usual[np.arange(6000) // 10 * 10, 2])
    see(stuck_detector, usual, block=100)
    longest = stuck_detector.run_lengths.longest[2]
    assert stuck_detector.virtual[2]
    later = plant(8000)[6000:][: int(share * longest)]
    later[:, 2] = usual[-1, 2]
    found = see(stuck_detector, later)

    assert stuck == any(2 in each for each in found)


def test_what_was_one_number_from_the_start_is_not_in_use():
    """Whatever the others do."""
    rows = plant(2000)
    rows[:, [1, LONELY]] = 3.0

    assert {()} == set(see(StuckDetector(DIM + 1), rows))


def test_of_a_stuck_channel_nothing_is_learnt():
    """Otherwise its typical error would be that of a stuck channel."""
    stuck_detector, rows = grown(), plant(2000, seed=5)
    typical = stuck_detector.typical_squares
    rows[10:, 0] = rows[9, 0]
    see(stuck_detector, rows)

    assert (0,) == stuck_detector.stuck
    assert stuck_detector.typical_squares[0] < 2 * typical[0]


def test_an_alarm_does_not_hide_what_is_stuck():
    """Rows that are withheld are looked at all the same."""
    stuck_detector, rows = grown(), plant(300, seed=5)
    rows[:, 4] = rows[0, 4]

    see(stuck_detector, rows, learns=np.zeros(len(rows), dtype=bool))
    assert (4,) == stuck_detector.stuck


def test_gaps_do_not_free_a_stuck_channel():
    """What is silent altogether is missing rather than stuck, until it reads the same again."""
    stuck_detector, rows = grown(), plant(400, seed=5)
    rows[:, 4] = rows[0, 4]
    rows[100:200:3, 4] = rows[200:300, 4] = np.nan
    history = see(stuck_detector, rows)

    assert {(4,)} == set(history[10:20])
    assert {()} == set(history[20:30])
    assert {(4,)} == set(history[30:])
    assert np.count_nonzero(~np.isnan(rows[:, 4])) == stuck_detector.run_lengths.run[4]


def test_a_channel_at_rest_that_falls_silent_is_not_stuck():
    """Its device is away: what the others predict of it without each other is no movement."""
    stuck_detector = grown()
    rest = plant(60, still=True)
    rest[:, 0] = rest[0, 0]
    others = predicted(rest)
    rest[45:, 0] = np.nan
    others[45:, 0] += 100.0
    stuck_detector.update(rest[:40], others[:40])
    before = stuck_detector.stuck
    stuck_detector.update(rest[40:], others[40:])

    assert ((), ()) == (before, stuck_detector.stuck)


def test_lags_are_not_looked_at():
    """Only the leading numbers of a row are channels."""
    rows = plant(1500)
    others = predicted(rows)
    alone, beside = StuckDetector(DIM + 1), StuckDetector(DIM + 1)
    alone.update(rows, others)
    beside.update(np.column_stack([rows, np.roll(rows, 1, axis=0)]), others)

    same(alone, beside)


def test_a_movement_is_measured_once_the_channel_has_settled():
    """A channel that stops after a jump is not stuck because the average still moves."""
    stuck_detector = grown()
    rows = plant(2 * CHUNK, seed=5, still=True)
    jump = CAUSES.T @ np.full(2, 8.0)
    rows[:30, :DIM] += jump
    rows[30 : 31 + SETTLED, 0] = rows[30, 0]

    assert {()} == set(see(stuck_detector, rows, block=1))


# -- kept ------------------------------------------------------------------------


def test_what_was_saved_goes_on_exactly():
    """Cut anywhere: also in a run, also while something is stuck."""
    rows = plant(3000)
    rows[1500:2200, 3] = rows[1500, 3]
    rows[2000:2500:7, 1] = np.nan
    whole, before = StuckDetector(DIM + 1), StuckDetector(DIM + 1)
    see(whole, rows, block=20)
    see(before, rows[:1700], block=20)
    kept = (
        RunLengths(*(array.copy() for array in before.run_lengths)),
        Habits(*(array.copy() for array in before.habits)),
    )
    see(before, rows[1700:], block=20)
    after = StuckDetector(DIM + 1, *kept)
    see(after, rows[1700:], block=20)

    same(whole, before)
    same(whole, after)


def test_habits_of_other_channels_are_refused():
    """With the shape expected and the shape received."""
    with pytest.raises(ShapeError, match=r"\(3,\), got \(2,\)"):
        StuckDetector(3, RunLengths.none(2))


@pytest.mark.parametrize("until", [200, 250, 5 * CHUNK])
@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_many_rows_are_seen_as_chunk_by_chunk(until, seed):
    """To the last bit, whether or not a reading repeats the one before."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(5 * CHUNK, 3))
    rows[200:until, 1] = rows[200, 1]
    others = rows + 0.1 * rng.normal(size=rows.shape)
    at_once, chunk_by_chunk = StuckDetector(3), StuckDetector(3)
    at_once.update(rows, others, np.ones(len(rows), dtype=bool))
    for first in range(0, len(rows), CHUNK):
        chunk_by_chunk.update(rows[first : first + CHUNK], others[first : first + CHUNK])

    for expected, got in zip(
        (*chunk_by_chunk.run_lengths, *chunk_by_chunk.habits),
        (*at_once.run_lengths, *at_once.habits),
        strict=True,
    ):
        assert expected.tobytes() == got.tobytes()
