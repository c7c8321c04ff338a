"""Comparison: alarms on a history beside its known faults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from submerge.history.detection import FoundAlarm
from submerge.history.recording import TimeSpan
from submerge_client.datasets.table import counted
from submerge_files.console.printable import printable
from submerge_files.console.units import figure, in_words, moment
from submerge_files.fit.time_spans import Label

WEEK = 604800.0

MOST_MISSED = 6
"""Faults that were missed, which the report lists."""


@dataclass(frozen=True)
class Comparison:
    """What detection finds of known faults.

    delays : For each fault with rows: seconds from its begin to its first alarm, at least 0; None
        if it was missed.
    outside : Faults without rows in the history.
    false_alarms : Alarms that overlap no fault.
    weeks : Weeks of rows outside the faults, of all machines together.
    """

    delays: tuple[tuple[Label, float | None], ...]
    outside: int
    false_alarms: int
    weeks: float

    @property
    def found(self) -> list[float]:
        """The delays of the faults that were found, seconds."""
        return [delay for _, delay in self.delays if delay is not None]

    @property
    def missed(self) -> list[Label]:
        """The faults that were not found."""
        return [label for label, delay in self.delays if delay is None]

    @property
    def false_per_week(self) -> float | None:
        """False alarms a machine and week; None without rows outside the faults."""
        return self.false_alarms / self.weeks if self.weeks > 0 else None

    def as_object(self) -> dict[str, Any]:
        """Return it as JSON holds it; times are seconds since 1970."""
        return {
            "found": len(self.found),
            "missed": len(self.missed),
            "outside": self.outside,
            "false": self.false_alarms,
            "false_per_week": self.false_per_week,
            "median_delay_s": median(self.found) if self.found else None,
            "faults": [
                {
                    "from": label.span.first,
                    "to": label.span.last,
                    "text": label.text,
                    "found": delay is not None,
                    "delay_s": delay,
                }
                for label, delay in self.delays
            ],
        }

    def as_text(self) -> list[tuple[str, str]]:
        """Return it as lines: names and values."""
        found, missed = self.found, self.missed
        parts = [f"{len(found)} of {counted(len(self.delays), 'known fault')} found"]
        if found:
            parts.append(f"median delay {in_words(median(found))}")
        rate = self.false_per_week
        often = "" if rate is None else f" ({figure(rate)} a machine and week)"
        parts.append(f"{counted(self.false_alarms, 'false alarm')}{often}")
        if self.outside:
            parts.append(f"{counted(self.outside, 'label')} without rows in the history")
        lines = [("labels", "; ".join(parts))]
        for i, label in enumerate(missed[:MOST_MISSED]):
            text = f", {printable(label.text)}" if label.text else ""
            span = f"{moment(label.span.first)} to {moment(label.span.last)}{text}"
            lines.append(("missed" if i == 0 else "", span))
        if len(missed) > MOST_MISSED:
            lines.append(("", f"and {len(missed) - MOST_MISSED} more"))
        return lines


def compare(
    labels: Sequence[Label],
    rows: Sequence[int],
    alarms: Sequence[FoundAlarm],
    normal_s: float,
) -> Comparison:
    """Compare alarms with known faults.

    An alarm that overlaps a fault finds it; one that overlaps none is false.

    labels : Apart from one another.
    rows : Rows of each in the history.
    alarms : With times.
    normal_s : Time of the rows outside the faults, of all machines together.
    """
    spans = [_span(alarm) for alarm in alarms]
    known = [label for label, n in zip(labels, rows, strict=True) if n]
    delays = []
    for label in known:
        begins = [span.first for span in spans if _overlap(span, label.span)]
        delay = max(0.0, min(begins) - label.span.first) if begins else None
        delays.append((label, delay))
    wrong = [span for span in spans if not any(_overlap(span, each.span) for each in labels)]
    return Comparison(tuple(delays), len(labels) - len(known), len(wrong), normal_s / WEEK)


def _span(alarm: FoundAlarm) -> TimeSpan:
    return TimeSpan(alarm.began.time, math.inf if alarm.ended is None else alarm.ended.time)


def _overlap(one: TimeSpan, other: TimeSpan) -> bool:
    return one.first <= other.last and other.first <= one.last
