"""Histories for a person: a table, a line of what a push has changed, and a warning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from submerge_files.console.printable import name_text, printable
from submerge_files.console.units import ago, figure, moment

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_aggregator.questions.history_views import HistoryView, PushedView

LITTLE = 0.1
"""Share of a weight: of less, a push warns."""


def pushed_text(file: str, done: PushedView) -> str:
    """Return what is at work after a push, in one line."""
    history = done.history
    cap = "" if history.most_rows is None else f", counted as at most {history.most_rows:,.0f}"
    text = f"{printable(file)}: history {history.name} of group {history.group}, "
    text += f"{history.rows:,} rows{cap}"
    if done.replaces:
        text += f", in place of {', '.join(done.replaces)}"
    if not done.limits:
        return f"{text}; it has no limits: nodes learn theirs as they report"
    return f"{text}; its limits hold for nodes from their first rows on"


def weight_warning(done: PushedView) -> str:
    """Return a warning if the group's half-life leaves little of a history; empty if not."""
    history, half = done.history, done.half_life_s
    if history.left >= LITTLE or not half:
        return ""
    age = -math.log2(history.left) * half if history.left > 0 else math.inf
    old = f"{ago(age)} old" if age < math.inf else "too old"
    return (
        f"warning: its last row is {old}, and the group has a half-life of {ago(half)}:"
        f" {figure(100 * history.left)}% of its weight is left"
    )


def table_of(views: Sequence[HistoryView]) -> Table:
    """Return histories as a table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    several = len({view.group for view in views}) > 1
    capped = any(view.most_rows is not None for view in views)
    old = not all(view.current for view in views)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in [*(["group"] if several else []), "name"]:
        table.add_column(heading, no_wrap=True)
    for heading in ("rows", *(["weight cap"] if capped else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("span", "machines", "files", "pushed", *(["state"] if old else [])):
        table.add_column(heading, overflow="fold")
    for view in views:
        cells = [view.group] if several else []
        cells += [view.name, f"{view.rows:,}"]
        if capped:
            cells.append("-" if view.most_rows is None else f"{view.most_rows:,.0f}")
        files = [PurePath(file).name for file in view.files]
        cells += [_span(view), _named(view.machines), _named(files), _day(view.pushed_s)]
        if old:
            cells.append("" if view.current else "old schema")
        table.add_row(*map(Text, cells))
    return table


def _span(view: HistoryView) -> str:
    if view.origin:
        return f"of fleet {name_text(view.origin.partition(' ')[0])}"
    if view.first_s is None or view.last_s is None:
        return "-"
    return f"{_day(view.first_s)} to {_day(view.last_s)}"


def _named(names: Sequence[str]) -> str:
    """Return a single name, or how many there are."""
    return name_text(names[0]) if len(names) == 1 else f"{len(names)}" if names else "-"


def _day(seconds: float) -> str:
    return moment(seconds).partition(" ")[0]
