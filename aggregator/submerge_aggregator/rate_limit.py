"""Pace: how much each child may say: a token bucket for each, and no more than so many buckets.

A bucket holds `burst` tokens, and gains `most_per_s` in a second; a message takes one, and one
more for each PIECE of it: long ones take room, and time to check. So a child that comes back after
an outage says at once what it has to say, and one that has gone wild is held to the pace, and
costs the others nothing. Time is an argument.

Memory is bounded: of MOST_BUCKETS the one that was used longest ago falls off. A bucket that
nobody has used for `burst / most_per_s` seconds is full, as a new one is: nothing is lost with it.
"""

from __future__ import annotations

MOST_BUCKETS = 65_536
"""As many as watches: more children than one aggregator serves. 20 MB, when all are in use."""

PIECE = 8192
"""Bytes, more than a usual report. To check the worst message of 4 MiB takes half a second; so
nobody has the aggregator do that more often than twice at once, and then each half a minute."""


class RateLimit:
    """A bucket for each who speaks.

    Parameters
    ----------
    most_per_s : float
        Messages a second, of each, that can go on for ever.
    burst : int
        Messages at once, of one that has been quiet.
    most : int
        Buckets, at most.
    """

    def __init__(self, most_per_s: float, burst: int, *, most: int = MOST_BUCKETS) -> None:
        self._rate, self._burst, self._most = most_per_s, burst, most
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens, and when; idle ones first

    def __len__(self) -> int:
        """How many buckets there are."""
        return len(self._buckets)

    def takes(self, who: str, at: float, size: int = 0) -> bool:
        """Take the tokens for a message of somebody's; return whether there were as many.

        Parameters
        ----------
        who : str
            A node, or where there is no name a connection.
        at : float
            Seconds, by a clock that is never set back.
        size : int
            Bytes of the message. One that is worth more than a full bucket takes all of it.
        """
        price = min(1 + size // PIECE, self._burst)
        tokens, since = self._buckets.pop(who, (float(self._burst), at))
        tokens = min(self._burst, tokens + (at - since) * self._rate)
        fine = tokens >= price
        # Also in vain: who floods must not fall off, and come back with a full bucket.
        self._buckets[who] = tokens - price * fine, at
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return fine
