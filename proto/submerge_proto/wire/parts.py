"""Parts that several messages share, checked: names, incarnations, counts, moments.

Sums are cut to what the next peer accepts: numbers of children are each within bounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from submerge import Array, PeerError, Schema, __version__
from submerge.pca.subspace import LARGEST
from submerge.protocol.messages import LATEST, Census, Counts, Incarnation, Left, Reason, Stamp
from submerge.protocol.names import NAME_RULE, is_name
from submerge.stats.moments import KEPT, LARGEST_POINT, LEAST_WIDTH, NUMBERS, Moments, Reservoir
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import header_pb2, summary_pb2
from submerge_proto.wire import bounds
from submerge_proto.wire.columns import MOST_DIM
from submerge_proto.wire.fields import PLAIN, Part, capped, form, number, several, whole

VERSION = 1

SOFTWARE = f"submerge {__version__}"

MOST_READINGS = 2**53  # most readings in a message: floats count exactly so far, and sums still fit

MOST_MOMENT = LARGEST * (1 + 1e-6)
"""Largest mean and root mean square of a channel: honest readings are below `LARGEST`, and pooling
keeps both, but for rounding."""

MOST_CLIENTS = 2**40  # most clients below one aggregator
FENCE_BYTES, FINGERPRINT_BYTES = 16, 32  # bytes of a fence, and of a fingerprint

SOFTWARE_LETTERS, MOST_LINES, LETTERS = 64, 64, 400
"""Bounds of text for people: length of a software name; number of lines, and their length. A schema
of 10,000 channels may differ in as many lines, and they would not fit into a message."""


def name(text: str) -> str:
    """Return a node's or a group's name, if it is valid."""
    if not is_name(text):
        raise PeerError(f"a name has {NAME_RULE}, got {text[:80]!r}", kind="name")
    return text


NAME = Part(PLAIN.made, name)


def text(value: str, letters: int) -> str:
    """Return text for people, cut to so many letters, with "?" for what is not printable."""
    value = value[:letters]
    if value.isprintable():
        return value
    return "".join(letter if letter.isprintable() else "?" for letter in value)


def _lines(value: Sequence[str]) -> list[str]:
    first = [text(line, LETTERS) for line in value[:MOST_LINES]]
    more = len(value) - len(first)
    return [*first, f"and {more} more"] if more else first


def _lines_of(message: Sequence[str]) -> tuple[str, ...]:
    return tuple(text(line, LETTERS) for line in message[: MOST_LINES + 1])


TEXT = Part(lambda value: text(value, LETTERS), lambda sent: text(sent, LETTERS))
"""A line for people."""

LINES = Part(_lines, _lines_of)  # lines for people, the first of many


def check_version(version: int) -> None:
    if version != VERSION:
        raise PeerError(f"kept by version {version} of the protocol, this is {VERSION}")


INCARNATION = form(
    header_pb2.Incarnation, Incarnation, created_ms=whole("created_ms", LATEST), nonce=PLAIN
)


def _fence(data: bytes) -> bytes:
    if len(data) not in (0, FENCE_BYTES):
        raise PeerError(f"a fence has {FENCE_BYTES} bytes, got {len(data)}", kind="name")
    return data


def _past_fence(data: bytes) -> bytes:
    if not data:
        raise PeerError(f"a past fence has {FENCE_BYTES} bytes, got none", kind="name")
    return _fence(data)


_STAMP = form(
    header_pb2.Header, Stamp, node=NAME, group=NAME, incarnation=INCARNATION, seq=whole("seq")
)


def header(stamp: Stamp) -> header_pb2.Header:
    message: header_pb2.Header = _STAMP.made(stamp)
    message.version, message.software = VERSION, SOFTWARE
    message.versions.append(VERSION)
    return message


HEADER = Part(header, _STAMP.read, "header")  # a message's header, which has its stamp
FENCE = Part(PLAIN.made, _fence)  # a fence; empty for none

PAST_FENCE = form(wire.Left, Left, fence=Part(PLAIN.made, _past_fence), seq=whole("seq"))
"""A fence of a lineage's earlier process."""


def _reason_of(number: int) -> Reason:
    try:
        return Reason[wire.Reason.Name(number).removeprefix("REASON_")]
    except (ValueError, KeyError) as error:
        raise PeerError(f"expected a known reason, got number {number}") from error


REASON = Part(lambda reason: wire.Reason.Value(f"REASON_{reason.name}"), _reason_of)


def _fingerprint(data: bytes) -> str:
    if len(data) != FINGERPRINT_BYTES:
        raise PeerError(
            f"a fingerprint has {FINGERPRINT_BYTES} bytes, got {len(data)}", kind="name"
        )
    return data.hex()


