"""A fit from its settings to its report: what was learnt, found of known faults, and drilled."""

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
from submerge.history.folds import HistorySpan
from submerge.history.recording import TimeSpan
from submerge.history.settings import SOON, FitSettings
from submerge.pca.own_scatter import OwnScatter
from submerge_aggregator.questions.views import ShownRank
from submerge_client.datasets.table import counted
from submerge_files.console.curves import Curves
from submerge_files.console.progress import advancing
from submerge_files.console.tables import say_lines, say_notes
from submerge_files.console.units import (
    figure,
    in_words,
    moment,
    name_text,
    names_text,
    printable,
    size_of,
)
from submerge_files.detect import run as lines
from submerge_files.detect.run import DetectRequest, detect
from submerge_files.drill import WITHOUT_PERIOD, FaultsToTry, drill_rows
from submerge_files.fit.apart import learnt
from submerge_files.fit.time_spans import Label
from submerge_files.model_file import SavedModel, learnt_of, save
from submerge_files.reader import Recordings
from submerge_files.score.model import of_saved, of_state
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
    ends = [math.inf if alarm.ended is None else alarm.ended.time for alarm in alarms]
    spans = [TimeSpan(alarm.began.time, end) for alarm, end in zip(alarms, ends, strict=True)]
    known = [label for label, n in zip(labels, rows, strict=True) if n]
    delays = []
    for label in known:
        begins = [span.first for span in spans if _overlap(span, label.span)]
        delay = max(0.0, min(begins) - label.span.first) if begins else None
        delays.append((label, delay))
    wrong = [span for span in spans if not any(_overlap(span, each.span) for each in labels)]
    return Comparison(tuple(delays), len(labels) - len(known), len(wrong), normal_s / WEEK)


def _overlap(one: TimeSpan, other: TimeSpan) -> bool:
    return one.first <= other.last and other.first <= one.last


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
    in_alarm: float = 0.0  # share of the newest rows that raise an alarm already

    def as_object(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("within", "why_not", "in_alarm", "channels")}

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
        if self.in_alarm:
            parts.append(f"{self.in_alarm:.0%} of the tries left out: they raise an alarm already")
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
    channels = in_units(merged([answer.channels]), fitted.folds.schema)
    return FitDrill(channels, answer.within, in_alarm=answer.in_alarm)


def _judge(fitted: Fitted) -> tuple[NodeScorer, AlarmLimits]:
    """Return what the machine of the newest rows is judged by, and its limits."""
    model, schema, newest = fitted.model, fitted.folds.schema, fitted.newest
    if newest.model is not None:
        # These rows are later than all that it has learnt, as those to come are later than all.
        model = replace(model, summary=newest.model.summary, factors=newest.model.factors)
    machine = newest.machine
    saved = SavedModel("the history", model, schema, ShownRank(model.rank), learnt_of(fitted))
    normal = of_saved(saved)
    state = None if machine is None else fitted.states.get(fitted.first.machines[machine])
    scorer = normal.scorer if state is None else of_state(normal, state)
    if scorer.residual_scale is not None:
        scorer = replace(scorer, residual_scale=newest.later_scale(scorer.residual_scale))
    return scorer, watching(learnt_of(fitted), state=state).limits


def _deviations(channel: dict[str, Any]) -> float | None:
    """Return the smallest bias that is found, in the channel's standard deviations."""
    size, deviation = channel["bias"]["median"], channel["deviation"]
    return None if size is None or not deviation else float(size / deviation)


def _range(sizes: list[float]) -> str:
    least, most = f"{min(sizes):.2g}", f"{max(sizes):.2g}"
    return least if least == most else f"{least} to {most}"


MOST_LISTED = 6  # spans that were left out, which the report lists

FEW_SPANS, MOST_TIMES = 3, 1000
"""Spans of rows that raised the limits, and how many times, at most, as the report says it."""


def limits_of(fitted: Fitted) -> AlarmLimits:
    """Return the alarm limits at the default rate of false alarms."""
    return watching(learnt_of(fitted)).limits


