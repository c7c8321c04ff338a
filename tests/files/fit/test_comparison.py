"""Alarms beside known faults: found, missed, false, and how late."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from submerge.history.recording import TimeSpan
from submerge_files.fit.run import WEEK, compare
from submerge_files.fit.time_spans import Label

FAULTS = [Label(TimeSpan(100.0 * i, 100.0 * i + 50), f"fault {i}") for i in range(1, 5)]


def alarm(first: float, last: float | None) -> Any:
    """Return an alarm from one time to another; None is open at the end."""
    ended = None if last is None else SimpleNamespace(time=last)
    return SimpleNamespace(began=SimpleNamespace(time=first), ended=ended)


def test_an_alarm_that_overlaps_a_fault_finds_it():
    """The first of two counts; one that began before it has no delay."""
    alarms = [alarm(110, 120), alarm(130, 170), alarm(190, 260), alarm(270, 280), alarm(445, None)]
    found = compare(FAULTS, [5, 5, 5, 5], alarms, 2 * WEEK)

    assert [10.0, 0.0, None, 45.0] == [delay for _, delay in found.delays]
    assert (1, 0.5, 0) == (found.false_alarms, found.false_per_week, found.outside)
    assert [FAULTS[2]] == found.missed
    name, text = found.as_text()[0]
    assert "labels" == name
    assert "3 of 4 known faults found; median delay 10 s; 1 false alarm (0.5 a" in text
    assert "fault 3" in found.as_text()[1][1]
    assert (3, 1, 10.0) == tuple(
        found.as_object()[k] for k in ("found", "missed", "median_delay_s")
    )


def test_a_fault_without_rows_is_neither_found_nor_missed():
    """Without rows that are normal there is no rate of false alarms."""
    found = compare(FAULTS, [0, 5, 0, 5], [], 0.0)

    assert (2, 2, None) == (found.outside, len(found.missed), found.false_per_week)
    assert "0 of 2 known faults found; 0 false alarms; 2 labels without" in found.as_text()[0][1]
    assert found.as_object()["median_delay_s"] is None


def test_only_some_missed_faults_are_listed():
    faults = [Label(TimeSpan(10.0 * i, 10.0 * i + 5)) for i in range(9)]
    lines = compare(faults, [1] * 9, [], math.inf).as_text()

    assert 1 + 6 + 1 == len(lines)
    assert ("", "and 3 more") == lines[-1]
