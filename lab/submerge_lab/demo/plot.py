"""The picture of a demo: scores over time, every mote, the room's plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from submerge_files.console.figures import Figure, LogNorm, save
from submerge_lab.demo.alarms import FaultVerdict
from submerge_lab.demo.run import WEEKDAYS, Demo, DemoOutcome
from submerge_lab.demo.scores import LOUD
from submerge_lab.plants.room import DAY, MOTES
from submerge_lab.plants.room_plan import DEPTH, WIDTH

COLOR = {"found": "#1b7837", "missed": "#d6850a", "false": "#c51b1b"}


def draw(path: Path, demo: Demo, outcome: DemoOutcome) -> None:
    """Write the picture to `path`, a PNG."""
    figure = Figure(figsize=(13, 12), layout="constrained")
    grid = figure.add_gridspec(3, 1, height_ratios=(2.4, 4, 4))
    scores = figure.add_subplot(grid[0])
    motes = figure.add_subplot(grid[1], sharex=scores)
    settings = outcome.settings
    kernel = f", a kernel ({settings.features} features)" if settings.features else ""
    figure.suptitle(
        f"{MOTES} motes, {settings.days:g} days, {settings.clients} clients{kernel}:"
        f" {outcome.count('found')} faults found, {outcome.count('missed')} missed;"
        f" {len(outcome.alarms)} alarms, {outcome.count('false')} false incidents",
        fontsize=13,
        fontweight="bold",
    )
    _scores(scores, demo, outcome)
    _motes(figure, motes, demo, outcome)
    _plan(figure.add_subplot(grid[2]), demo, outcome)
    save(figure, path, dpi=110, description=describe(figure))


def describe(figure: Any) -> str:
    """Say what a figure shows: its heading, then a line for each panel."""
    # The line has the panel's title, its axes' labels and the entries of its legend. A test
    # compares those of docs/demo.png with those of a picture that it draws.
    lines = [figure.get_suptitle()]
    for axes in figure.axes:
        legend = axes.get_legend()
        entries = [] if legend is None else [text.get_text() for text in legend.get_texts()]
        lines.append(" | ".join([axes.get_title(), axes.get_xlabel(), axes.get_ylabel(), *entries]))
    return "\n".join(lines)


def _scores(axes: Any, demo: Demo, outcome: DemoOutcome) -> None:
    """Draw SPE of the fleet's rows over time, its limit, and the times of faults."""
    day = np.array(demo.history.snapshot) / DAY
    axes.fill_between(day, demo.history.spe, demo.history.spe_worst, color="C0", alpha=0.25, lw=0)
    axes.plot(day, demo.history.spe, color="C0", lw=1, label="median row of a round")
    axes.plot(day, demo.history.spe_worst, color="C0", lw=0.6, alpha=0.8, label="its worst row")
    if demo.watch.limits is not None:
        axes.axhline(demo.watch.limits.spe, color="k", ls="--", lw=0.9, label="measured limit")
    settled = outcome.settings.settle_days
    axes.axvspan(0, settled / 2, color="0.6", alpha=0.35, lw=0)
    axes.axvspan(settled / 2, settled, color="0.6", alpha=0.2, lw=0)
    for start, text in ((0, "learning"), (settled / 2, "measuring limits")):
        axes.annotate(
            text, (start, 0.95), (4, 0), ("data", "axes fraction"), textcoords="offset points",
            va="top", fontsize=9, style="italic",
        )  # fmt: skip
    for verdict in outcome.verdicts:
        if verdict.fault is not None:
            axes.axvspan(
                verdict.fault.start / DAY,
                verdict.fault.end / DAY,
                color=COLOR[verdict.outcome],
                alpha=0.10,
                lw=0,
            )
    for failure in outcome.failures:
        at = failure.at / DAY
        axes.axvline(at, color="k", lw=1.0, ls=":")
        back = "" if failure.back_s is None else f", back in {failure.back_s:.1f} s"
        axes.annotate(
            f"{failure.node} killed{back}", (at, 0.04), (4, 0), ("data", "axes fraction"),
            textcoords="offset points", fontsize=8, style="italic",
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(top=5 * axes.get_ylim()[1])  # room for the legend
    axes.set(ylabel="SPE (scaled units, squared)", xlim=(0, outcome.settings.days))
    rows = "readings" if outcome.settings.features else "rows"
    axes.set_title(f"Squared prediction error (SPE) of {rows}, scored before they are learnt")
    axes.legend(loc="upper right", fontsize=9, ncols=3)
    axes.tick_params(labelbottom=False)


def _motes(figure: Any, axes: Any, demo: Demo, outcome: DemoOutcome) -> None:
    """Draw every mote's worst residual over its limit, with boxes for faults and alarms marked."""
    edges = np.concatenate([[0], demo.history.snapshot]) / DAY
    multiple = np.stack(demo.history.multiple, axis=1)
    axes.set_facecolor("0.82")
    image = axes.pcolormesh(
        edges,
        np.arange(MOTES + 1) + 0.5,
        np.ma.masked_equal(multiple, 0.0),
        norm=LogNorm(0.25, 20),
        cmap="PuRd",
        rasterized=True,
    )
    bar = figure.colorbar(image, ax=axes, pad=0.01, extend="both", ticks=[0.5, 1, LOUD, 5, 10])
    bar.ax.set_yticklabels(["0.5x", "1x", f"{LOUD:g}x", "5x", "10x"])
    bar.ax.minorticks_off()
    bar.set_label("worst residual of its channels, over that channel's limit")
    for verdict in outcome.verdicts:
        _mark(axes, verdict)
    days = np.arange(0, int(np.ceil(outcome.settings.days)) + 1)
    if len(days) <= 32:
        axes.set_xticks(days, [f"{WEEKDAYS[day % 7]}\n{day}" for day in days], fontsize=9)
    axes.set_yticks([1, *range(6, MOTES + 1, 6)])
    axes.set(xlabel="day", ylabel="mote", xlim=(0, outcome.settings.days))
    axes.set_title(
        "Boxes are the true faults, diamonds the alarms; gray is not scored"
        " (silent, not yet, or out of service)"
    )


def _mark(axes: Any, verdict: FaultVerdict) -> None:
    """Box a fault, put a diamond where an alarm named it, and label it."""
    if not verdict.mote:
        return  # the alarm names no mote
    color = COLOR[verdict.outcome]
    at, text = 0.0, "false alarm"
    if verdict.fault is not None:
        fault = verdict.fault
        start, end = fault.start / DAY, fault.end / DAY
        axes.plot(
            [start, end, end, start, start],
            verdict.mote + np.array([-0.5, -0.5, 0.5, 0.5, -0.5]),
            color=color,
            lw=1.3,
        )
        at, text = end, f"{fault.quantity} {fault.kind}"
        if verdict.delay_h is not None:
            text += f", {verdict.delay_h:.1f} h"
    if verdict.alarm is not None:
        snapshot = verdict.alarm.snapshot / DAY
        axes.plot(snapshot, verdict.mote, "D", color=color, ms=7, mec="k", mew=0.8)
        at = max(at, snapshot)
        if verdict.fault is None:
            text = f"{verdict.alarm.quantity}, false"
    left = at > 0.85 * axes.get_xlim()[1]
    if left and verdict.fault is not None:
        at = verdict.fault.start / DAY
    axes.annotate(
        text,
        (at, verdict.mote),
        (-7 if left else 7, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=9,
        color=color,
        fontweight="bold",
        bbox={"facecolor": "w", "alpha": 0.75, "lw": 0, "pad": 1},
    )


def _plan(axes: Any, demo: Demo, outcome: DemoOutcome) -> None:
    """Draw the room from above, motes coloured by verdict."""
    x, y = demo.room.plan.positions.T
    colors = {verdict.mote: COLOR[verdict.outcome] for verdict in outcome.verdicts}
    axes.plot([0, WIDTH, WIDTH, 0, 0], [0, 0, DEPTH, DEPTH, 0], color="k", lw=1)
    axes.plot([0, WIDTH], [0, 0], color="#67b7dc", lw=6, solid_capstyle="butt")
    axes.text(WIDTH / 2, -1.4, "windows (south)", ha="center", va="top", fontsize=9)
    for i in range(MOTES):
        bad = i + 1 in colors
        axes.plot(
            x[i], y[i], "o", ms=15 if bad else 11, mec="k", mew=0.6,
            color=colors.get(i + 1, "0.88"),
        )  # fmt: skip
        axes.text(
            x[i], y[i], f"{i + 1}", ha="center", va="center", fontsize=7.5,
            color="w" if bad else "0.3", fontweight="bold" if bad else "normal",
        )  # fmt: skip
    for name, color in COLOR.items():
        axes.plot([], [], "o", color=color, mec="k", mew=0.6, ms=9, label=name)
    axes.plot([], [], "o", color="0.88", mec="k", mew=0.6, ms=9, label="no fault, no alarm")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), fontsize=9, ncols=4, frameon=False)
    axes.set(xlabel="m", ylabel="m", xlim=(-1, WIDTH + 1), ylim=(-3.5, DEPTH + 1), aspect="equal")
    axes.set_title("The room, from above")
