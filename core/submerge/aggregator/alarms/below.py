"""The alarms of all nodes below, and which child is believed about each.

The rules, and why they are these: docs/alarms-explained.md, "Whose word counts".
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from submerge.aggregator.alarms.disputes import LeftOutAlarm, LeftOutWhy
from submerge.aggregator.rollup import latest_row_per_node
from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.pool import Row
from submerge.aggregator.rows.presence import Presence
from submerge.protocol.alarm_status import (
    MOST_OF_NODE,
    MOST_WIDENED,
    Alarm,
    AlarmStatus,
    TypicalAlarms,
    chosen,
    most_of_each_node,
    pooled,
)
from submerge.protocol.machine import Note, Now
from submerge.protocol.messages import Incarnation, Report
from submerge.stats.block_maxima import EACH, LEAST_NODES, surely_more

# No single machine can buy silence so.

TAIL = 5.0
"""Logarithm of the blocks for each of which a limit is exceeded once: 168 hours of a week. In an
exponential tail, m times as many exceed a limit that is ln(m) / TAIL lower."""


def typical_allowance(rows: Iterable[Row]) -> float:
    """Return the most false alarms that count as promised to one client: the clients' median."""
    # A client says itself how long it watched. By a long time it could outweigh all others.
    said = [row.report.alarm_status for row in rows if row.from_client]
    allowed = [status.allowed for status in said if status is not None and status.allowed > 0]
    return statistics.median(allowed) if allowed else math.inf


def typical_alarms(row: Row, *, left_out: bool, usual: float = math.inf) -> TypicalAlarms:
    """Return the alarms of a child that count; one that was promised more counts for a part."""
    status = row.report.alarm_status
    if status is None or left_out:
        return TypicalAlarms()
    if not row.from_client:
        return status.typical
    unconfirmed = max(status.raised - status.confirmed, 0)
    promised = min(status.allowed, usual)
    if promised < status.allowed:
        unconfirmed = math.floor(unconfirmed * (promised / status.allowed))
    counted = min(unconfirmed, 1 + math.floor(EACH * promised))
    return TypicalAlarms(promised, counted, int(counted > 0))


def widening(status: AlarmStatus | None) -> float:
    """Return the factor on a group's limits: 1 to `MOST_WIDENED`."""
    if status is None or status.typical.nodes < LEAST_NODES:
        return 1.0
    typical = status.typical
    more = surely_more(typical.unconfirmed, typical.promised)
    return min(MOST_WIDENED, 1 + math.log(more) / TAIL)


class ReportedAlarm(NamedTuple):
    alarm: Alarm
    by: str
    silent_s: float
    heard: bool = True  # whether its node was, in the last three report intervals
    denied_by: tuple[str, ...] = ()  # children that report it otherwise, and are not believed


class AlarmsBelow(NamedTuple):
    """The alarms that all children of a group report; if `disputed`, time alone may change them."""

    believed: tuple[ReportedAlarm, ...]
    left_out: tuple[LeftOutAlarm, ...]
    disputed: bool


class _Claim(NamedTuple):
    """What a child reports of one node, heard of lately or not, that may be `itself`."""

    by: str
    alarms: tuple[ReportedAlarm, ...]
    heard: bool
    itself: bool


def alarms_below(ledger: Ledger, now: Now) -> AlarmsBelow:
    """Return the alarms that the rows report, and those that are left out."""
    left_out: list[LeftOutAlarm] = []
    latest = latest_row_per_node(ledger)
    claims = _claims(latest, ledger.presence, now, left_out)
    aggregators = {child for (child, _), row in latest if not row.from_client}
    believed: list[ReportedAlarm] = []
    disputed = False
    for node, of_node in claims.items():
        if node in aggregators:
            left_out += _all_left_out(of_node, "an aggregator raises no alarms")
        elif len(of_node) == 1:
            believed += of_node[0].alarms
        else:
            disputed = True
            believed += _settled(of_node, left_out)
    return AlarmsBelow(tuple(believed), tuple(left_out), disputed)


def alarm_status(ledger: Ledger, now: Now, *, desired: int) -> AlarmStatus | None:
    """Add up the alarm statuses of the nodes, of each the latest."""
    below = alarms_below(ledger, now)
    of_child: dict[str, dict[str, ReportedAlarm]] = {}
    for each in below.believed:
        of_child.setdefault(each.by, {})[each.alarm.name] = each
    left_out, latest = ledger.left_out, latest_row_per_node(ledger)
    usual = typical_allowance(row for _, row in latest)
    parts = [
        replace(
            _part(status, of_child.get(child, {})),
            typical=typical_alarms(row, left_out=child in left_out, usual=usual),
        )
        for (child, _), row in latest
        for status in (row.report.alarm_status,)
        if status is not None
    ]
    if not parts and not desired:
        return None
    whole = pooled(parts, desired=desired)
    heard = {each.alarm.node for each in below.believed if each.heard}
    listed = {alarm.node for alarm in whole.alarms} - heard
    silences: dict[str, int] = {}
    for each in below.believed:
        node = each.alarm.node
        if node in listed:
            silences[node] = min(int(each.silent_s), silences.get(node, int(each.silent_s)))
    return replace(whole, silent=tuple(sorted(silences.items())))


