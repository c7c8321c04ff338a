"""Handshakes: counts TLS handshakes that came to nothing.

gRPC reports that a handshake begins, and where a call comes from. It does not report that a
handshake has failed: without a certificate, with an untrusted one, or because the other end spoke
no TLS. So a handshake counts as failed if no call of a new connection follows. A call takes the
newest open handshake: it follows within a round trip, while failed ones grow old. Once all is
quiet the number is exact. A probe that connects and sends nothing counts as failed.
"""

from __future__ import annotations

from collections import Counter

PATIENCE_S = 20.0
"""From a handshake to the first call, on the slowest of lines; gRPC waits no longer for a
handshake."""

LIFE_S = 4000.0
"""Each connection ends after an hour: later its address belongs to another one."""

MOST_KNOWN = 65_536
"""Connections remembered; of more, the one that called first is dropped."""


class Handshakes:
    """Handshakes that began, and those that failed. Time is an argument."""

    def __init__(self) -> None:
        self._seen = 0
        self._open: list[tuple[float, int]] = []  # since when, and how many; oldest first
        self._known: dict[str, float] = {}
        self._watches: Counter[str] = Counter()

    def note_call(self, peer: str, begun: int, at: float) -> None:
        """Note a call from an address; `begun` handshakes have begun by now."""
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

    def note_stream(self, peer: str) -> None:
        """Note an open stream: while one is open, so is its connection."""
        self._watches[peer] += 1

    def note_stream_end(self, peer: str) -> None:
        """Note the end of a stream; after the last one the connection may be gone."""
        self._watches[peer] -= 1
        if not self._watches[peer]:
            del self._watches[peer]
            self._known.pop(peer, None)

    def take_failed(self, begun: int, at: float) -> int:
        """Return how many have failed since the last time."""
        self._note(begun, at)
        count = 0
        while self._open and self._open[0][0] <= at - PATIENCE_S:
            count += self._open.pop(0)[1]
        return count

    def _note(self, begun: int, at: float) -> None:
        if begun > self._seen:
            self._open.append((at, begun - self._seen))
            self._seen = begun
