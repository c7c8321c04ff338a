"""The detectors that benchmarks compare, and what a comparison says."""

from __future__ import annotations

import numpy as np
import pytest

from alarms_tables import against, former, tables
from detection import BEFORE, OURS, table
from detectors import KMeansConsensus, LedoitWolf, Smoothed, ZScore
from young import History, Seen, grown


def history(n=300, lead=0, seed=0):
    """Rows of two channels that move together and one alone, each after `lead` rows before it."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(n):
        cause = rng.standard_normal((lead + 1, 1))
        own = rng.standard_normal((lead + 1, 3))
        parts.append(np.hstack([cause, cause, np.zeros_like(cause)]) + own * [0.03, 0.03, 1.0])
    return parts


slow = pytest.mark.slow
"""scikit-learn takes a second to import."""


@pytest.mark.parametrize(
    "make",
    [
        ZScore,
        lambda: Smoothed(ZScore()),
        pytest.param(LedoitWolf, marks=slow),
        pytest.param(KMeansConsensus, marks=slow),
    ],
)
def test_a_detector_scores_every_row_and_a_wild_one_highest(make):
    """One score a row, in order; three rows far out are above all others."""
    detector = make()
    detector.fit(history(lead=detector.lead))
    rows = np.concatenate(history(60, seed=1))
    rows[40:43] += 30 * np.array([[1.0], [-1.0], [1.0]])
    scores = detector.score(rows)

    assert scores.shape == (60,)
    assert 40 <= scores.argmax() <= 49
    assert np.isfinite(scores).all()


@slow
def test_only_a_covariance_sees_a_broken_correlation():
    """Within each channel's own range, a reversed channel is ordinary for the z-score."""
    sound = np.concatenate(history(200, seed=2))
    spoilt = sound * [-1, 1, 1]
    over = {}
    for detector in (ZScore(), LedoitWolf()):
        detector.fit(history())
        limit = np.quantile(detector.score(sound), 0.99)
        over[type(detector)] = float((detector.score(spoilt) > limit).mean())

    assert over[ZScore] < 0.05
    assert over[LedoitWolf] > 0.7


def test_smoothed_scores_are_averages_of_medians_of_three():
    """As the slow way counts them; a single wild row leaves no trace."""

    class Given:
        lead = 0

        def fit(self, parts):
            pass

        def score(self, rows):
            return rows[:, 0]

    scores = np.array([1.0, 2.0, 900.0, 2.0, 3.0, 3.0, 4.0])
    medians = [np.median(scores[max(0, i - 2) : i + 1][-3:]) for i in range(2, 7)]
    slow, now = [1.0, 1.0], 1.0
    for median in medians:
        now = 0.7 * now + 0.3 * median
        slow.append(now)
    detector = Smoothed(Given())
    detector.fit([])

    assert np.allclose(slow, detector.score(scores[:, None]))
    assert max(slow) < 4


def test_a_table_names_what_another_method_finds_more_of():
    """It says where we do not win."""
    means = {
        OURS: {"bias": 0.9, "stuck": 0.2, "all": 0.6, "reversed": 1.0},
        BEFORE: {"bias": 0.5, "stuck": 0.3, "all": 0.4, "reversed": 0.5},
    }

    assert table("loop", means).notes == f"More than ours is found of: stuck ({BEFORE})."


# -- runs of alarms, beside former ones ---------------------------------------------------


def outcome(delays, *, false=1, plant="loop", named=True):
    """A run with a fault for each delay, which is None if it was not found."""
    seen = {"cause": "spe", "first": named, "last": named}
    found = [
        {"fault": {"kind": kind, "start": i}, "delay_h": delay, **seen}
        for i, (kind, delay) in enumerate(delays)
    ]
    return {
        "plant": plant, "seed": 1, "promised": 1.0, "quiet_weeks": 2.0, "armed_h": 72.0,
        "false": [["n01", 3.0, {"cause": "t2"}]] * false, "found": found,
    }  # fmt: skip


def asked(runs, before):
    """What is asked of runs, and whether it is met."""
    return {str(name): met for name, _, _, met in against(runs, before)[-1].rows}


def test_a_comparison_says_what_is_met():
    """The rate, kinds of which fewer are found, median delay, channels named at once."""
    before = [outcome([("bias", 3.0), ("drift", 9.0), ("drift", 9.0)])]
    good = [outcome([("bias", 2.0), ("drift", 5.0), ("drift", 6.0)])]
    bad = [outcome([("bias", 3.0), ("drift", None), ("drift", 9.0)], false=5, named=False)]

    assert set(asked(good, before).values()) == {"yes"}
    assert set(asked(bad, before).values()) == {"no"}


def test_delays_are_compared_fault_by_fault():
    """The median delay is half of the former one, but most faults were found no sooner."""
    before = [outcome([("bias", 1.0), ("drift", 10.0), ("drift", None), ("drift", 10.0)])]
    now = [outcome([("bias", 1.0), ("drift", 5.0), ("drift", None), ("drift", 20.0)])]

    assert asked(now, before)["loop: median of each fault's delay, by its former one"] == "no"
    (paired,) = [is_ for name, is_, *_ in against(now, before)[-1].rows if "each fault" in name]
    assert paired == "1.00"


def test_runs_are_summed_over_seeds():
    """Two fleets of two weeks each with one false alarm: half of the promised rate."""
    rates, faults = tables([outcome([("bias", 1.0)]), outcome([("bias", None)])])

    assert rates.rows[-1][:6] == ("all", 1.0, 0.5, 0.5, 2, 4.0)
    assert faults.rows[-1][:4] == ("all", 2, 1, 1.0)


def test_former_runs_are_read_from_files_and_folders(tmp_path):
    """A folder of `--keep`, or what `--json` printed."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text('{"epoch": 0, "runs": [{"plant": "room"}]}')

    assert [{"plant": "room"}] * 2 == former([tmp_path])
    assert [{"plant": "room"}] == former([tmp_path / "a.json"])


# -- young groups -------------------------------------------------------------------------


@slow
def test_a_young_group_is_seen_until_it_has_a_limit():
    """Nodes with an hourly row: all of them have a first limit, some rows after the model."""
    seen = Seen([], [], [])
    grown(History("engines", 3, 30, 3600.0, 3600.0, 1), 1, seen)

    assert seen.none == 0
    assert len(seen.after) == 3
    assert min(seen.after) > 0
    assert len(seen.stated) == len(seen.third)
