"""The drill after a fit: which faults would be found, and which channels are blind."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.history.detection import HistoryDetector
from submerge.history.fit import fit
from submerge.history.recording import Recorded
from submerge.history.settings import SOON
from submerge_files.fit.run import drill
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
