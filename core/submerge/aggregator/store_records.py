"""StoreRecords: what an aggregator's store holds, and what of it has to be written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from submerge.aggregator.group import Group
from submerge.protocol.machine import Keep, Key, Records
from submerge.protocol.messages import Incarnation, Pin

STORE = ("store",)
"""The record of the store's identity."""


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """The store's incarnation, and the parent that it belongs to; None for a root's."""

    incarnation: Incarnation
    pin: Pin | None


class StoreRecords:
    """What a store holds, beside rows and histories.

    kept : As the store was opened.
    is_new : Whether another store begins with the next write.
    """

    def __init__(self, kept: Records | None = None, *, is_new: bool = False) -> None:
        self._known: Records = {} if kept is None else kept
        self._is_new = is_new

    def keep(self, identity: StoreIdentity | None, groups: Iterable[Group]) -> Keep | None:
        """Return the write of all changes; None if nothing has changed.

        identity : None while the store has no parent yet
        """
        writes: dict[Key, Any] = {}
        held: dict[Key, Any] = {}
        if identity is not None:
            held[STORE] = identity
            for group in groups:
                held |= group.records()
                writes |= group.take_changes()
        else:
            # A store without a parent holds nothing yet, except bans and other orders.
            for group in groups:
                held |= {k: v for k, v in group.orders().items() if v or k in self._known}
        writes |= {key: new for key, new in held.items() if self._known.get(key) != new}
        self._known = {**self._known, **held} if identity is None else held
        if not writes and not self._is_new:
            return None
        keep, self._is_new = Keep(writes, new_store=self._is_new), False
        return keep