def dispute_notes(ledger: Ledger, report: Report, now: Now) -> list[Note]:
    """Count what a child reports and is not believed about; return a note, if it is time for it."""
    node, disputes = report.stamp.node, ledger.disputes
    left_out: Iterable[LeftOutAlarm] = ()
    if report.fence or len(report.alarms) > MOST_OF_NODE:
        left_out = (each for each in alarms_below(ledger, now).left_out if each.by == node)
    return disputes.take(ledger.group, node, left_out, now)


def _claims(
    latest: Iterable[tuple[tuple[str, Incarnation], Row]],
    presence: Presence,
    now: Now,
    left_out: list[LeftOutAlarm],
) -> dict[str, list[_Claim]]:
    """Return by nodes what the children report; add what is too much for one node."""
    claims: dict[str, list[_Claim]] = {}
    quiet: list[tuple[str, Incarnation]] = []
    for key, row in latest:
        status, child = row.report.alarm_status, key[0]
        if status is None or not status.alarms:
            # Most children have no alarm: they count only where another says that they have.
            quiet += [key] if row.from_client else []
            continue
        silent_s = presence.unheard(*key, now.steady)
        is_silent = presence.is_silent(*key, now.steady)
        before = {} if row.from_client else dict(status.silent)
        kept, excess = most_of_each_node(status.alarms)
        left_out += [LeftOutAlarm(each, child, "a node has nine alarms at most") for each in excess]
        of_nodes: dict[str, list[Alarm]] = {}
        for alarm in kept:
            of_nodes.setdefault(alarm.node, []).append(alarm)
        for node, alarms in of_nodes.items():
            # Who is nearer to the node knows how often it reports.
            heard, unheard_s = not (is_silent or node in before), silent_s + before.get(node, 0)
            reported = tuple(ReportedAlarm(alarm, child, unheard_s, heard) for alarm in alarms)
            claim = _Claim(child, reported, heard, node == child)
            claims.setdefault(node, []).append(claim)
    for key in quiet:
        if key[0] in claims:
            heard = not presence.is_silent(*key, now.steady)
            claims[key[0]].append(_Claim(key[0], (), heard, itself=True))
    return claims


def _settled(claims: list[_Claim], left_out: list[LeftOutAlarm]) -> list[ReportedAlarm]:
    """Return what is believed of one node that several children report; add what is not."""
    itself = [claim for claim in claims if claim.itself and claim.heard]
    if itself:
        own = {(each.alarm.name, each.alarm.is_open) for each in itself[0].alarms}
        others = [claim for claim in claims if claim.heard and not claim.itself]
        denied = [
            each
            for each in _all_left_out(others, "its node reports here, and says otherwise")
            if (each.alarm.name, each.alarm.is_open) not in own
        ]
        left_out += denied
        return [each._replace(denied_by=_by(denied, each.alarm)) for each in itself[0].alarms]
    by_name: dict[str, list[ReportedAlarm]] = {}
    for claim in claims:
        for each in claim.alarms:
            by_name.setdefault(each.alarm.name, []).append(each)
    found = [_one(several, left_out) for several in by_name.values()]
    if len(found) <= MOST_OF_NODE:
        return found
    # The parent takes so many of a node from one child, and does not know who below reports what.
    chains = [[each.alarm for each in found if each.by == claim.by] for claim in claims]
    kept = {alarm.name for alarm in chosen(chains, MOST_OF_NODE)}
    return [each for each in found if each.alarm.name in kept]


def _one(several: list[ReportedAlarm], left_out: list[LeftOutAlarm]) -> ReportedAlarm:
    open_ones = [each for each in several if each.alarm.is_open and each.heard]
    if not open_ones:
        # Over wins over open: those who say that it is open were not heard.
        return max(several, key=_rank)
    best = max(open_ones, key=_rank)
    denying = [each for each in several if not each.alarm.is_open and each.heard]
    why: LeftOutWhy = "another child says that it is open"
    left_out += [LeftOutAlarm(each.alarm, each.by, why) for each in denying]
    return best._replace(denied_by=tuple(sorted(each.by for each in denying)))


def _by(denied: list[LeftOutAlarm], alarm: Alarm) -> tuple[str, ...]:
    return tuple(sorted(each.by for each in denied if each.alarm.name == alarm.name))


def _rank(each: ReportedAlarm) -> tuple[bool, float, int]:
    """Return the order of two reports of one alarm: the greater is right."""
    return not each.alarm.is_open, -each.silent_s, each.alarm.withheld


def _all_left_out(claims: Iterable[_Claim], why: LeftOutWhy) -> list[LeftOutAlarm]:
    return [LeftOutAlarm(each.alarm, each.by, why) for claim in claims for each in claim.alarms]


def _part(status: AlarmStatus, believed: dict[str, ReportedAlarm]) -> AlarmStatus:
    """Return a child's status with the alarms of it that are believed."""
    kept = tuple(
        alarm
        for alarm in status.alarms
        if alarm.name in believed and alarm == believed[alarm.name].alarm
    )
    if kept == status.alarms:
        return status
    missing = sum(each.is_serious for each in status.alarms if each not in kept)
    return replace(status, alarms=kept, open=max(status.open - missing, 0))
