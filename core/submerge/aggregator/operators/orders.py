"""What an operator orders, applied to an aggregator's groups.

A ban with one group's orders holds in all: an aggregator below may serve only some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from submerge.aggregator.group import Group
from submerge.aggregator.root import schema_with
from submerge.errors import SubmergeError
from submerge.protocol.desired_state import News
from submerge.protocol.machine import (
    Drop,
    Effect,
    Forget,
    Note,
    Now,
    SetBan,
    SetDesired,
    SetQuarantine,
    SettleLandmarks,
    settled_note,
)

FORGET_WITHIN_S = 86_400.0
"""An order to forget is carried out for a day. An aggregator that is new hears of all that was ever
ordered, and must not forget what a node has reported since."""

Order = Forget | Drop | SetQuarantine | SetDesired | SetBan | SettleLandmarks


def apply_order(groups: Mapping[str, Group], order: Order, now: Now, effects: list[Effect]) -> None:
    """Change what an order changes; an order for a node that is unknown becomes a note."""
    if isinstance(order, SetBan):
        _set_ban(groups.values(), order.node, now, banned=order.banned, again=True)
        return
    if isinstance(order, SettleLandmarks):
        if order.group in groups:
            effects.append(_settle_landmarks(groups[order.group], order))
        return
    group = groups.get(order.group)
    unknown = Note("unknown node", {"group": order.group, "node": order.node})
    if group is None:
        effects.append(unknown)
        return
    if isinstance(order, SetDesired):
        group.desired_states.set_desired(
            *(order.node, now.wall_ms),
            paused=order.paused,
            verdict=order.verdict,
            drill=order.drill,
            missed=order.missed,
            certificate=order.certificate,
        )
        return
    if isinstance(order, SetQuarantine):
        if order.quarantined:
            group.put_in_quarantine(order.node, "operator", now)
        else:
            group.open_floor(now)
            _release(groups.values(), group, order.node, now)
        group.desired_states.set_desired(order.node, now.wall_ms, quarantined=order.quarantined)
        return
    group.open_floor(now)
    if isinstance(order, Forget):
        if order.ban:
            _set_ban(groups.values(), order.node, now, banned=True, again=True)
        known = _forget(group, order.node, now)
        if _has_aggregators(group):
            group.desired_states.set_desired(order.node, now.wall_ms, forget=True)
        elif not known:
            effects.append(unknown)
        return
    if group.ledger is None or not group.ledger.knows(order.node):
        effects.append(unknown)  # a row is dropped where it is held
        return
    if order.old:
        group.ledger.drop_old(order.node, now)
    else:
        group.ledger.drop(order.node, order.incarnation, now)
    group.stir()


def _settle_landmarks(group: Group, order: SettleLandmarks) -> Note:
    """Settle a root's schema with landmarks, chosen among rows of the schema that it has."""
    facts = {"group": group.name, "landmarks": len(order.points)}
    if group.ledger is None or group.ledger.fingerprint != order.fingerprint:
        return Note("landmarks ignored", facts | {"why": "they are of another schema"})
    try:
        schema = schema_with(group.plan, group.ledger, order.points)
    except SubmergeError as error:
        return Note("landmarks refused", facts | {"why": str(error)})
    group.learn_schema(schema.canonical, 0.0)
    group.stir(now=True)  # the model's text is how nodes below hear of it
    note = settled_note(schema)
    return note._replace(facts=facts | note.facts)


def _has_aggregators(group: Group) -> bool:
    """Return whether a node that is unknown here may be further down."""
    return group.ledger is not None and any(
        not row.from_client for row in group.ledger.rows.values()
    )


def take_orders(
    groups: Mapping[str, Group], group: Group, news: Iterable[News], now: Now
) -> list[Note]:
    """Carry out what an aggregator does for nodes below it, as ordered above; note changes."""
    notes = []
    for held, desired in news:
        node, verbs = desired.node, list[str]()
        if desired.banned is not None or desired.quarantined is not None or desired.forget:
            group.open_floor(now)
        if desired.banned is not None:
            if any((node in each.banned) != desired.banned for each in groups.values()):
                verb = "ban" if desired.banned else "unban"
                notes.append(Note("order from above", {"verb": verb, "node": node}))
            _set_ban(groups.values(), node, now, banned=desired.banned)
        if desired.quarantined is not None and desired.quarantined != held.quarantined:
            verbs.append("quarantine" if desired.quarantined else "release")
            if desired.quarantined:
                group.put_in_quarantine(node, "operator", now)
            else:
                group.release(node)
        is_fresh = abs(now.wall - desired.forget / 1000) < FORGET_WITHIN_S
        if desired.forget > held.forget and is_fresh and _forget(group, node, now):
            verbs.append("forget")
        facts = {"group": group.name, "node": node}
        notes += [Note("order from above", {"verb": verb, **facts}) for verb in verbs]
    return notes


def _forget(group: Group, node: str, now: Now) -> bool:
    """Forget a node, if it reports here; return whether it did."""
    if group.ledger is None or not group.ledger.knows(node):
        return False
    group.ledger.forget(node, now)
    group.stir()
    return True


def keep_bans(groups: Mapping[str, Group], now: Now) -> None:
    """Apply the bans that a store holds to groups that it did not serve before."""
    states = [each for group in groups.values() for each in group.desired_states.by_node.values()]
    for node in sorted({each.node for each in states if each.banned}):
        _set_ban(groups.values(), node, now, banned=True)


def _release(groups: Iterable[Group], group: Group, node: str, now: Now) -> None:
    """End a node's quarantine in one group, and its ban in all."""
    if any(node in each.banned for each in groups):
        _set_ban(groups, node, now, banned=False)
    group.release(node)


def _set_ban(
    groups: Iterable[Group], node: str, now: Now, *, banned: bool, again: bool = False
) -> None:
    """Set a ban in all groups; `again`: a person orders it, and it goes down once more."""
    for group in groups:
        group.banned = group.banned | {node} if banned else group.banned - {node}
        held = group.desired_states.by_node.get(node)
        # What is set already gets no other number: it would go down again.
        if again or held is None or held.banned != banned:
            group.desired_states.set_desired(node, now.wall_ms, banned=banned)
