"""Alarm survey: the alarms that rows report, and the desired states of nodes; as in `survey`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from submerge.aggregator.alarms.below import ReportedAlarm, alarm_status, alarms_below
from submerge.aggregator.alarms.disputes import LeftOutAlarm
from submerge.aggregator.alarms.incidents import NO_RATES, AlarmRates, incidents
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import census, latest_row_per_node
from submerge.aggregator.rows.ledger import Ledger
from submerge.client.alarms.limits import OtherRate, other_rate
from submerge.errors import UsageError
from submerge.protocol.alarm_status import Verdict, places
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Now, SetDesired
from submerge.protocol.score_trail import NOTHING, STEPS, share_of
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.statistic import STATISTICS, raised_by
from submerge_aggregator.questions.survey import Missing, group_of, newest_model
from submerge_aggregator.questions.views import (
    AlarmView,
    DesiredStateView,
    GroupWatch,
    LeftOutView,
    Outcome,
    WatchView,
    WhatIfAlarm,
    WhatIfView,
)
from submerge_client.alarms.event import facts


def alarms(
    node: AggregatorNode,
    now: Now,
    group: str | None = None,
    name: str | None = None,
    *,
    open_only: bool = False,
) -> list[AlarmView]:
    """Return incidents and alarms of one group, or of all: open ones first, then the newest."""
    chosen = node.groups if group is None else (group_of(node, group),)
    views = list[AlarmView]()
    for each in chosen:
        ledger, desired = node.ledger(each), node.desired_states(each)
        found = with_incidents(survey_alarms(ledger, now), survey_rates(ledger, now))
        views += [
            view_of(each, one, desired.get(one.alarm.node), incident)
            for one, incident in found
            if name is None or (one.alarm.node == name and not one.alarm.parts)
            if one.alarm.is_open or not open_only
        ]
    return sorted(views, key=lambda view: (not view.open, -(view.ended or view.began), view.id))


def mark(node: AggregatorNode, now: Now, group: str | None = None) -> str:
    """Return a text that changes when an alarm comes, goes or gets a new revision."""
    known = blake2b(digest_size=8)
    for each in sorted(node.groups if group is None else (group_of(node, group),)):
        revisions = {found.alarm.revision for found in survey_alarms(node.ledger(each), now)}
        known.update(b"".join((each.encode(), b"\n", *sorted(revisions))))
    return known.hexdigest()


def survey_alarms(ledger: Ledger | None, now: Now) -> tuple[ReportedAlarm, ...]:
    """Return every alarm that rows report, once."""
    return () if ledger is None else alarms_below(ledger, now).believed


def survey_rates(ledger: Ledger | None, now: Now) -> AlarmRates:
    if ledger is None:
        return NO_RATES
    return AlarmRates.of(alarm_status(ledger, now, desired=0))._replace(flow=ledger.flow)


def with_incidents(
    found: Sequence[ReportedAlarm], rates: AlarmRates
) -> list[tuple[ReportedAlarm, str]]:
    """Return incidents, each reported as its first alarm is, and alarms with their incident."""
    by_name = {each.alarm.name: each for each in found}
    whole = [
        by_name[each.leader]._replace(alarm=each, denied_by=())
        for each in incidents((each.alarm for each in found), rates)
    ]
    of = {part.name: each.alarm.name for each in whole for part in each.alarm.parts}
    return [(each, of.get(each.alarm.name, "")) for each in (*whole, *found)]


def in_order_of_places(surveyed: Sequence[ReportedAlarm]) -> list[ReportedAlarm]:
    """Return alarms in the order in which they get places where there is no room for all."""
    of_child: dict[str, list[ReportedAlarm]] = {}
    for each in surveyed:
        of_child.setdefault(each.by, []).append(each)
    named = {(each.by, each.alarm.name): each for each in surveyed}
    chains = list(of_child)
    ranked = places([found.alarm for found in of_child[child]] for child in chains)
    return [named[chains[index], alarm.name] for index, alarm in ranked]


def group_watches(node: AggregatorNode, now: Now, group: str | None = None) -> list[GroupWatch]:
    chosen = node.groups if group is None else (group_of(node, group),)
    return [
        GroupWatch(
            each,
            0 if ledger is None else census(ledger, now).nodes,
            watch(ledger, now, sum(d.faults_missed for d in node.desired_states(each).values())),
            () if ledger is None else tuple(map(_left_out, alarms_below(ledger, now).left_out)),
            1.0 if model is None else model.widened,
            "" if (waiting := node.waiting(each)) is None else waiting.words,
            0 if waiting is None else waiting.of - waiting.rows,
        )
        for each in sorted(chosen)
        for ledger, model in ((node.ledger(each), node.model(each)),)
    ]


def watch(ledger: Ledger | None, now: Now, missed: int = 0) -> WatchView | None:
    """Return the alarm status of all below together; None while no node reports one."""
    said = None if ledger is None else alarm_status(ledger, now, desired=0)
    return None if said is None else WatchView.of(said, missed)


class Rated(NamedTuple):
    """What another rate would do to the limits of a group, and of its nodes that report here."""

    promised_per_s: float
    whole: OtherRate | None
    nodes: dict[str, OtherRate]

    def outcome(self, alarm: AlarmView, level: int) -> Outcome:
        """Return what an alarm would have been whose rows came to a level of its score trail."""
        rated, share = self.nodes.get(alarm.node, self.whole), share_of(level)
        if alarm.cause not in STATISTICS:
            return "raised"  # of a stuck channel, and the like, there is no limit
        if rated is None or share is None:
            return "cannot be told"
        factors, half = rated.factors.values(), 2 ** (0.5 / STEPS)
        if share > max(factors) * half:
            return "raised"
        return "not raised" if share * half <= min(factors) else "cannot be told"

    def view(
        self, group: str, alarms: Iterable[AlarmView], levels: Mapping[str, int]
    ) -> WhatIfView:
        found = [
            WhatIfAlarm(each.id, each.verdict, self.outcome(each, levels.get(each.id, NOTHING)))
            for each in alarms
        ]
        if self.whole is None:
            return WhatIfView(group, 0.0, [])
        return WhatIfView(group, self.promised_per_s, found, self.whole.more, self.whole.span_s)


def at_rate(node: AggregatorNode, now: Now, group: str, per_s: float) -> Rated:
    """Return what limits would be if each node allowed so many false alarms a second."""
    model, ledger = newest_model(node, group), node.ledger(group)
    kinds, promised = raised_by(factors=bool(model.factors)), survey_rates(ledger, now).promised

    def rated(promised: float, own: BlockMaxima | None = None) -> OtherRate | None:
        if not promised:
            return None
        return other_rate(model.maxima, AlarmSettings(promised), per_s, kinds, own)

    nodes = dict[str, OtherRate]()
    for (name, _), row in () if ledger is None else latest_row_per_node(ledger):
        status, scores = row.report.alarm_status, row.report.scores
        if row.from_client and status is not None and status.watched_s and scores is not None:
            each = rated(status.allowed / status.watched_s, scores.maxima)
            nodes |= {} if each is None else {name: each}
    return Rated(promised, rated(promised), nodes)


def check(node: AggregatorNode, now: Now, set_desired: SetDesired, *, anyway: bool) -> None:
    """Check that node and alarm exist, as far as known here; `anyway`: unknown ones pass."""
    group, name = group_of(node, set_desired.group), set_desired.node
    ledger = node.ledger(group)
    rows = {} if ledger is None else {who: row for (who, _), row in latest_row_per_node(ledger)}
    if name in rows and not rows[name].from_client and not set_desired.certificate:
        raise Missing(f"{name} is an aggregator, and learns nothing itself: name a node below it")
    channel = "" if set_desired.missed is None else set_desired.missed.channel
    if channel and ledger is not None and channel not in ledger.schema.names:
        some = ", ".join(ledger.schema.names[:8])
        raise UsageError(f"group {group} has no channel {channel!r}, but {some}")
    if anyway:
        return
    below = ", ".join(sorted(who for who, row in rows.items() if not row.from_client))
    known = [found.alarm for found in survey_alarms(ledger, now) if found.alarm.node == name]
    if set_desired.verdict is not None:
        if set_desired.verdict[0] not in (alarm.number for alarm in known):
            newest = f"; of {name} there are {', '.join(a.name for a in known)}" if known else ""
            raise Missing(
                f"no node reports alarm {name}-{set_desired.verdict[0]:x} here{newest}: a node"
                " reports its newest eight; add --anyway to send it all the same"
            )
    elif not known and name not in rows and not (ledger is not None and ledger.knows(name)):
        where = f", and may be below {below}: add --anyway to send it there" if below else ""
        raise Missing(f"no node {name} of group {group} has reported here{where}")


def desired_state(node: AggregatorNode, now: Now, group: str, name: str) -> DesiredStateView:
    """Return the desired state of a node, and which node below gets it first."""
    desired = node.desired_states(group_of(node, group)).get(name, DesiredState(name, 0))
    ledger = node.ledger(group)
    ways = {
        found.by: found.silent_s for found in survey_alarms(ledger, now) if found.alarm.node == name
    }
    if ledger is not None:
        for (who, incarnation), _ in latest_row_per_node(ledger):
            if who == name:
                ways = {name: max(0.0, now.steady - ledger.presence.heard[who, incarnation])}
    by = min(ways, key=lambda each: ways[each], default=None)
    return DesiredStateView(
        group,
        name,
        bool(desired.paused),
        {f"{name}-{number:x}": _word(accept) for number, accept in desired.verdicts},
        by,
        None if by is None else ways[by],
        [each._asdict() for each in desired.missed],
    )


def view_of(
    group: str, found: ReportedAlarm, desired: DesiredState | None, incident: str = ""
) -> AlarmView:
    alarm = found.alarm
    verdicts = {} if desired is None or alarm.parts else desired.accepted
    wanted = _word(verdicts[alarm.number]) if alarm.number in verdicts else ""
    return AlarmView(
        **facts(alarm, group),
        open=alarm.is_open,
        wanted="" if wanted == alarm.verdict else wanted,
        reported_by=found.by,
        silent_s=found.silent_s,
        denied_by=found.denied_by,
        incident=incident,
    )


def _left_out(each: LeftOutAlarm) -> LeftOutView:
    return LeftOutView(each.alarm.name, each.alarm.node, each.alarm.is_open, each.by, each.why)


def _word(accept: bool) -> Verdict:
    return "accepted" if accept else "rejected"
