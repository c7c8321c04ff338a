"""Commands that set the desired state of nodes, and when it reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from submerge_files.console.options import (
    Decorator,
    aggregator_options,
    flag_option,
    json_option,
    together,
)
from submerge_files.console.units import ago

if TYPE_CHECKING:
    from submerge_aggregator.questions.views import DesiredStateView

ON_ITS_WAY = """The order is sent down at once, level by level. A node that cannot be reached now
gets it when it joins again, or with its next report."""


def desired_state_command(
    group: click.Group,
    example: str,
    *,
    target: Decorator,
    group_help: str,
    anyway: str,
    json: str,
) -> Decorator:
    """Return what makes a function a command of `group` that sets a node's desired state."""
    epilog = f"{ON_ITS_WAY}\n\nExample: submerge {example} --config root.toml"
    return together(
        group.command(epilog=epilog),
        target,
        aggregator_options(group_help),
        flag_option("--anyway", anyway),
        json_option(json),
    )


def when_applied(desired: DesiredStateView) -> str:
    """Say which node gets a desired state first, and when it last reported."""
    if desired.reported_by is None:
        return "No report here names the node: it is sent to all aggregators below"
    first = f"{desired.reported_by} reported {ago(desired.silent_s or 0.0)} ago"
    if desired.reported_by == desired.node:
        return f"{first} and is sent it at once"
    return f"{first} and is sent it at once, {desired.node} after that"