def as_object(fitted: Fitted, recordings: Recordings, path: Path, size: int) -> dict[str, Any]:
    """Return the report as JSON holds it; times are seconds since 1970."""
    first, folds, model = fitted.first, fitted.folds, fitted.model
    limits = limits_of(fitted)
    times, raising = fitted.raised(limits)
    return {
        "rows": first.rows,
        "learnt": model.counts.learnt,
        "left_out": dict(first.left_out)
        | {"unlike the others": sum(span.rows for span in folds.deviant)},
        "spans_left_out": [_span_object(fitted, span) for span in folds.deviant],
        "gaps": first.gaps,
        "period_s": first.period_s,
        "first": _known(first.seen.first),
        "last": _known(first.seen.last),
        "channels": list(recordings.names),
        "constant": list(constant(fitted)),
        "machines": {
            name: {"kappa": each.kappa, "fleet_share": each.share, "unlike": each.unlike}
            for name, each in _scatters(fitted)
        },
        "rank": folds.rank,
        "explained": fitted.explained,
        "block_s": model.block_s,
        "promised": limits.promised,
        "provisional_s": limits.provisional_s,
        "counted": limits.counted,
        "times_usual": times,
        "raised_by": [_span_object(fitted, span) for span in raising],
        "model": str(path),
        "bytes": size,
    }


def as_text(fitted: Fitted, recordings: Recordings, path: Path, size: int) -> list[tuple[str, str]]:
    first, folds = fitted.first, fitted.folds
    files = counted(len(recordings.files), "file")
    when = "without times"
    if first.period_s:
        begin, end = map(moment, first.seen)
        when = f"{begin} to {end}, one every {in_words(first.period_s)}"
    lines = [("rows", f"{first.rows:,} in {files}, {when}")]
    learnt = [f"{fitted.model.counts.learnt:,} rows"]
    learnt += [f"{n:,} not ({why})" for why, n in sorted(first.left_out.items())]
    if first.gaps:
        learnt.append(f"{first.gaps:,} gaps, learnt as what they hide on average")
    lines.append(("learnt", "; ".join(learnt)))
    lines += _left_out(fitted)
    flat = constant(fitted)
    lines.append(
        (
            "channels",
            f"{len(recordings.names)}"
            + (f"; constant: {', '.join(map(name_text, flat))}" if flat else ""),
        )
    )
    directions = counted(folds.rank, "direction")
    lines.append(("explained", f"{fitted.explained:.0%} of the variance by {directions}"))
    lines += _machines(fitted)
    lines += _limits(fitted)
    lines.append(("model", f"{path}, {size_of(size)}"))
    return lines


def constant(fitted: Fitted) -> tuple[str, ...]:
    """Return the names of channels that did not vary."""
    variance = fitted.folds.moments.variance
    names = fitted.folds.schema.names
    return tuple(name for name, each in zip(names, variance.tolist(), strict=True) if not each)


def _scatters(fitted: Fitted) -> list[tuple[str, OwnScatter]]:
    """Return how each machine varies, the most unlike the fleet first."""
    known = [(name, state.scatter) for name, state in fitted.states.items()]
    both = [(name, each) for name, each in known if each is not None]
    return sorted(both, key=lambda named: (-named[1].unlike, named[0]))


def _machines(fitted: Fitted) -> list[tuple[str, str]]:
    found = _scatters(fitted)
    if not found:
        return []
    worth = sorted(each.kappa for _, each in found)
    most = f"{worth[0]:,.0f}" + (f" to {worth[-1]:,.0f}" if worth[-1] > worth[0] else "")
    text = f"{len(found)}, each judged by its own rows and the fleet's as {most} more"
    text += f"; most unlike the others: {name_text(found[0][0])}"
    return [("machines", text)]


def _span_object(fitted: Fitted, span: HistorySpan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "first": _known(span.first),
        "last": _known(span.last),
        "rows": span.rows,
        "drop": span.drop,
        "machine": span.machine,
    }
    if rows := _numbers(fitted, span):
        found |= {"file": rows[0], "from_row": rows[1], "to_row": rows[2]}
    return found


def _numbers(fitted: Fitted, span: HistorySpan) -> tuple[str, int, int] | None:
    """Return the file of rows without times, and their first and last number in it."""
    laid = fitted.first.laid
    if laid.period_s or laid.grid.runs:
        return None
    unit = int(laid.grid.unit)
    return laid.files[span.begin.run], span.begin.number * unit + 1, (span.end.number + 1) * unit


def _place(fitted: Fitted, span: HistorySpan) -> str:
    if fitted.first.period_s:
        machines = fitted.first.machines
        whose = f"{printable(machines[span.machine])}, " if len(machines) > 1 else ""
        return f"{whose}{moment(span.first)} to {moment(span.last)}"
    if rows := _numbers(fitted, span):
        file, begin, end = rows
        return f"rows {begin:,} to {min(end, fitted.first.rows):,}" + f" of {file}" * bool(file)
    return "somewhere"


