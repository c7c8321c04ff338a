"""Alarm survey: what rows below tell of alarms, and who is to hear what an operator wants.

As in `survey`, all is asked on the desk's thread, and changes nothing. An alarm that two rows
tell of is one: a node that has moved is still spoken for where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from submerge.aggregator.ledger import Ledger
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import alarm_status, census, latest_row_per_node
from submerge.protocol.alarm_status import Alarm, Verdict
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Now, SetDesired
from submerge_aggregator.questions.alarm_views import (
    AlarmView,
    DesiredStateView,
    GroupWatch,
    WatchView,
)
from submerge_aggregator.questions.survey import Missing, group_of


class SurveyedAlarm(NamedTuple):
    """An alarm, and who told of it last."""

    alarm: Alarm
    by: str
    silent_s: float

    @property
    def rank(self) -> tuple[bool, float, int]:
        """Of two that tell of one alarm, who is to be believed: over is over."""
        return not self.alarm.is_open, -self.silent_s, self.alarm.withheld


def alarms(
    node: AggregatorNode,
    now: Now,
    group: str | None = None,
    name: str | None = None,
    *,
    open_only: bool = False,
) -> list[AlarmView]:
    """List alarms of one group, or of all: open ones first, then by when they began or were over.

    name : of one node alone
    """
    chosen = node.groups if group is None else (group_of(node, group),)
    views = [
        _view(each, reported, node.desired_states(each).get(reported.alarm.node))
        for each in chosen
        for reported in surveyed(node.ledger(each), now)
        if (name is None or reported.alarm.node == name)
        and (reported.alarm.is_open or not open_only)
    ]
    return sorted(views, key=lambda view: (not view.open, -(view.ended or view.began), view.id))


def mark(node: AggregatorNode, now: Now, group: str | None = None) -> str:
    """Return what changes when the revision of an alarm does, or when one comes or goes.

    For those who look every second: of a thousand alarms that are over nobody wants to hear
    again and again.
    """
    known = blake2b(digest_size=8)
    for each in sorted(node.groups if group is None else (group_of(node, group),)):
        revisions = {reported.alarm.revision for reported in _all_alarms(node.ledger(each), now)}
        known.update(b"".join((each.encode(), b"\n", *sorted(revisions))))
    return known.hexdigest()


def surveyed(ledger: Ledger | None, now: Now) -> list[SurveyedAlarm]:
    """Return every alarm that rows tell of, once."""
    known: dict[str, SurveyedAlarm] = {}
    for reported in _all_alarms(ledger, now):
        held = known.get(reported.alarm.name)
        if held is None or held.rank < reported.rank:
            known[reported.alarm.name] = reported
    return list(known.values())


def watches(node: AggregatorNode, now: Now, group: str | None = None) -> list[GroupWatch]:
    """Say how one group is watched, or each."""
    chosen = node.groups if group is None else (group_of(node, group),)
    return [
        GroupWatch(each, 0 if ledger is None else census(ledger, now).nodes, watch(ledger))
        for each in sorted(chosen)
        for ledger in (node.ledger(each),)
    ]


def watch(ledger: Ledger | None) -> WatchView | None:
    """Add up what all below say of their watching; None while nobody does."""
    said = None if ledger is None else alarm_status(ledger, desired=0)
    return None if said is None else WatchView.of(said)


def check(node: AggregatorNode, now: Now, set_desired: SetDesired, *, anyway: bool) -> None:
    """See that there is such a node, and such an alarm, as far as that can be known here.

    Raises
    ------
    Missing
        If there is not, or if nothing of it was ever told here, unless that is to be no matter.
    """
    group, name = group_of(node, set_desired.group), set_desired.node
    ledger = node.ledger(group)
    rows = {} if ledger is None else {who: row for (who, _), row in latest_row_per_node(ledger)}
    if name in rows and not rows[name].from_client:
        raise Missing(f"{name} is an aggregator, and learns nothing itself: name a node below it")
    if anyway:
        return
    below = ", ".join(sorted(who for who, row in rows.items() if not row.from_client))
    known = [reported.alarm for reported in surveyed(ledger, now) if reported.alarm.node == name]
    if set_desired.verdict is not None:
        if set_desired.verdict[0] not in (alarm.number for alarm in known):
            newest = f"; of {name} there are {', '.join(a.name for a in known)}" if known else ""
            raise Missing(
                f"no node reports alarm {name}-{set_desired.verdict[0]:x} here{newest}: a node"
                " reports its newest eight; add --anyway to send it all the same"
            )
    elif not known and name not in rows and not (ledger is not None and ledger.knows(name)):
        where = f", and may be below {below}: add --anyway to have it told there" if below else ""
        raise Missing(f"group {group} has no node {name} that was heard of here{where}")


def desired(node: AggregatorNode, now: Now, group: str, name: str) -> DesiredStateView:
    """Say what is wanted of a node, and who is to hear of it first."""
    set_desired, ledger = (
        node.desired_states(group_of(node, group)).get(name, DesiredState(name, 0)),
        node.ledger(group),
    )
    ways = {
        reported.by: reported.silent_s
        for reported in _all_alarms(ledger, now)
        if reported.alarm.node == name
    }
    if ledger is not None:
        for (who, incarnation), row in latest_row_per_node(ledger):
            if who == name and row.from_client:
                ways = {name: max(0.0, now.steady - ledger.heard[who, incarnation])}
    by = min(ways, key=lambda each: ways[each], default=None)
    return DesiredStateView(
        group,
        name,
        bool(set_desired.paused),
        {f"{name}-{number:x}": _word(accept) for number, accept in set_desired.verdicts},
        by,
        None if by is None else ways[by],
    )


# -- inside ----------------------------------------------------------------------------


def _all_alarms(ledger: Ledger | None, now: Now) -> Iterator[SurveyedAlarm]:
    """All that is told of alarms, by whoever tells of it."""
    if ledger is None:
        return
    for key, row in latest_row_per_node(ledger):
        silent = max(0.0, now.steady - ledger.heard[key])
        for alarm in row.report.alarms:
            yield SurveyedAlarm(alarm, key[0], silent)


def _view(group: str, reported: SurveyedAlarm, desired: DesiredState | None) -> AlarmView:
    alarm = reported.alarm
    asked = {} if desired is None else desired.judged
    wanted = _word(asked[alarm.number]) if alarm.number in asked else ""
    return AlarmView(
        group=group,
        id=alarm.name,
        node=alarm.node,
        open=alarm.is_open,
        began=alarm.began,
        peaked=alarm.peaked,
        ended=alarm.ended or None,
        worst=alarm.worst,
        cause=alarm.cause,
        top=dict(alarm.top),
        model=alarm.version,
        withheld=alarm.withheld,
        verdict=alarm.verdict,
        wanted="" if wanted == alarm.verdict else wanted,
        reported_by=reported.by,
        silent_s=reported.silent_s,
    )


def _word(accept: bool) -> Verdict:
    return "accepted" if accept else "rejected"
