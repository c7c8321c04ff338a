"""BoxState: how a machine is, from its client and its root: what each line on it is made of.

The client works on a thread of its own. What is read of it here are values that it replaces whole,
so no lock is needed: a number may be a moment older than the one beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from submerge.aggregator.node import AggregatorNode
from submerge.client.alarms.limits import AlarmLimits
from submerge.client.monitor import NewestScore, newest_score
from submerge.client.node import ClientNode
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts
from submerge_aggregator.questions import survey

Held = Callable[[AggregatorNode, Now], dict[str, Counts]]
"""A question to the root: what it holds of a node, by incarnation; sealed ones are under ""."""


@dataclass(frozen=True, slots=True)
class BoxState:
    """How a machine is.

    rows : Read since the program began.
    learnt, withheld : Readings of all its lives: learnt, and seen but not learnt.
    measured : Readings that measure the scale of the channels; None once it is settled.
    ready_in_s : Time until the scale is measured, at the present rate; -1 if unknown.
    waits_on : Channels without a value, for which rows wait that would measure the scale.
    score : None before the first row was scored.
    waits_for : What limits wait for, in words; empty if they wait for time only, or are there.
    provisional : Whether limits are those of a first look: they do not keep the configured rate of
        alarms.
    armed_in_s : Time until they keep it; -1 if unknown.
    alarms : That it remembers, open ones and ended ones, the newest first.
    absent : Channels that had no value in the rows before the line.
    never : Those of them that have had none since the program began.
    quiet_s : For how long there was no row; 0 while that is usual.
    advice : What to look at then, if there was none ever.
    """

    rows: int
    learnt: int
    withheld: int
    measured: int | None = None
    ready_in_s: float = -1.0
    waits_on: tuple[str, ...] = ()
    score: NewestScore | None = None
    waits_for: str = ""
    provisional: bool = False
    armed_in_s: float = -1.0
    alarms: tuple[Alarm, ...] = ()
    absent: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    quiet_s: float = 0.0
    advice: str = ""

    @property
    def open(self) -> tuple[Alarm, ...]:
        """Alarms that are open."""
        return tuple(each for each in self.alarms if each.is_open)


def has_started(client: ClientNode) -> bool:
    """Return whether a client has read what it keeps: before that there is nothing to say."""
    return hasattr(client, "current")


def held_of(group: str, name: str) -> Held:
    """Return the question of what a root holds of a node.

    Readings of an earlier schema count for nothing: those that it measured are counted by their
    successor, and what was measured of other channels settles nothing.
    """

    def question(node: AggregatorNode, now: Now) -> dict[str, Counts]:
        held: dict[str, Counts] = {}
        for view in survey.nodes(node, now, group, name):
            for each in (sealed for sealed in view.sealed if sealed.schema == "current"):
                held[""] = held.get("", Counts()) + Counts(each.learnt, each.withheld)
            for row in (row for row in view.rows if row.schema == "current"):
                held[row.incarnation] = Counts(row.learnt, row.withheld)
        return held

    return question


def measured_of(client: ClientNode) -> int | None:
    """Return how many readings measure the scale; None once it is settled."""
    current = client.current
    if client.monitor is not None or current.learns:
        return None
    # Before its schema is settled the root holds everything under an earlier one.
    return client.finals.measured_by(current.fingerprint) + current.counts.learnt


def state_of(rows: int, client: ClientNode, held: dict[str, Counts]) -> BoxState:
    """Return how a machine is.

    held : what its root holds, as `held_of` asks; of the running incarnation the client knows more
    """
    current, monitor = client.current, client.monitor
    total = current.counts
    for incarnation, counts in held.items():
        if incarnation != str(current.incarnation):
            total += counts
    learnt, withheld = total.learnt, total.withheld
    if monitor is None:
        return BoxState(rows, learnt, withheld, measured_of(client))
    detector, waiting = monitor.detector, monitor.waiting
    limits = AlarmLimits() if detector is None else detector.limits
    return BoxState(
        rows,
        learnt,
        withheld,
        score=newest_score(monitor),
        waits_for="" if waiting is None else waiting.words.replace("the group's", "its"),
        provisional=bool(limits.known) and not limits.promised,
        armed_in_s=limits.armed_in_s,
        alarms=monitor.alarms,
    )
