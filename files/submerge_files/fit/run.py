"""A fit from its request to its report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, median_high
from typing import Any

import click

from submerge import UsageError
from submerge.client.alarms.limits import AlarmLimits
from submerge.drill.merged import in_units, merged
from submerge.drill.response import NodeScorer
from submerge.history.detection import FoundAlarm, watching
from submerge.history.fit import Fitted
from submerge.history.recording import TimeSpan
from submerge.history.settings import SOON, FitSettings
from submerge_aggregator.questions.views import ShownRank
from submerge_client.datasets.table import counted
from submerge_files.console.curves import Curves
from submerge_files.console.progress import advancing, counting
from submerge_files.console.units import figure, in_words, moment, name_text, names_text, printable
from submerge_files.detect import run as lines
from submerge_files.detect.run import Detected, DetectRequest, detect
from submerge_files.drill.files import WITHOUT_PERIOD, FaultsToTry, drill_rows
from submerge_files.fit.apart import learnt
from submerge_files.fit.report import as_object, as_text
from submerge_files.fit.time_spans import Label
from submerge_files.model_file import SavedModel, learnt_of, save
from submerge_files.reader import Recordings
from submerge_files.score.mean import of_state
from submerge_files.score.model import of_saved
from submerge_files.workers import Workers

WEEK = 604800.0

MOST_MISSED = 6  # faults that were missed, which the report lists


@dataclass(frozen=True)
class Comparison:
    """What detection finds of known faults: seconds to the first alarm, None if one was missed."""

    delays: tuple[tuple[Label, float | None], ...]
    outside: int  # faults that have no rows
    false_alarms: int  # that overlap no fault
    weeks: float  # of rows of all machines

    @property
    def found(self) -> list[float]:
        """The delays of the faults that were found, seconds."""
        return [delay for _, delay in self.delays if delay is not None]

    @property
    def missed(self) -> list[Label]:
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
    labels: Sequence[Label], rows: Sequence[int], alarms: Sequence[FoundAlarm], normal_s: float
) -> Comparison:
    """Compare alarms with faults: one that overlaps a fault finds it, any other is false."""
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


@dataclass(frozen=True)
class HistoryDetection:
    detected: Detected
    curves: Curves | None
    comparison: Comparison | None
    left_out: tuple[TimeSpan, ...]

    def draw(self, path: Path) -> None:
        """Write the picture to `path`, a PNG."""
        from submerge_files.console.figures import save
        from submerge_files.detect.plot import draw

        if self.curves is not None:
            save(draw(self.curves, self.detected, self.left_out), path, dpi=130)


def detect_history(
    recordings: Recordings,
    fitted: Fitted,
    settings: FitSettings,
    labels: Sequence[Label],
    *,
    draws: bool,
    workers: Workers | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> HistoryDetection:
    """Detect alarms on the history that was learnt, in one pass."""
    curves = Curves() if draws else None
    request = DetectRequest(learnt_of(fitted), SOON, settings.when, settings.exclude)
    detected = detect(recordings, request, curves, workers=workers, advance=advance)
    first, comparison = fitted.first, None
    if labels:
        normal = max(0, detected.seen.judged - sum(first.fault_rows)) * first.period_s
        comparison = compare(labels, first.fault_rows, detected.alarms, normal)
    deviant = [TimeSpan(each.first, each.last) for each in fitted.folds.deviant]
    left_out = [span for span in (*settings.without, *deviant) if not math.isnan(span.first)]
    return HistoryDetection(detected, curves, comparison, tuple(left_out))


MOST_SPANS = 32  # spans of rows that each fault is tried on: a report has to come soon

MOST_CHANNELS = 128
"""Channels that are tried: the time grows with their square, and is some seconds here."""

NAMED = 5  # blind channels that the report names


@dataclass(frozen=True)
class FitDrill:
    """The answer of a drill on the history, in units; no channels if no fault could be tried."""

    channels: list[dict[str, Any]]
    within: int = 0
    why_not: str = ""

    def as_object(self) -> dict[str, Any]:
        return {"within": self.within, "why_not": self.why_not, "channels": self.channels}

    def as_text(self) -> list[tuple[str, str]]:
        if self.why_not:
            return [("drill", f"none: {self.why_not}")]
        sizes = {each["channel"]: _deviations(each) for each in self.channels}
        found = [size for size in sizes.values() if size is not None]
        missed = [name for name, size in sizes.items() if size is None]
        blind = [each["channel"] for each in self.channels if each["blind"]]
        parts = []
        if found:
            parts.append(
                f"a bias of {_range(found)} standard deviations is found within"
                f" {self.within} rows (median {median_high(found):.2g}"
                f"{self._worst(sizes)})"
            )
        if missed:
            parts.append(f"no bias is found in {names_text(missed, NAMED)}")
        if blind:
            parts.append(f"blind: {names_text(blind, NAMED)}")
        return [("drill", "; ".join(parts))]

    def _worst(self, sizes: dict[str, float | None]) -> str:
        """Return the channel of which the largest bias is needed, in its unit."""
        name = max(sizes, key=lambda each: sizes[each] or 0.0)
        (worst,) = (each for each in self.channels if each["channel"] == name)
        unit = f" {name_text(worst['unit'])}" if worst["unit"] else ""
        return f"; worst: {name_text(name)}, {figure(worst['bias']['median'])}{unit}"


def drill(fitted: Fitted, *, advance: Callable[[int], None] = lambda _: None) -> FitDrill:
    """Try faults on the newest rows of a history; `advance` takes numbers of channels."""
    alarms = replace(SOON, period_s=fitted.first.period_s or 1.0)
    hour = FaultsToTry(alarms, None).rows
    wanted = FaultsToTry(alarms, max(min(hour, WITHOUT_PERIOD), 2 * alarms.of), MOST_SPANS)
    (model, limits), rows = _judge(fitted), fitted.newest.rows
    try:
        if model.channels > MOST_CHANNELS:
            raise UsageError(
                f"it takes long for {model.channels} channels; `submerge drill` tries them"
            )
        if not (len(rows) and limits.known):
            raise UsageError("too few rows for limits of alarms")
        answer = drill_rows(model, rows, limits, wanted, advance)
    except UsageError as error:
        return FitDrill([], why_not=str(error))
    return FitDrill(in_units(merged([answer.channels]), fitted.folds.schema), answer.within)


def _judge(fitted: Fitted) -> tuple[NodeScorer, AlarmLimits]:
    """Return what the machine of the newest rows is judged by, and its limits."""
    model, schema, machine = fitted.model, fitted.folds.schema, fitted.newest.machine
    saved = SavedModel("the history", model, schema, ShownRank(model.rank), learnt_of(fitted))
    normal = of_saved(saved)
    state = None if machine is None else fitted.states.get(fitted.first.machines[machine])
    scorer = normal.scorer if state is None else of_state(normal, state)
    return scorer, watching(learnt_of(fitted), state=state).limits


def _deviations(channel: dict[str, Any]) -> float | None:
    """Return the smallest bias that is found, in the channel's standard deviations."""
    size, deviation = channel["bias"]["median"], channel["deviation"]
    return None if size is None or not deviation else float(size / deviation)


