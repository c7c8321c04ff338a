"""Parcel: messages of nodes on their way in Flower's records; and what is refused on arrival.

A parcel is some messages for one node, in order, each of a kind and some bytes, as over any other
transport. In a `ConfigRecord` it is two lists of equal length. Flower has unpacked a record before
we see it: how large it may be is up to Flower. What is in it is foreign: the record's form is
checked here, and each message by `codec.decode`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from submerge import PeerError
from submerge_client.config.sizes import GRPC_LIMIT
from submerge_proto.wire.codec import KINDS, Kind

RECORD = "submerge"
"""The name of our record in a Flower message, and in a context's state."""

MOST = 256
"""Most messages of a parcel: the answers and the reports of `FINALS` rounds, and a few."""

MOST_BYTES = GRPC_LIMIT
"""Most bytes of one message, as over gRPC."""


class ParcelMessage(NamedTuple):
    """One message, as bytes."""

    kind: Kind
    data: bytes


Parcel = tuple[ParcelMessage, ...]


def values_of(parcel: Parcel) -> dict[str, Any]:
    """Return a parcel as values of a `ConfigRecord`; an empty one has none."""
    if not parcel:
        return {}  # Flower cannot count the bytes of an empty list
    kinds, messages = zip(*parcel, strict=True)
    return {"kinds": list(kinds), "messages": list(messages)}


def parcel_of(values: Mapping[str, Any]) -> Parcel:
    """Return the parcel in a record that has arrived.

    Raises
    ------
    PeerError
        If it is none, or holds more than a parcel may.
    """
    kinds, messages = values.get("kinds", []), values.get("messages", [])
    if not (isinstance(kinds, list) and isinstance(messages, list)):
        raise PeerError(f"expected lists of kinds and messages in the record {RECORD!r}")
    if not len(kinds) == len(messages) <= MOST:
        raise PeerError(
            f"expected as many kinds as messages, at most {MOST},"
            f" got {len(kinds)} and {len(messages)}",
            kind="oversize" if len(messages) > MOST else "malformed",
        )
    for kind, data in zip(kinds, messages, strict=True):
        if kind not in KINDS or not isinstance(data, bytes):
            raise PeerError(f"expected a message of a known kind, got {str(kind)[:20]!r}")
        if len(data) > MOST_BYTES:
            raise PeerError(
                f"expected a {kind} of at most {MOST_BYTES} bytes, got {len(data)}", kind="oversize"
            )
    return tuple(map(ParcelMessage, kinds, messages))
