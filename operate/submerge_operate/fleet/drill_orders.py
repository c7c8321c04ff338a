"""Drills at nodes: asked for through an aggregator above them, and what they have found out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from submerge_files.console.options import AggregatorOptions
from submerge_files.console.units import moment
from submerge_files.drill.table import print_table
from submerge_operate.fleet.orders import when_applied

if TYPE_CHECKING:
    from submerge_aggregator.questions.drill_survey import DrillView


def ask_nodes(at: AggregatorOptions, nodes: Sequence[str], *, anyway: bool) -> None:
    """Ask nodes for a drill; print when that reaches them."""
    import msgspec

    from submerge_aggregator.questions.alarm_views import DesiredStateView

    admin = at.admin(instead="FILEs with --model, or ")
    group = admin.group(at.group)
    for node in nodes:
        answer = admin.post("nodes", group, node, "drill", **({"anyway": "1"} if anyway else {}))
        desired = msgspec.json.decode(answer, type=DesiredStateView)
        click.echo(f"{node} of group {group} is to drill. {when_applied(desired)}")


def show_answers(at: AggregatorOptions, plot: Path | None, *, as_json: bool) -> None:
    """Print what nodes have found out, merged."""
    import msgspec

    from submerge_aggregator.questions.drill_survey import DrillView

    admin = at.admin(instead="FILEs with --model, or ")
    answer = admin.get("drills", admin.group(at.group))
    view = msgspec.json.decode(answer, type=DrillView)
    if as_json:
        click.echo(json.dumps(json.loads(answer), indent=2))
    elif not view.nodes:
        click.echo(
            f"No node of group {view.group} has answered a drill yet: ask one with --ask NODE"
        )
    else:
        _print(view)
    if plot is not None and view.nodes:
        from submerge_files.drill.plot import draw

        draw(plot, view.channels)
        click.echo(f"picture {plot}", err=True)


def _print(view: DrillView) -> None:
    print_table(view.channels, several=len(view.nodes) > 1)
    for node in view.nodes:
        by = "" if node.reported_by == node.node else f", by {node.reported_by}"
        click.echo(
            f"{node.node}{by}: {moment(node.at)}, {node.rows} rows, {node.tries} tries within"
            f" {node.within} rows, {node.at_most_per_s * 604800:.3g} false a week"
        )
