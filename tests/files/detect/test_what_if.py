"""What another rate would have done equals a rerun at that rate, alarm for alarm."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from submerge import Model
from submerge.client.alarms.limits import other_rate
from submerge.protocol.score_trail import level_of
from submerge.stats.statistic import raised_by
from submerge_aggregator.questions.alarm_survey import Rated
from submerge_files.console.curves import Curves
from submerge_files.detect.run import alarms_at

pd = pytest.importorskip("pandas")

CHANNELS, ROW_S, HOUR = 6, 60.0, 60
PLANT = np.random.default_rng(1).normal(size=(2, CHANNELS))


def framed(rows: np.ndarray, start: str):
    times = pd.date_range(start, periods=len(rows), freq=f"{ROW_S:g}s", tz="UTC")
    return pd.DataFrame(rows, times, [f"c{i}" for i in range(CHANNELS)])


def rows(seed: int, hours: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    causes = draw.normal(size=(hours * HOUR, 2))
    return causes @ PLANT + 0.2 * draw.normal(size=(hours * HOUR, CHANNELS))


class Over(Curves):
    """Takes the highest statistic over its limit of every row."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []

    def add(self, judged) -> None:
        self.rows.append(np.max(list(judged.over.values()), axis=0))


def detected(model: Model, rows: np.ndarray, at_most: str, over: Over):
    return model._detected(at_most, over, framed(rows, "2026-06-01"), None, None, None, None)


@pytest.mark.slow
@pytest.mark.parametrize("then", ["1 false per week", "1 false per 96h"])
def test_what_if_equals_a_rerun_alarm_for_alarm(then):
    """Forty faults of all sizes, one every six hours: those that would be are those that are."""
    model = Model.fit(framed(rows(0, 24 * 60), "2026-01-01"))
    later, draw = rows(9, 40 * 6), np.random.default_rng(3)
    for i in range(40):
        at = (6 * i + 3) * HOUR
        later[at : at + HOUR, i % CHANNELS] += np.exp(draw.uniform(-2.0, 0.5))
    known, now = model.judge.learnt.model, alarms_at("1 false per day", ROW_S)
    rate = alarms_at(then, ROW_S).at_most_per_s
    other = other_rate(known.maxima, now, rate, raised_by(factors=bool(known.factors)))
    assert other is not None
    taken = Over()
    before = detected(model, later, "1 false per day", taken)
    over, rerun = np.concatenate(taken.rows), detected(model, later, then, Over())

    def span(alarm) -> slice:
        first = int(alarm.began // ROW_S) - 1  # times count rows from 1
        return slice(first, int((alarm.ended or 1e9) // ROW_S))

    again = [span(each.alarm) for each in rerun.alarms]
    rated, told = Rated(now.at_most_per_s, other, {}), Counter[str]()
    for each in (found.alarm for found in before.alarms):
        rows_of = span(each)
        outcome = rated.outcome(each, level_of(over[rows_of].max()))
        is_there = any(one.start < rows_of.stop and rows_of.start < one.stop for one in again)
        told[outcome] += 1
        assert outcome == "cannot be told" or is_there == (outcome == "raised"), (each, outcome)

    assert len(before.alarms) > len(again) > 20
    assert told["cannot be told"] <= 0.1 * len(before.alarms)
    assert told["not raised"] >= 3
