"""What a batch of the commit worker has for the history: levels of minutes, and models.

`entries_of` runs on the commit worker's thread for each effect of the machine. What it returns goes
out with the batch, so after the commit: a batch that is taken back leaves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.presence import time_of
from submerge.protocol.machine import Effect, Event, Now, Publish, Received, Send
from submerge.protocol.messages import Answer, Model, Reason, Report
from submerge.protocol.score_trail import MINUTE_S

PAST_MINUTES, AHEAD_MINUTES = 120, 1
"""A trail may write so far back, and ahead, from now: whatever a node's clock says."""


class TrailHeard(NamedTuple):
    """Levels of a node's minutes.

    first : the minute of the first level: our wall time in seconds, divided by 60, rounded down
    """

    group: str
    node: str
    first: int
    levels: bytes


class ModelHeard(NamedTuple):
    """A model that the group uses from now on."""

    model: Model


def entries_of(
    node: AggregatorNode, event: Event, effect: Effect, now: Now
) -> list[TrailHeard | ModelHeard]:
    """Return what an effect of the machine has for the history."""
    if isinstance(effect, Publish):
        message = effect.message
        return [ModelHeard(message)] if isinstance(message, Model) and _learnt(message) else []
    report = event.message if isinstance(event, Received) else None
    if not (isinstance(effect, Send) and isinstance(report, Report) and not report.fence):
        return []
    answer = effect.message
    if not isinstance(answer, Answer) or answer.reason is not Reason.ACK:
        return []
    heard = heard_of(report, _believed(node, report, now), now)
    return [] if heard is None else [heard]


def models_of(node: AggregatorNode) -> list[ModelHeard]:
    """Return the models that a machine begins with."""
    models = (node.model(group) for group in node.groups)
    return [ModelHeard(model) for model in models if model is not None and _learnt(model)]


def heard_of(report: Report, as_of: float, now: Now) -> TrailHeard | None:
    """Return a report's trail by our clock, without minutes that are not near now.

    as_of : the time of the report, as far as it is believed
    """
    trail = report.trail
    # Whole minutes: a trail's are cut already, and the reports of a node shift alike.
    shift = round((as_of - report.as_of) / MINUTE_S)
    present = int(now.wall // MINUTE_S)
    last = trail.last + shift
    first = last - len(trail.levels) + 1
    begin = max(0, present - PAST_MINUTES - first)
    end = min(len(trail.levels), present + AHEAD_MINUTES - first + 1)
    if begin >= end:
        return None
    levels = trail.levels[begin:end]
    return TrailHeard(report.stamp.group, report.stamp.node, first + begin, levels)


def _learnt(model: Model) -> bool:
    """Return whether a model holds readings: the first ones only bring a schema down."""
    return model.counts.learnt > 0


def _believed(node: AggregatorNode, report: Report, now: Now) -> float:
    """Return when a report is as of: a report that comes again, as it was when it came first."""
    stamp = report.stamp
    ledger = node.ledger(stamp.group)
    row = None if ledger is None else ledger.rows.get((stamp.node, stamp.incarnation))
    if row is not None and row.report.stamp == stamp:
        return row.as_of
    return time_of(report, now, node.settings.max_age_s)
