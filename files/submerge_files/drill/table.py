"""Answers of drills for people: a table, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from submerge.drill.drill import BLIND, LARGEST
from submerge_files.console.tables import Column, table
from submerge_files.console.units import figure, name_text

if TYPE_CHECKING:
    from rich.table import Table

SIZES = ("bias", "drift", "noise")

LEGEND = (
    "bias, drift, noise: the smallest that raises an alarm in 9 of 10 tries (a drift: what it"
    " reaches by then); stuck, swap: the share of tries in which one is found. R2: the share of"
    f" its variance that the other channels explain; below {BLIND:g} it is blind: only a fault that"
    " takes the channel out of its own range is found."
)


SEVERAL = "Of several nodes: the median, and in brackets the worst."

NONE = f"none: no fault of up to {LARGEST:g} standard deviations of the channel is found"


def print_table(channels: Sequence[dict[str, Any]], *, several: bool) -> None:
    """Print the objects of `in_units`, and what the table means; `several`: of several nodes."""
    from rich.console import Console

    Console(highlight=False).print(table_of(channels, several=several))
    click.echo(LEGEND)
    if several:
        click.echo(SEVERAL)
    # Some node finds no size of some fault.
    if any(each[kind]["worst"] is None for each in channels for kind in SIZES):
        click.echo(NONE)


def table_of(channels: Sequence[dict[str, Any]], *, several: bool) -> Table:
    """Return the objects of `in_units` as a table; `several`: with the worst node."""

    def size(kind: str) -> Column[dict[str, Any]]:
        return Column(kind, lambda each: _size(each[kind], several=several), right=True)

    def share(kind: str) -> Column[dict[str, Any]]:
        return Column(kind, lambda each: _share(each[kind]), right=True)

    columns: list[Column[dict[str, Any]]] = [
        Column("channel", _channel, folds=True),
        *map(size, SIZES),
        *map(share, ("stuck", "swap")),
        Column("R2", lambda each: f"{each['r2']:.2f}", right=True),
        Column("", _remark, folds=True),
    ]
    return table(channels, columns)


def _channel(channel: dict[str, Any]) -> str:
    unit = f" [{name_text(channel['unit'])}]" if channel["unit"] else ""
    return name_text(channel["channel"]) + unit


def _remark(channel: dict[str, Any]) -> str:
    blind, nodes = channel["blind"], channel["nodes"]
    if not blind:
        return ""
    return "blind" if nodes == blind else f"blind at {blind} of {nodes}"


def _size(spread: dict[str, float | None], *, several: bool) -> str:
    median = _figure(spread["median"])
    return f"{median} ({_figure(spread['worst'])})" if several else median


def _figure(size: float | None) -> str:
    return "none" if size is None else figure(size)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def draw(path: Path, channels: Sequence[dict[str, Any]]) -> None:
    """Write a picture to `path`, a PNG: the smallest faults of each channel that are found."""
    from submerge_files.console.figures import Figure, save

    figure = Figure(figsize=(9, 1.2 + 0.22 * len(channels)), layout="constrained")
    chart = figure.subplots()
    rows = np.arange(len(channels))
    for i, kind in enumerate(SIZES):
        shift, color = 0.25 * (i - 1), f"C{i}"
        spreads = [[_drawn(each, size) for size in each[kind].values()] for each in channels]
        best, median, worst = np.array(spreads).T
        chart.hlines(rows + shift, best, worst, color=color, lw=1.2)
        chart.plot(median, rows + shift, "o", ms=3.5, color=color, label=kind)
    for row, each in zip(rows.tolist(), channels, strict=True):
        if each["blind"]:
            chart.axhspan(row - 0.5, row + 0.5, color="C3", alpha=0.12, lw=0)
    chart.set_xscale("log", base=2)
    chart.axvline(LARGEST, color="0.7", lw=0.8)
    chart.set_yticks(rows, [each["channel"] for each in channels], fontsize="small")
    chart.invert_yaxis()
    chart.set_xlabel(
        "smallest fault that is found, in standard deviations (of nodes: scales) of the channel"
        f" (at {LARGEST:g}: none); shaded: blind"
    )
    figure.legend(fontsize="small", loc="outside upper center", ncols=3)
    save(figure, path, dpi=130)


def _drawn(channel: dict[str, Any], size: float | None) -> float:
    return LARGEST if size is None else min(size / channel["deviation"], LARGEST)