def _range(sizes: list[float]) -> str:
    least, most = f"{min(sizes):.2g}", f"{max(sizes):.2g}"
    return least if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class FitRequest:
    recordings: Recordings
    settings: FitSettings
    output: Path
    labels: Sequence[Label] = ()
    plot: Path | None = None
    detects: bool = False
    drills: bool = True
    workers: Workers | None = None


def run(request: FitRequest, *, as_json: bool) -> None:
    """Learn a history, write the model, and print the report."""
    recordings = request.recordings
    with counting("rows read, in two passes") as advance:
        fitted = learnt(recordings, request.settings, request.workers, advance)
    size = save(request.output, learnt_of(fitted, request.recordings.options.states))
    for note in recordings.notes:
        click.echo(printable(f"note: {note}"), err=True)
    alarms, found = _alarms(request, fitted), _drill(request, fitted)
    if alarms is not None and request.plot is not None:
        alarms.draw(request.plot)
    if as_json:
        said = as_object(fitted, recordings, request.output, size)
        click.echo(json.dumps(said | _objects(request, alarms, found)))
        return
    report = as_text(fitted, recordings, request.output, size)
    model = report.pop()
    report += [] if found is None else found.as_text()
    if alarms is not None and alarms.comparison is not None:
        report += alarms.comparison.as_text()
    for name, value in (*report, model):
        click.echo(f"{name:<10} {value}")
    if alarms is not None and request.detects:
        for alarm in alarms.detected.alarms:
            click.echo(lines.as_text(alarm, alarms.detected))
        click.echo(f"{'alarms':<10} {len(alarms.detected.alarms):,}", err=True)
    if request.plot is not None:
        click.echo(f"{'picture':<10} {request.plot}", err=True)


def _alarms(request: FitRequest, fitted: Fitted) -> HistoryDetection | None:
    if not (request.detects or request.labels or request.plot):
        return None
    with counting("rows judged") as advance:
        return detect_history(
            request.recordings,
            fitted,
            request.settings,
            request.labels,
            draws=request.plot is not None,
            workers=request.workers,
            advance=advance,
        )


def _drill(request: FitRequest, fitted: Fitted) -> FitDrill | None:
    if not request.drills:
        return None
    with advancing("drill", len(request.recordings.names)) as advance:
        return drill(fitted, advance=advance)


def _objects(
    request: FitRequest, alarms: HistoryDetection | None, found: FitDrill | None
) -> dict[str, object]:
    said: dict[str, object] = {}
    if found is not None:
        said["drill"] = found.as_object()
    if alarms is not None and alarms.comparison is not None:
        said["labels"] = alarms.comparison.as_object()
    if alarms is not None and request.detects:
        said["alarms"] = [lines.as_object(alarm) for alarm in alarms.detected.alarms]
    return said
