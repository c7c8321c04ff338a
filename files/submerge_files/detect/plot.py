"""The picture of a detection: scores over their limit, alarms, and channels, over time."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from submerge import Array
from submerge.history.recording import TimeSpan
from submerge_client.datasets.table import counted
from submerge_files.console.curves import Curves
from submerge_files.console.figures import Figure, save
from submerge_files.detect.run import Detected

MOST_CHANNELS = 60  # channels in the heat map: those with the largest errors
MOST_ERROR = 8.0  # error, over its typical size, that the darkest colour stands for


def draw(curves: Curves, detection: Detected, left_out: Sequence[TimeSpan] = ()) -> Figure:
    """Return the picture; spans of time that were left out are grey."""
    # Machines come one after another, and may be of the same days.
    order = np.argsort(curves.times, kind="stable")
    times, over, errors = curves.times[order], curves.over[order], curves.errors[order]
    if detection.machines > 1 and detection.period_s:
        times, over, errors = at_once(times, over, errors, curves.each * detection.period_s)
    names = np.array(detection.request.schema.names)
    if errors.shape[1] < len(names):
        names = names[: errors.shape[1]]
    shown = np.argsort(-errors.max(axis=0), kind="stable")[:MOST_CHANNELS]
    shown = np.sort(shown)
    height = 3.0 + 0.22 * len(shown)
    figure = Figure(figsize=(12, height), layout="constrained")
    above, below = figure.subplots(
        2, 1, sharex=True, height_ratios=(2.2, max(1.0, 0.22 * len(shown)))
    )
    when = _axis(times, detection)
    above.plot(when, np.maximum(over, 1e-3), lw=0.8, color="C0", drawstyle="steps-post")
    above.axhline(1.0, color="C3", lw=1)
    above.set_yscale("log")
    above.set_ylabel("score over its limit\n(an alarm from 1 on)")
    alarms = counted(len(detection.alarms), "alarm")
    above.set_title(
        f"{detection.seen.judged:,} rows judged, {alarms}", loc="left", fontsize="medium"
    )
    for each in left_out:
        _shade(above, np.clip(each, times[0], times[-1]), "0.5", detection)
    _shade_alarms(above, detection, times[-1])
    mesh = below.pcolormesh(
        when,
        np.arange(len(shown)),
        np.minimum(errors[:, shown].T, MOST_ERROR),
        cmap="Reds",
        vmin=1.0,
        vmax=MOST_ERROR,
        shading="nearest",
        rasterized=True,
    )
    below.set_yticks(np.arange(len(shown)), names[shown], fontsize="small")
    below.invert_yaxis()
    figure.colorbar(
        mesh, ax=below, label="times as far as usual\nfrom what the others say", pad=0.01
    )
    every = "each row" if curves.each == 1 else f"the highest of each {curves.each} rows"
    if detection.machines > 1:
        every = f"{every} of {detection.machines} machines"
    grey = "; grey: left out" if left_out else ""
    unit = "UTC" if detection.period_s and len(curves.times) else "rows"
    below.set_xlabel(f"{unit}; {every}; red: alarms, in their order{grey}")
    return figure


def save_picture(
    path: Path, curves: Curves, detection: Detected, left_out: Sequence[TimeSpan] = ()
) -> None:
    save(draw(curves, detection, left_out), path, dpi=130)


def at_once(times: Array, over: Array, errors: Array, width_s: float) -> tuple[Array, Array, Array]:
    """Return the highest of times (m,), over (m,) and errors (m, channels) in each `width_s`."""
    # Else a machine without a fault would cover one that has it: both are of the same moment.
    spans = np.floor((times - times[0]) / width_s)
    first = np.flatnonzero(np.diff(spans, prepend=-1.0))
    return times[first], np.maximum.reduceat(over, first), np.maximum.reduceat(errors, first)


def _shade_alarms(axes: Any, detection: Detected, last: float) -> None:
    """Shade alarms, with their numbers; one that has not ended goes on to the last row."""
    for number, found in enumerate(detection.alarms, 1):
        begin, end = found.began.time, last if found.ended is None else found.ended.time
        if np.isnan(begin):
            continue
        span = np.array([begin, last if np.isnan(end) else end])
        color = "C1" if found.alarm.provisional else "C3"
        _shade(axes, span, color, detection)
        at, top = _axis(span, detection)[0], axes.get_xaxis_transform()
        axes.text(at, 0.97, f" {number}", color=color, va="top", transform=top)


def _shade(axes: Any, span: Any, color: str, detection: Detected) -> None:
    first, last = _axis(span, detection)
    axes.axvspan(first, last, color=color, alpha=0.25, lw=0)


def _axis(seconds: Any, detection: Detected) -> Any:
    """Return times as matplotlib shows them; row numbers as they are."""
    if not detection.period_s:
        return seconds
    return [datetime.datetime.fromtimestamp(float(each), datetime.UTC) for each in seconds]
