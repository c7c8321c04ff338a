"""BatchEntries: what a batch of the commit worker has to record, held until it is committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from submerge.aggregator.self_check import UNSENT
from submerge.protocol.machine import Note
from submerge.protocol.messages import Join, Joined, Message, Reason
from submerge.protocol.permission import Permission
from submerge_aggregator.audit.log import Record
from submerge_aggregator.downlink import Inbound

AGAIN_S = 3600.0
"""The same node from the same address is recorded again after so long."""

MOST_KNOWN = 65_536
"""Joins that are remembered; of more, the oldest is forgotten."""

NOTED = {
    "node quarantined": "quarantine",
    "quarantine is full": "quarantine",
    "new store": "store",
    "order from above": "ban",
    **dict.fromkeys(UNSENT.values(), "model"),
}
"""Notes of the machine that are recorded, and as which event."""


class BatchEntries:
    """Entries of one batch at a time."""

    def __init__(self, record: Record, steady: Callable[[], float]) -> None:
        self._record, self._steady = record, steady
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        self._known: dict[tuple[str, ...], float] = {}

    def add_join(self, join: Message, answer: Joined, inbound: Inbound | None) -> None:
        """Take a join, if it was accepted."""
        if answer.reason is not Reason.ACK or inbound is None or not isinstance(join, Join):
            return
        stamp, address = join.stamp, inbound.peer
        host = address.rpartition(":")[0]  # each connection has another port
        known = stamp.node, stamp.group, str(stamp.incarnation), host
        now = self._steady()
        if self._known.get(known, -AGAIN_S) + AGAIN_S > now:
            return
        self._known.pop(known, None)
        self._known[known] = now
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        facts: dict[str, Any] = {
            "node": stamp.node,
            "group": stamp.group,
            # An aggregator shows a fence; a certificate may say more, below.
            "kind": "aggregator" if join.fence else "client",
            "incarnation": str(stamp.incarnation),
            "address": address or ("broker" if inbound.shared else "unknown"),
        }
        if join.share_points:
            # Readings of this node may come up as they are.
            facts["share_points"] = join.share_points
        identity = inbound.identity
        permission = Permission.of(identity.uris)  # admitted, so it can be read
        if permission is not None:
            facts |= {"role": permission.role, "groups": permission.groups}
        if identity.serial is not None:
            facts["serial"] = f"{identity.serial:040X}"
        self._waiting.append(("join", facts))

    def add_note(self, note: Note) -> None:
        """Take a note of the machine."""
        event = NOTED.get(note.what)
        if event is not None:
            self._waiting.append((event, {"what": note.what, **note.facts}))

    def commit(self) -> None:
        """Record all of it: it is on disk."""
        waiting, self._waiting = self._waiting, []
        for event, facts in waiting:
            self._record(event, **facts)

    def drop(self) -> None:
        """Forget all of it: it has not happened."""
        self._waiting.clear()
        self._known.clear()
