"""RateLimit: a token bucket for each child, and a bounded number of buckets.

A bucket holds `burst` tokens, and gains `most_per_s` in a second. A message takes one, and one
more for each PIECE of it: long messages take memory, and time to check. So a child that returns
from an outage can send all it has at once, and one that has gone wild is held to the rate, and
costs the others nothing. Time is an argument.

Memory is bounded: of MOST_BUCKETS the one unused for longest is dropped. A bucket that was unused
for `burst / most_per_s` seconds is full, as a new one is, so dropping it loses nothing.
"""

from __future__ import annotations

MOST_BUCKETS = 65_536
"""As many as watches: more children than one aggregator serves. 20 MiB when all are in use."""

PIECE = 8192
"""Bytes, more than a typical report. The worst message of 4 MiB takes half a second to check. So
a sender can cause that at most twice at once, and then each half a minute."""


class RateLimit:
    """A bucket for each sender.

    most_per_s : Messages a second that each may send without end.
    burst : Messages at once, from one that was quiet.
    most : Most buckets.
    """

    def __init__(self, most_per_s: float, burst: int, *, most: int = MOST_BUCKETS) -> None:
        self._rate, self._burst, self._most = most_per_s, burst, most
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens, and when; idle ones first

    def __len__(self) -> int:
        """Return how many buckets there are."""
        return len(self._buckets)

    def has(self, who: str, at: float) -> bool:
        """Return whether there is a token, without taking it."""
        tokens, since = self._buckets.get(who, (float(self._burst), at))
        return tokens + (at - since) * self._rate >= 1

    def takes(self, who: str, at: float, size: int = 0) -> bool:
        """Take the tokens for a message; return whether there were enough.

        who : A node, or a connection without a name.
        at : Seconds, by a clock that is never set back.
        size : Bytes of the message. One worth more than a full bucket takes all of it.
        """
        price = min(1 + size // PIECE, self._burst)
        tokens, since = self._buckets.pop(who, (float(self._burst), at))
        tokens = min(self._burst, tokens + (at - since) * self._rate)
        fine = tokens >= price
        # Also if refused: a flooding sender must not be dropped, and return with a full bucket.
        self._buckets[who] = tokens - price * fine, at
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return fine
