"""Handshakes: connections that were begun with TLS, and those of which nothing came.

gRPC says that a handshake begins, and of a call, from where it comes. It does not say that a
handshake has failed: without a certificate, with one that nobody here trusts, or because the
other end spoke no TLS. So we count as vain what was begun and not followed by a call of a new
connection. A call takes the newest that is open: it follows within a round trip, while what
came to nothing grows old. Once all is quiet the number is exact; a probe that connects and
says nothing is one of them.
"""

from __future__ import annotations

from collections import Counter

PATIENCE_S = 20.0
"""From a handshake to the first call, on the slowest of lines; longer than that gRPC waits for
no handshake."""

LIFE_S = 4000.0
"""A connection is begun anew each hour: later it is another one with the same number."""

MOST_KNOWN = 65_536
"""Connections remembered; of more, the one that called first falls out."""


class Handshakes:
    """What was begun, and what came of it. Time is an argument."""

    def __init__(self) -> None:
        self._seen = 0
        self._open: list[tuple[float, int]] = []  # since when, and how many; the oldest first
        self._known: dict[str, float] = {}
        self._watches: Counter[str] = Counter()

    def called(self, peer: str, begun: int, at: float) -> None:
        """Take note of a call from somewhere, `begun` handshakes having begun by now."""
        self._note(begun, at)
        since = self._known.get(peer)
        if since is not None and at < since + LIFE_S:
            return
        self._known.pop(peer, None)
        self._known[peer] = at
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        if self._open:
            since, count = self._open.pop()
            if count > 1:
                self._open.append((since, count - 1))

    def watches(self, peer: str) -> None:
        """Take note that a stream is open: while one is, so is its connection."""
        self._watches[peer] += 1

    def parts(self, peer: str) -> None:
        """Take note that a stream has ended; with the last one the connection may have."""
        self._watches[peer] -= 1
        if not self._watches[peer]:
            del self._watches[peer]
            self._known.pop(peer, None)

    def vain(self, begun: int, at: float) -> int:
        """Return how many have come to nothing since the last time."""
        self._note(begun, at)
        count = 0
        while self._open and self._open[0][0] <= at - PATIENCE_S:
            count += self._open.pop(0)[1]
        return count

    def _note(self, begun: int, at: float) -> None:
        if begun > self._seen:
            self._open.append((at, begun - self._seen))
            self._seen = begun
