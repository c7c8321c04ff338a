"""Answers of drills for people and for machines, in the units of the channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

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
