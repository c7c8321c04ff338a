"""What drills of nodes here and below have found out, merged. Asked as in `survey`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from submerge.aggregator.node import AggregatorNode
from submerge.drill.drill import unpacked
from submerge.drill.merged import in_units, merged
from submerge_aggregator.questions.survey import group_of


@dataclass(frozen=True, slots=True)
class NodeDrillView:
    """The drill of one node.

    node, reported_by : The node, and the child that its answer came from.
    at : When it ended, by the node's clock. Unix seconds.
    rows, tries, within : Rows at hand, tries of each fault, and rows in which it had to be found.
    at_most_per_s : The promised rate of false alarms.
    blind : Channels that it is blind for.
    """

    node: str
    reported_by: str
    at: float
    rows: int
    tries: int
    within: int
    at_most_per_s: float
    blind: int


@dataclass(frozen=True, slots=True)
class DrillView:
    """The drills of a group's nodes.

    channels : As `submerge.drill.merged.in_units`: sizes in the unit of each channel.
    """

    group: str
    nodes: list[NodeDrillView]
    channels: list[dict[str, Any]]


def drills(node: AggregatorNode, group: str) -> DrillView:
    """Return the newest answers of a group's nodes, merged."""
    group_of(node, group)
    ledger, views, answers = node.ledger(group), list[NodeDrillView](), []
    for report in node.drills(group).values():
        # Of an earlier schema: its channels are others.
        if ledger is None or report.fingerprint != ledger.fingerprint:
            continue
        channels = unpacked(report.channels)
        answers.append(channels)
        views.append(
            NodeDrillView(
                report.node,
                report.stamp.node,
                report.at,
                report.rows,
                2 * report.spans,
                report.within,
                report.at_most_per_s,
                sum(each.blind for each in channels),
            )
        )
    if ledger is None or not answers:
        return DrillView(group, [], [])
    # All have as many channels: lags, which follow from the names, are those of the schema.
    fewest = min(map(len, answers))
    together = merged([each[:fewest] for each in answers])
    return DrillView(
        group, sorted(views, key=lambda view: view.node), in_units(together, ledger.schema)
    )
