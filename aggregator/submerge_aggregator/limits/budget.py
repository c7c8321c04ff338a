"""MessageBudget: the bytes of messages that wait, over all senders and for each of them.

A sender may hold a share of it, so one that floods leaves room for the others. A message that
finds no room is refused at once: its sender keeps it, and asks again.
"""

from __future__ import annotations

SHARES = 8
"""One sender holds at most an eighth, and always one message. The last eighth of all is for short
messages."""

SHORT = 16 << 10
"""Bytes of a short message; a typical report has fewer than half of them."""


MOST_BYTES = 16 << 20
"""Bytes of messages that wait, if nothing else is configured."""


class MessageBudget:
    """Bytes that messages hold.

    limit : Most bytes, over all senders.

    used : Bytes that are held now.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0
        self._held: dict[str, int] = {}

    def takes(self, who: str, size: int) -> bool:
        """Hold so many bytes for a sender; return whether there was room."""
        share, held = self.limit // SHARES, self._held.get(who, 0)
        room = self.limit - self.used - (share if size > SHORT else 0)
        if size > room or (held and held + size > share):
            return False
        self.used += size
        self._held[who] = held + size
        return True

    def release(self, who: str, size: int) -> None:
        """Give back what a message held."""
        self.used -= size
        left = self._held.pop(who, 0) - size
        if left:
            self._held[who] = left
