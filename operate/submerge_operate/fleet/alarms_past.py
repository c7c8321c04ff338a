"""`submerge alarms past`: alarms that are over or judged, from the history of an aggregator."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from submerge_files.console.admin_client import AdminClient, console_of
from submerge_files.console.options import (
    AggregatorOptions,
    aggregator_options,
    default_option,
    flag_option,
    json_option,
)
from submerge_operate.fleet.alarms_table import table_of

if TYPE_CHECKING:
    from submerge_aggregator.questions.alarm_views import AlarmView

NARROW = 120
"""On fewer columns an alarm may take several lines."""


@click.command("past", epilog="Example: submerge alarms past --number 20 --config root.toml")
@aggregator_options("Of this group only.")
@default_option("--number", 50, "At most so many.", type=click.IntRange(min=1))
@flag_option("--wide", "With node, onset, values, model, readings withheld, and who reported it.")
@json_option("Print JSON, the newest first.")
def past(at: AggregatorOptions, number: int, wide: bool, as_json: bool) -> None:
    """List alarms that have ended or are judged, the newest first.

    Nodes report the last eight of theirs; an aggregator keeps more, for as long as its history has
    room ([history] max_bytes).
    """
    admin = at.admin()
    groups = [at.group] if at.group is not None else admin.groups()
    found = [alarm for group in groups for alarm in _newest(admin, group, number)]
    found = sorted(found, key=lambda each: -_time_of(each))[:number]
    if as_json:
        click.echo(json.dumps(found))
        return
    views = _views(found)
    if not views:
        click.echo("no alarm is over")
        return
    console = console_of(wide=wide)
    narrow = console.width < NARROW
    console.print(table_of(views, now=time.time(), wide=wide, narrow=narrow))


def _newest(admin: AdminClient, group: str, number: int) -> list[dict[str, Any]]:
    """Return the newest alarms of a group, page by page."""
    found, before, more = list[dict[str, Any]](), dict[str, str](), True
    while more and len(found) < number:
        page = json.loads(admin.get("past-alarms", group, **before))
        found += page["alarms"]
        more = page["more"] and bool(page["alarms"])
        if found:
            before = {"before": repr(_time_of(found[-1])), "after": str(found[-1]["id"])}
    return found[:number]


def _time_of(alarm: dict[str, Any]) -> float:
    """Return what the history sorts by: when an alarm ended, or began, if it is open."""
    return float(alarm["ended"] or alarm["began"])


def _views(found: list[dict[str, Any]]) -> list[AlarmView]:
    import msgspec

    from submerge_aggregator.questions.alarm_views import AlarmView

    return msgspec.convert(found, type=list[AlarmView])
