"""Alarm survey: what rows below tell of alarms, and who is to hear what an operator wants.

As in `survey`, all is asked on the desk's thread, and changes nothing. An alarm that two rows
tell of is one: a node that has moved is still spoken for where it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from submerge.aggregator.ledger import Ledger
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import census, spokesmen, vigil
from submerge.protocol.alarm_status import Alarm, Verdict
from submerge.protocol.desired_state import Wish
from submerge.protocol.machine import Now, Want
from submerge_aggregator.questions.alarm_views import AlarmView, GroupWatch, WatchView, WishView
from submerge_aggregator.questions.survey import Missing, group_of


class Told(NamedTuple):
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
        _view(each, told, node.wishes(each).get(told.alarm.node))
        for each in chosen
        for told in told_of(node.ledger(each), now)
        if (name is None or told.alarm.node == name) and (told.alarm.is_open or not open_only)
    ]
    return sorted(views, key=lambda view: (not view.open, -(view.ended or view.began), view.id))


def mark(node: AggregatorNode, group: str | None = None) -> str:
    """Return what changes when an alarm begins, or is over; and with each process.

    For those who look every second: of a thousand alarms that are over nobody wants to hear
    again and again.
    """
    chosen = node.groups if group is None else (group_of(node, group),)
    known = hash(
        frozenset(
            (each, alarm.node, alarm.number, alarm.ended)
            for each in chosen
            for alarm in _alarms(node.ledger(each))
        )
    )
    return f"{known & 0xFFFF_FFFF_FFFF_FFFF:x}"


def told_of(ledger: Ledger | None, now: Now) -> list[Told]:
    """Return every alarm that rows tell of, once."""
    known: dict[str, Told] = {}
    for told in _told(ledger, now):
        held = known.get(told.alarm.name)
        if held is None or held.rank < told.rank:
            known[told.alarm.name] = told
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
    said = None if ledger is None else vigil(ledger, wish=0)
    return None if said is None else WatchView.of(said)


def check(node: AggregatorNode, now: Now, want: Want, *, anyway: bool) -> None:
    """See that there is such a node, and such an alarm, as far as that can be known here.

    Raises
    ------
    Missing
        If there is not, or if nothing of it was ever told here, unless that is to be no matter.
    """
    group, name = group_of(node, want.group), want.node
    ledger = node.ledger(group)
    rows = {} if ledger is None else {who: row for (who, _), row in spokesmen(ledger)}
    if name in rows and not rows[name].from_client:
        raise Missing(f"{name} is an aggregator, and learns nothing itself: name a node below it")
    if anyway:
        return
    below = ", ".join(sorted(who for who, row in rows.items() if not row.from_client))
    known = [told.alarm for told in told_of(ledger, now) if told.alarm.node == name]
    if want.verdict is not None:
        if want.verdict[0] not in (alarm.number for alarm in known):
            newest = f"; of {name} there are {', '.join(a.name for a in known)}" if known else ""
            raise Missing(
                f"nobody tells of alarm {name}-{want.verdict[0]:x} here{newest}: a node tells of"
                " its newest eight; add --anyway to have it told all the same"
            )
    elif not known and name not in rows and not (ledger is not None and ledger.knows(name)):
        where = f", and may be below {below}: add --anyway to have it told there" if below else ""
        raise Missing(f"group {group} has no node {name} that was heard of here{where}")


def wish(node: AggregatorNode, now: Now, group: str, name: str) -> WishView:
    """Say what is wanted of a node, and who is to hear of it first."""
    want, ledger = node.wishes(group_of(node, group)).get(name, Wish(name, 0)), node.ledger(group)
    ways = {told.by: told.silent_s for told in _told(ledger, now) if told.alarm.node == name}
    if ledger is not None:
        for (who, incarnation), row in spokesmen(ledger):
            if who == name and row.from_client:
                ways = {name: max(0.0, now.steady - ledger.heard[who, incarnation])}
    by = min(ways, key=lambda each: ways[each], default=None)
    return WishView(
        group,
        name,
        bool(want.paused),
        {f"{name}-{number:x}": _word(accept) for number, accept in want.verdicts},
        by,
        None if by is None else ways[by],
    )


# -- inside ----------------------------------------------------------------------------


def _told(ledger: Ledger | None, now: Now) -> Iterator[Told]:
    """All that is told of alarms, by whoever tells of it."""
    if ledger is None:
        return
    for key, row in spokesmen(ledger):
        said, silent = row.report.vigil, max(0.0, now.steady - ledger.heard[key])
        for alarm in () if said is None else said.alarms:
            yield Told(alarm, key[0], silent)


def _alarms(ledger: Ledger | None) -> Iterator[Alarm]:
    """As `_told`, whoever tells of them."""
    for _, row in () if ledger is None else spokesmen(ledger):
        if row.report.vigil is not None:
            yield from row.report.vigil.alarms


def _view(group: str, told: Told, wish: Wish | None) -> AlarmView:
    alarm = told.alarm
    asked = {} if wish is None else wish.judged
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
        told_by=told.by,
        silent_s=told.silent_s,
    )


def _word(accept: bool) -> Verdict:
    return "accepted" if accept else "rejected"
