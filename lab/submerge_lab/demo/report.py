"""The demo's final report: a picture of text, and one line for each figure."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.text import Text

from submerge import Array
from submerge_lab.demo.alarms import FaultVerdict
from submerge_lab.demo.failures import ProcessFailure
from submerge_lab.demo.fleet import Usage
from submerge_lab.demo.run import (
    OVERSAMPLE,
    SETTLE_DAYS,
    WEEKDAYS,
    DemoHistory,
    DemoOutcome,
)
from submerge_lab.demo.scores import LOUD
from submerge_lab.demo.site import AT_MOST, REPORT_EVERY_S
from submerge_lab.plants.room import DAY

BLOCKS = " ▁▂▃▄▅▆▇█"
HEIGHT = 4
LEFT, RIGHT, WIDEST = 19, 24, 84
"""Columns for names, for verdicts, and at most for the days."""

FLOOR = 0.1
"""Bottom of the picture, as a multiple of the limit."""


STYLE = {"found": "green", "missed": "yellow", "false": "red"}


def print_report(
    console: Console, outcome: DemoOutcome, history: DemoHistory, limit: float | None
) -> None:
    """Print the picture and the figures."""
    for line in picture(outcome, history, limit, width=console.width):
        console.print(line, no_wrap=True, overflow="crop")
    console.print()
    for name, value in lines(outcome):
        console.print(Text(f"{name:<10} {value}"), soft_wrap=True)


def picture(
    outcome: DemoOutcome, history: DemoHistory, limit: float | None, *, width: int
) -> list[Text]:
    """Draw scores over the days, and below them each fault: when it held, when it was found."""
    across = max(20, min(WIDEST, width - LEFT - RIGHT))
    if limit is None:
        return [Text("(the run ended before limits were measured: no picture)", style="dim")]
    settled = int(outcome.settings.settle_days / outcome.settings.days * across)
    rows = "readings" if outcome.settings.features else "rows"
    spe_name = f"worst squared prediction error (SPE) of the fleet's {rows}, over its limit"
    drawn = [Text(spe_name, style="bold")]
    spe = _binned(np.array(history.spe_worst) / limit, history, across)
    drawn += _chart(spe, loud=1.0, settled=settled)
    drawn.append(Text("worst residual of a channel, over its own limit", style="bold"))
    channel = _binned(np.stack(history.multiple).max(axis=1), history, across)
    drawn += _chart(channel, loud=LOUD, settled=settled)
    drawn.append(_days(outcome.settings.days, across))
    drawn += [_span(verdict, outcome, across) for verdict in outcome.verdicts]
    if outcome.verdicts:
        legend = "━ the fault holds   ◆ an alarm names its mote"
        drawn.append(Text(" " * LEFT + legend, style="dim"))
    return drawn


def lines(outcome: DemoOutcome) -> list[tuple[str, str]]:
    """Return the figures: a name and a sentence each."""
    settings, counts = outcome.settings, outcome.counts
    delays = [verdict.delay_h for verdict in outcome.verdicts if verdict.delay_h is not None]
    delay = f", after {np.median(delays):.1f} h in the median" if delays else ""
    found, missed, false = (outcome.count(each) for each in ("found", "missed", "false"))
    kernel = [f"a Gaussian kernel, {settings.features} features"] if settings.features else []
    allowed = settings.clients * (settings.days - settings.settle_days) / 7
    report = [
        _line(
            "room",
            f"{outcome.snapshots:,} snapshots of {outcome.values // outcome.snapshots} channels",
            f"{outcome.gaps / outcome.values:.1%} of values missing or out of service",
            f"seed {settings.seed}",
        ),
        _line(
            "fleet",
            f"{_of(settings.clients, 'client')},"
            f" {_of(len(outcome.of('aggregator')), 'aggregator')}, a root, each a process",
            outcome.wire,
            f"rank {settings.rank} + {OVERSAMPLE} spare",
            *kernel,
        ),
        _line(
            "readings",
            f"{outcome.snapshots:,} fed; the root counts {counts.learnt:,} learnt and"
            f" {counts.withheld:,} withheld, {counts.lost} are declared lost,"
            f" {outcome.lost_with_kill} went with a killed process",
        ),
        *[_recovery(failure) for failure in outcome.failures],
        _traffic(outcome),
        _memory(outcome),
        _line("faults", f"{found} of {found + missed} found{delay}", f"{missed} missed"),
        _line(
            "alarms",
            f"clients raised {len(outcome.alarms)}; {_of(false, 'false incident')}",
            f"the limit is {AT_MOST} and client, {allowed:.1f} in this run",
        ),
        _line(
            "scores",
            f"of {outcome.rows_judged:,} rows after {settings.settle_days:.2g} days,"
            f" {outcome.rows_over_spe:,} are over the fleet's 99.9 % limit of SPE and"
            f" {outcome.rows_over_t2:,} over that of Hotelling's T-squared (T2)",
            *([f"{outcome.anomalous_rows:,} have an anomaly score above 1"] if kernel else []),
        ),
    ]
    if settings.settle_days < SETTLE_DAYS:
        report.append(_line("note", "a short run: limits rest on few rows; expect misses"))
    return report


def _recovery(failure: ProcessFailure) -> tuple[str, str]:
    parts = [f"{failure.node} killed"]
    if failure.ready_s is not None:
        does = "reads" if failure.role == "client" else "serves"
        parts.append(f"{does} {failure.ready_s:.1f} s after its restart")
    if failure.back_s is not None:
        whose = "it is" if failure.role == "client" else "all its children are"
        parts.append(f"{whose} acknowledged again after {failure.back_s:.1f} s")
    return _line("recovery", *parts)


def _traffic(outcome: DemoOutcome) -> tuple[str, str]:
    clients, aggregators = outcome.of("client"), outcome.of("aggregator")
    up, down = (
        [sum(getattr(each, name) for each in some) for some in (clients, aggregators)]
        for name in ("sent_bytes", "heard_bytes")
    )
    settings = outcome.settings
    hours = REPORT_EVERY_S * 24 * settings.days / settings.seconds
    return _line(
        "traffic",
        # A killed process could not log its last bytes.
        f"{_mega(up[0])} up from clients, {_mega(up[1])} from aggregators (of a killed one, since"
        " its restart)",
        f"{_mega(down[0])} and {_mega(down[1])} down, models mostly",
        f"the readings themselves are {_mega(outcome.raw_bytes)} (float32)",
        f"a client reports every {hours:.1f} h of the room's time",
    )


def _memory(outcome: DemoOutcome) -> tuple[str, str]:
    """Return the largest process of each role."""
    names = {"client": "a client", "aggregator": "an aggregator", "root": "the root"}
    parts = [f"{_largest(outcome.of(role))} {name}" for role, name in names.items()]
    return _line("memory", ", ".join(parts) + " at most (resident set size)")


def _largest(some: list[Usage]) -> str:
    return f"{max((each.peak_bytes for each in some), default=0) / 2**20:.0f} MiB"


def _line(name: str, *parts: str) -> tuple[str, str]:
    return name, "; ".join(parts)


def _binned(values: Array, history: DemoHistory, across: int) -> Array:
    """Return the largest value of the rounds that each column touches; 0 where none is known."""
    ends = np.array(history.snapshot)
    edges = np.linspace(0, ends[-1], across + 1)
    first = np.searchsorted(ends, edges[:-1], side="right")
    last = np.searchsorted(ends, edges[1:], side="left")
    known = np.nan_to_num(values)
    return np.array([known[i : j + 1].max() for i, j in zip(first, last, strict=True)])


def _chart(values: Array, *, loud: float, settled: int) -> list[Text]:
    """Return bars on a log scale, top row first: red where loud, pale before limits were known."""
    top = max(1.0, float(np.ceil(np.log10(values.max()))))
    decades = top - np.log10(FLOOR)
    height = max(HEIGHT, round(decades))
    share = np.log10(np.maximum(values, FLOOR) / FLOOR) / decades
    eighths = (np.clip(share, 0, 1) * height * 8).round().astype(int)
    drawn = []
    for row in reversed(range(height)):
        low, high = (np.log10(FLOOR) + decades * edge / height for edge in (row, row + 1))
        power = int(np.ceil(low - 1e-9))
        line = Text(f"{f'{10.0**power:g}x ┤' if power < high - 1e-9 else '│':>{LEFT}}")
        for i, value in enumerate(values):
            style = "dim" if i < settled else "red" if value > loud else "cyan"
            line.append(BLOCKS[min(8, max(0, eighths[i] - 8 * row))], style=style)
        drawn.append(line)
    return drawn


def _days(days: float, across: int) -> Text:
    """Return the axis under the charts: names of days, as many as fit."""
    cell = across / days
    line = [" "] * (across + 3)
    for day in range(0, int(np.ceil(days)), max(1, int(np.ceil(4 / cell)))):
        line[round(day * cell) : round(day * cell) + 3] = WEEKDAYS[day % 7]
    return Text(" " * LEFT + "".join(line)[:across], style="dim")


def _span(verdict: FaultVerdict, outcome: DemoOutcome, across: int) -> Text:
    line = ["·"] * across
    per = across / outcome.snapshots
    name, kind = f"mote{verdict.mote:02d}", "false alarm"
    if verdict.fault is not None:
        name, kind = verdict.fault.channel, verdict.fault.kind
        start = int(verdict.fault.start * per)
        end = max(start + 1, round(verdict.fault.end * per))
        line[start:end] = "━" * (end - start)
    elif verdict.alarm is not None:
        name = f"{name}.{verdict.alarm.quantity}" if verdict.mote else "no mote named"
    if verdict.alarm is not None:
        line[min(across - 1, int(verdict.alarm.snapshot * per))] = "◆"
    text = Text(f"{name:<{LEFT - 1}} ")
    text.append("".join(line), style=STYLE[verdict.outcome])
    if verdict.delay_h is not None:
        text.append(f" {kind}: found in {verdict.delay_h:.1f} h", style="green")
    elif verdict.fault is not None:
        text.append(f" {kind}: missed", style="yellow")
    else:
        day = (verdict.alarm.snapshot / DAY) if verdict.alarm else 0
        text.append(f" {kind}, day {day:.1f}", style="red")
    return text


def _of(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _mega(n: int) -> str:
    return f"{n / 1e6:.1f} MB"
