"""The drill after a fit: which faults would be found, and which channels are blind."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from submerge.history.detection import HistoryDetector
from submerge.history.fit import fit
from submerge.history.recording import Recorded
from submerge.history.second_pass import NewestRows
from submerge.history.settings import SOON
from submerge_files.fit.run import drill
from support.scored import a_block
from support.six_channels import EPOCH, PERIOD, SCALE, learnt, normal, recorded


def test_a_channel_that_goes_its_own_way_is_blind():
    rows = normal(5000)
    rows[:, 4] = np.random.default_rng(1).normal(size=5000) * SCALE[4]
    seen: list[int] = []
    found = drill(learnt(recorded(rows)), advance=seen.append)
    ((name, text),) = found.as_text()

    assert ["c4"] == [each["channel"] for each in found.channels if each["blind"]]
    assert "drill" == name
    assert text.endswith("; blind: c4")
    assert [1] * 6 == seen


@pytest.mark.slow
def test_sizes_are_in_units_and_found_by_detection():
    """A bias of twice the size that is said raises an alarm on later rows."""
    fitted = learnt(recorded(normal(20_000)))
    found = drill(fitted)
    for i, each in enumerate(found.channels):
        rows = normal(2000, 1)
        rows[1000:, i] += 2 * each["bias"]["median"]
        detector = HistoryDetector(fitted.model, fitted.states["m"], PERIOD, SOON)
        list(detector.add(recorded(rows, first=EPOCH + 1e7)[0]))
        began = [alarm.began.row for alarm in detector.found.values()]
        assert any(1000 < row <= 1000 + found.within for row in began), each


@pytest.mark.slow
def test_a_channel_that_was_noisier_for_a_while_needs_a_larger_fault():
    """What is typical of rows to come may be as large again as in the noisiest later span."""
    rows, draw = normal(20_000), np.random.default_rng(3)
    rows[12_000:14_000, 2] += 3 * draw.normal(size=2000) * SCALE[2]
    fitted = learnt(recorded(rows), leaves_out=False)
    known = fitted.states["m"].residual_scale
    assert known is not None
    later = fitted.newest.later_scale(known).squares / known.squares

    assert later.min() >= 1
    assert later[2] > 2 * np.median(later)
    honest = drill(fitted).channels[2]["bias"]["median"]
    with mock.patch.object(NewestRows, "later_scale", lambda _, scale: scale):
        assert honest > 1.1 * drill(fitted).channels[2]["bias"]["median"]


def test_what_is_in_alarm_already_is_said():
    """A share of the tries, where some are; no drill, where all are."""
    fitted = learnt(recorded(normal(5000)))
    rows = fitted.newest.rows
    for first, expected in (
        (len(rows) // 2, r"; \d+% of the tries left out"),
        (0, "everything is in"),
    ):
        newest = NewestRows()
        block = a_block(rows + 30.0 * (np.arange(len(rows)) >= first)[:, None])
        newest.add(0, block, fitted.newest.model)
        ((_, text),) = drill(replace(fitted, newest=newest)).as_text()
        assert re.search(expected, text), text


@pytest.mark.slow
def test_machines_have_their_own_level():
    """The rows of the last machine are tried, measured from its own mean."""
    times = EPOCH + PERIOD * np.arange(4000)
    parts = [Recorded(f"m{i}", normal(4000, i) + 50 * i * SCALE, times, f"{i}") for i in range(2)]
    fitted = learnt(parts)
    found = drill(fitted)

    assert 1 == fitted.newest.machine
    assert len(fitted.newest.rows) <= 4000
    assert not found.why_not
    assert all(each["bias"]["median"] < 3 * each["deviation"] for each in found.channels)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "said"),
    [(normal(30), "none: "), (np.random.default_rng(0).normal(size=(400, 140)), "140 channels")],
)
def test_why_there_is_no_drill_is_said(rows: np.ndarray, said: str):
    """Too few rows, or so many channels that the report would not come soon."""
    names = [f"c{i}" for i in range(rows.shape[1])]
    fitted = fit(lambda: recorded(rows), names)
    ((name, text),) = drill(fitted).as_text()

    assert "drill" == name
    assert text.startswith("none: ")
    assert said in text
