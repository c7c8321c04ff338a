"""What an operator orders, applied to an aggregator's groups.

A ban is the node's, not a group's: it holds in every group, of which an aggregator below may serve
only some. So it is set in the desired states of all groups, and an aggregator that receives it
with one group's applies it to all of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from submerge.aggregator.group import Group
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import (
    Drop,
    Effect,
    Forget,
    Note,
    Now,
    SetBan,
    SetDesired,
    SetQuarantine,
)

Order = Forget | Drop | SetQuarantine | SetDesired | SetBan


def apply_order(groups: Mapping[str, Group], order: Order, now: Now, effects: list[Effect]) -> None:
    """Change what an order changes; an order for a node that is unknown becomes a note."""
    if isinstance(order, SetBan):
        _set_ban(groups.values(), order.node, now, banned=order.banned, again=True)
        return
    group = groups.get(order.group)
    if isinstance(order, SetDesired):
        if group is not None:
            group.desired_states.set_desired(
                order.node,
                now.wall_ms,
                paused=order.paused,
                verdict=order.verdict,
                drill=order.drill,
            )
        return
    if isinstance(order, SetQuarantine):
        if group is not None and order.quarantined:
            group.put_in_quarantine(order.node, "operator", now)
        elif group is not None:
            _release(groups.values(), group, order.node, now)
        return
    if group is not None and isinstance(order, Forget) and order.ban:
        _set_ban(groups.values(), order.node, now, banned=True, again=True)
    if group is None or group.ledger is None or not group.ledger.knows(order.node):
        # It may be further down: the order has to be given where the node reports.
        effects.append(Note("unknown node", {"group": order.group, "node": order.node}))
        return
    if isinstance(order, Drop) and order.old:
        group.ledger.drop_old(order.node, now)
    elif isinstance(order, Drop):
        group.ledger.drop(order.node, order.incarnation, now)
    else:
        group.ledger.forget(order.node, now)
    group.stir()


def take_bans(
    groups: Mapping[str, Group], desired_states: Iterable[DesiredState], now: Now
) -> list[Note]:
    """Apply the bans among desired states that came from above, to all groups; note changes."""
    notes = []
    for desired in desired_states:
        node, banned = desired.node, desired.banned
        if banned is None:
            continue
        if any((node in group.banned) != banned for group in groups.values()):
            verb = "ban" if banned else "unban"
            notes.append(Note("order from above", {"verb": verb, "node": node}))
        _set_ban(groups.values(), node, now, banned=banned)
    return notes


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
