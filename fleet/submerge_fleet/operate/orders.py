"""Orders on their way down: who hears of one first, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from submerge_fleet.console.options import (
    Decorator,
    aggregator_options,
    flag_option,
    json_option,
    together,
)
from submerge_fleet.console.units import ago

if TYPE_CHECKING:
    from submerge_aggregator.questions.alarm_views import DesiredStateView

ON_ITS_WAY = """An order goes down with the answers to reports: whoever is next on the way to the
node hears of it with its next report, the node at last with its own. Reports come every 300 s,
unless a configuration says otherwise."""


def node_order(
    group: click.Group,
    example: str,
    *,
    target: Decorator,
    group_help: str,
    anyway: str,
    json: str,
) -> Decorator:
    """Return what makes a function a command of `group` that has a node do something.

    target : the argument: whom, or which alarms
    group_help, anyway, json : what --group, --anyway and --json are for
    """
    epilog = f"{ON_ITS_WAY}\n\nExample: submerge {example} --config root.toml"
    return together(
        group.command(epilog=epilog),
        target,
        aggregator_options(group_help),
        flag_option("--anyway", anyway),
        json_option(json),
    )


def when_applied(desired: DesiredStateView) -> str:
    """Say who hears of an order first, and when it was heard."""
    if desired.reported_by is None:
        return "Nothing of it was ever told here: all aggregators below hear of it"
    heard = f"It was heard {ago(desired.silent_s or 0.0)} ago"
    if desired.reported_by == desired.node:
        return f"{heard}, and is told with its next report"
    return (
        f"{desired.reported_by} {heard[3:]}, and is told with its next report;"
        f" {desired.node} after that"
    )