def _known(seconds: float) -> float | None:
    """Return a time as JSON holds it: null without times."""
    return seconds if math.isfinite(seconds) else None


def _left_out(fitted: Fitted) -> list[tuple[str, str]]:
    """Return a line for each span that is unlike all others."""
    spans, lines = fitted.folds.deviant, []
    for i, span in enumerate(spans[:MOST_LISTED]):
        where = _place(fitted, span)
        text = f"{where}, {counted(span.rows, 'row')} unlike all others; --keep-all learns them"
        lines.append(("left out" if i == 0 else "", text))
    if len(spans) > MOST_LISTED:
        lines.append(("", f"and {counted(len(spans) - MOST_LISTED, 'more span')}"))
    return lines


def _limits(fitted: Fitted) -> list[tuple[str, str]]:
    """Return the rate that limits keep, and which rows made them high."""
    limits = limits_of(fitted)
    rate = rate_of(limits, fitted.first.period_s)
    if limits.known:
        rate += f" ({'counted' if limits.counted else 'extrapolated'})"
    times, spans = fitted.raised(limits)
    if not spans:
        return [("limits", rate)]
    many = f"{times:,.0f}" if times < MOST_TIMES else f"over {MOST_TIMES:,}"
    some = "; ".join(_place(fitted, span) for span in spans[:FEW_SPANS])
    rest = len(spans) - FEW_SPANS
    more = f" and {counted(rest, 'more span')}" if rest > 0 else ""
    cure = "leave them out (--exclude)" if fitted.first.period_s else "leave them out"
    high = f"high: {many} times the usual highest score, by {some}{more}"
    return [("limits", rate), ("", f"{high}; if those were faults, {cure}")]


def rate_of(limits: AlarmLimits, period_s: float) -> str:
    if limits.promised:
        return "at most 1 false alarm per week"
    if not limits.known:
        return "none: too few rows"
    rows = round(limits.provisional_s / (period_s or 1.0))
    return f"provisional: about 1 false alarm in {rows:,} rows; more rows make it rarer"


def run(
    recordings: Recordings,
    settings: FitSettings,
    output: Path,
    labels: Sequence[Label],
    plot: Path | None,
    workers: Workers | None,
    *,
    detects: bool,
    drills: bool,
    as_json: bool,
) -> None:
    """Learn a history, write the model, and print the report."""
    with advancing("rows read, in two passes") as advance:
        fitted = learnt(recordings, settings, workers, advance)
    size = save(output, learnt_of(fitted, recordings.options.states))
    say_notes(recordings.notes)
    detected, comparison, found = None, None, None
    if detects or labels or plot:
        curves = Curves() if plot else None
        request = DetectRequest(learnt_of(fitted), SOON, settings.when, settings.exclude)
        with advancing("rows judged") as advance:
            detected = detect(recordings, request, curves, workers=workers, advance=advance)
        if labels:
            fault_rows = fitted.first.fault_rows
            normal_s = max(0, detected.seen.judged - sum(fault_rows)) * fitted.first.period_s
            comparison = compare(labels, fault_rows, detected.alarms, normal_s)
    if drills:
        with advancing("drill", len(recordings.names)) as advance:
            found = drill(fitted, advance=advance)
    if detected is not None and curves is not None and plot is not None:
        from submerge_files.detect.plot import save_picture

        deviant = [TimeSpan(each.first, each.last) for each in fitted.folds.deviant]
        spans = [each for each in (*settings.without, *deviant) if not math.isnan(each.first)]
        save_picture(plot, curves, detected, spans)
    if as_json:
        said = as_object(fitted, recordings, output, size)
        said |= {} if found is None else {"drill": found.as_object()}
        said |= {} if comparison is None else {"labels": comparison.as_object()}
        if detected is not None and detects:
            said["alarms"] = [lines.as_object(alarm) for alarm in detected.alarms]
        click.echo(json.dumps(said))
        return
    *report, model = as_text(fitted, recordings, output, size)
    report += [] if found is None else found.as_text()
    report += [] if comparison is None else comparison.as_text()
    say_lines((*report, model))
    if detected is not None and detects:
        for alarm in detected.alarms:
            click.echo(lines.as_text(alarm, detected))
        say_lines([("alarms", f"{len(detected.alarms):,}")], err=True)
    if plot is not None:
        say_lines([("picture", plot)], err=True)
