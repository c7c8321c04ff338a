"""Jobs in words: a table of them, one in lines, and a round that begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from submerge.jobs.envelopes import OPENING
from submerge_files.console.printable import printable
from submerge_files.console.units import ago, in_words, moment

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_aggregator.jobs.record import JobRecord
    from submerge_aggregator.jobs.views import JobDetails, JobView

MOST_NAMES = 5
"""Nodes that a line names."""


def table_of(views: Sequence[JobView], *, now: float) -> Table:
    """Return jobs as a table, at a wall time."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    several = len({view.group for view in views}) > 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    headings = ["job", *(["group"] if several else []), "kind", "opened", "took", "nodes"]
    for heading in headings:
        right = heading in ("took", "nodes")
        table.add_column(heading, no_wrap=True, justify="right" if right else "left")
    table.add_column("state", overflow="fold")
    for view in views:
        cells = [view.id, *([view.group] if several else []), view.kind]
        cells += [moment(view.opened_s) if view.opened_s else "-", took(view, now=now)]
        cells += [f"{view.members:,}", state_of(view)]
        table.add_row(*(Text(printable(each)) for each in cells))
    return table


def state_of(view: JobView) -> str:
    """Return how a job is, in words."""
    if view.state == "failed":
        return f"failed: {view.failure}"
    if view.state == "running":
        return stage_of(view)
    lost = [f"{view.left:,} left"] if view.left else []
    lost += [f"{view.declined:,} took no part"] if view.declined else []
    return ", ".join([f"done in {view.round:,} rounds", *lost])


def stage_of(view: JobView) -> str:
    """Return what a job that runs is at."""
    if view.phase == OPENING:
        return "asks who takes part"
    attempt = f", attempt {view.attempt}" if view.attempt > 1 else ""
    return f"round {view.round:,} ({view.phase}){attempt}, {_nodes(view.members)}"


def took(view: JobView, *, now: float) -> str:
    """Return how long a job took, or has run so far."""
    if not view.opened_s:
        return "-"
    return ago(max(0.0, (view.ended_s or now) - view.opened_s))


def job_lines(details: JobDetails, *, now: float) -> list[tuple[str, str]]:
    """Return a job in lines, as a name and what is said of it."""
    view = details.job
    settings = " ".join(f"{name}={value}" for name, value in view.settings.items())
    opened = f"opened {moment(view.opened_s)}, " if view.opened_s else ""
    lines = [
        ("job", f"{view.id}: {view.kind} of group {view.group}"),
        ("settings", settings or "none"),
        ("state", state_of(view)),
        ("time", f"{opened}{'took' if view.ended_s else 'runs for'} {took(view, now=now)}"),
    ]
    return lines + _node_lines(details)


def record_lines(record: JobRecord) -> list[tuple[str, str]]:
    """Return how a job that has an answer ended, in lines."""
    job = record.job
    settings = " ".join(f"{name}={value}" for name, value in job.settings.items())
    where = f"of group {job.group}: {job.id}" if record.opened_s else "of files, in this process"
    again = f", in attempt {record.attempts}" if record.attempts > 1 else ""
    took = f", {in_words(record.ended_s - record.opened_s)}" if record.opened_s else ""
    left = {name: each.why + _counts(each.rounds) for name, each in record.left.items()}
    nodes = {"nodes": dict.fromkeys(record.stayed, ""), "left": left, "no part": record.declined}
    return [
        ("job", " ".join((job.kind, settings, where)).replace("  ", " ")),
        ("rounds", f"{record.rounds:,}{again}{took}"),
        *((name, _named(each)) for name, each in nodes.items() if each),
    ]


def _node_lines(details: JobDetails) -> list[tuple[str, str]]:
    """Return which nodes took part, which left, and which took no part."""
    left = {name: each.why + _counts(each.rounds) for name, each in details.left.items()}
    nodes = {"nodes": dict.fromkeys(details.stayed, ""), "left": left, "no part": details.declined}
    return [(name, _named(each)) for name, each in nodes.items() if each]


def _counts(rounds: int) -> str:
    return f", counts in {rounds} rounds" if rounds else ""


def _named(nodes: Mapping[str, str]) -> str:
    names = [f"{name} ({why})" if why else name for name, why in nodes.items()]
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"{len(names):,}: {', '.join(names[:MOST_NAMES])}{more}"


def _nodes(number: int) -> str:
    return f"{number:,} node{'s' * (number != 1)}"