FINGERPRINT = Part(bytes.fromhex, _fingerprint)  # a schema's fingerprint, in hex


def fingerprint_of_text(schema: bytes) -> str:
    return hashlib.sha256(schema).hexdigest()


@lru_cache(maxsize=4)
def schema_of(text: bytes) -> Schema | None:
    """Return the schema of a text, which each model repeats; None if it has an unknown form."""
    bounds.check_text(text)
    try:
        schema = Schema.parse(text)
    except PeerError:
        return None
    if schema.width > MOST_DIM:
        # A text of a hundred bytes can stand for more names than memory holds.
        raise PeerError(
            f"a schema has at most {MOST_DIM} dimensions, got {schema.width}", kind="schema"
        )
    return schema


READINGS = capped("readings", MOST_READINGS)

COUNTS = form(
    summary_pb2.Counts, Counts, learnt=READINGS, withheld=READINGS, lost=READINGS, moved=READINGS
)


def _moments(value: Moments) -> summary_pb2.Moments:
    """Return moments as a message, cut to the most readings that peers accept."""
    count = min(value.count, MOST_READINGS)
    mean, m2 = value.mean, value.m2
    if count != value.count:
        m2 = m2 * (count / value.count)
    if not _within(count, mean, m2):
        # Rounding of a sum has passed the bound: all readings are taken as smaller by one factor.
        most = max(float(np.abs(mean).max()), float((m2 / count + mean**2).max()) ** 0.5)
        mean, m2 = mean * (LARGEST / most), m2 * (LARGEST / most) ** 2
    message = summary_pb2.Moments(count=count, mean=_bytes(mean), m2=_bytes(m2))
    if value.sample is not None:
        message.priorities = np.ascontiguousarray(value.sample.priorities, "<u8").tobytes()
        message.points = np.ascontiguousarray(value.sample.points, "<f4").tobytes()
    return message


def _moments_of(message: summary_pb2.Moments) -> Moments:
    """Return the moments that a message holds, if readings can have them."""
    if len(message.mean) != len(message.m2) or len(message.mean) % 8 or not message.mean:
        raise PeerError(f"moments: expected float64, got {len(message.mean)} bytes", kind="shape")
    mean, m2 = np.frombuffer(message.mean, "<f8"), np.frombuffer(message.m2, "<f8")
    count = number("readings", message.count, MOST_READINGS)
    if not (np.isfinite(mean).all() and np.isfinite(m2).all()):
        raise PeerError("moments must be finite", kind="not_finite")
    if not (count and (m2 >= 0).all()):
        raise PeerError("moments must be of one reading or more, not negative", kind="range")
    if not _within(count, mean, m2):
        raise PeerError(f"moments must be of readings below {LARGEST:g}", kind="range")
    return Moments(count, mean, m2, _sample_of(message))


def _within(count: int, mean: Array, m2: Array) -> bool:
    """Return whether moments are of readings that can be pooled."""
    # Pooling keeps the mean square below this; honest readings are below LARGEST.
    if not np.abs(mean).max() <= MOST_MOMENT:
        return False  # its square might overflow
    return bool((m2 / count + mean**2 <= MOST_MOMENT**2).all())


def _sample_of(message: summary_pb2.Moments) -> Reservoir | None:
    m, rest = divmod(len(message.priorities), 8)
    if rest or len(message.points) != 4 * NUMBERS * m or m > min(KEPT, message.count):
        raise PeerError(
            f"a sample has at most {KEPT} readings, each counted, with a priority and {NUMBERS}"
            f" numbers, got {len(message.priorities)} and {len(message.points)} bytes",
            kind="shape",
        )
    if not m:
        return None
    if len(message.mean) < 8 * LEAST_WIDTH:
        raise PeerError(f"a sample is of {LEAST_WIDTH} channels or more", kind="shape")
    priorities = np.frombuffer(message.priorities, "<u8")
    if not (priorities[:-1] < priorities[1:]).all():
        raise PeerError("priorities must ascend, no two alike", kind="unsorted")
    points = np.frombuffer(message.points, "<f4").reshape(m, NUMBERS)
    if not np.isfinite(points).all():
        raise PeerError("points must be finite", kind="not_finite")
    if not (np.abs(points) <= np.float32(LARGEST_POINT)).all():
        raise PeerError(f"points must be at most {LARGEST_POINT:g} either way", kind="range")
    return Reservoir(priorities, points)


MOMENTS = Part(_moments, _moments_of)

CLIENTS = capped("clients", MOST_CLIENTS)

CENSUS = form(summary_pb2.Census, Census, nodes=CLIENTS, ages=several(CLIENTS, "ages", 64))


def _bytes(array: Array) -> bytes:
    return np.ascontiguousarray(array, dtype="<f8").tobytes()
