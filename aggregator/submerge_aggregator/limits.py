"""What children may send: bytes that wait, messages a second, and the largest message.

A sender may hold a share of it, so one that floods leaves room for the others. A message that
finds no room is refused at once: its sender keeps it, and asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from submerge import Schema
from submerge.protocol.messages import Report
from submerge.protocol.summaries import MOST_TIMES
from submerge_client import memory
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sizes import FENCES, JOIN, Linear, size_of_report
from submerge_client.config.summary import SummaryConfig
from submerge_proto.wire import codec

# A bucket that was unused for `burst / most_per_s` seconds is full, as a new one is, so dropping
# it loses nothing.

MOST_BUCKETS = 65_536
"""As many as watches: more children than one aggregator serves. 20 MiB when all are in use."""

PIECE = 8192
"""Bytes, more than a typical report. The worst message of 4 MiB takes half a second to check. So
a sender can cause that at most twice at once, and then each half a minute."""


class RateLimit:
    def __init__(self, most_per_s: float, burst: int, *, most: int = MOST_BUCKETS) -> None:
        self._rate, self._burst, self._most = most_per_s, burst, most
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens, and when; idle ones first

    def __len__(self) -> int:
        return len(self._buckets)

    def takes(self, who: str, at: float, size: int = 0) -> bool:
        """Take the tokens for a message, a full bucket at most; whether there were enough."""
        price = min(1 + size // PIECE, self._burst)
        tokens, since = self._buckets.pop(who, (float(self._burst), at))
        tokens = min(self._burst, tokens + (at - since) * self._rate)
        fine = tokens >= price
        # Also if refused: a flooding sender must not be dropped, and return with a full bucket.
        self._buckets[who] = tokens - price * fine, at
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return fine


UNKNOWN = 256 * 1024  # bytes of a message while the schema of a group comes from the parent

LEAST = 64 * 1024
"""Bytes that always fit: a child with a wrong configuration then gets an answer, with reasons."""


def largest_message(groups: Iterable[tuple[SummaryConfig, SchemaConfig | None]], most: int) -> int:
    """Return the bytes of the largest message that may come from below, at most `most`."""
    largest = LEAST
    # An aggregator's largest report, with `MOST_TIMES` the directions that its group keeps (so many
    # are merged), the text that a join carries, and an eighth for fields of later versions.
    for summary, schema in groups:
        if schema is None:
            size = UNKNOWN
        else:
            linear = summary.linear(schema)
            if linear is not None:
                width, k = linear
                linear = Linear(width, min(MOST_TIMES * k, width))
            k = min(MOST_TIMES * summary.kept, schema.dim)
            size = size_of_report(schema.dim, k, merged=True, linear=linear) + JOIN + FENCES
            # The text is built only where it can fit: landmarks make it long.
            if size < most:
                size += schema.text_bytes
            size += size // 8
        largest = max(largest, size)
    return min(largest, most)


def has_room(report: Report, schema: Schema, *, kept: int) -> bool:
    """Return whether a report is no larger than the largest that an aggregator may send."""
    # Sums of an earlier schema with more channels may be larger: it is asked only of such reports.
    most = size_of_report(schema.dim, min(kept, schema.dim), merged=True)
    return len(codec.encode(report)) <= most


ARENAS = 2  # gRPC's threads allocate without Python's lock

TRIM_EVERY_S = 30.0
"""Between two returns of free pages. Each takes milliseconds, on a thread of its own."""


def limit() -> None:
    """Have few arenas, and let large blocks go back when they are freed."""
    memory.limit(arenas=ARENAS)


async def keep_trimmed() -> None:
    """Return free pages to the kernel from time to time, until cancelled."""
    while True:
        await asyncio.sleep(TRIM_EVERY_S)
        await asyncio.to_thread(memory.trim)


SHARES = 8
"""One sender holds at most an eighth, and always one message. The last eighth of all is for short
messages."""

SHORT = 16 << 10  # bytes of a short message; a typical report has fewer than half of them


MOST_BYTES = 16 << 20  # bytes of messages that wait, if nothing else is configured


class MessageBudget:
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
        self.used -= size
        left = self._held.pop(who, 0) - size
        if left:
            self._held[who] = left
