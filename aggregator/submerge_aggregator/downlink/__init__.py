"""Downlink: the way to the children of one aggregator, over gRPC, MQTT or in memory.

It carries bytes and decides nothing. What every downlink promises (tests/live/
test_transports.py checks all of them):

1. What a child sends arrives as an `Inbound`, on the event loop. Each message is answered or
   refused at most once; a child without an answer asks again.
2. `publish` reaches every child, also those that connect later: the newest hello, and the
   newest model of each group, and nothing older after it.
3. A message larger than the limit is refused before it is parsed, and counted.
4. A child that does not read costs bounded memory, and delays no other child.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from submerge_proto.wire.codec import Kind

Proof = Literal["certificate", "broker", "none"]
"""What stands for a child's name: its certificate; the broker that lets it write to its topic; or
nothing, as on a link without TLS."""

INTEGER, SEQUENCE, VERSION = 0x02, 0x30, 0xA0
"""Tags of DER (X.690): an integer, a sequence, and the version of a certificate (RFC 5280)."""


class PeerIdentity(NamedTuple):
    proof: Proof = "none"
    uris: tuple[str, ...] = ()
    serial: int | None = None


UNPROVEN = PeerIdentity()


def identity_of(context: Any) -> PeerIdentity:
    """Return what gRPC knows of the other end of a call."""
    known = context.auth_context()
    pem = known.get("x509_pem_cert", ())
    if not pem:
        return UNPROVEN
    uris = tuple(uri.decode(errors="replace") for uri in known.get("peer_uri", ()))
    return PeerIdentity("certificate", uris, serial_of_pem(pem[0]))


def serial_of_pem(pem: bytes) -> int | None:
    """Return the serial number of a certificate in PEM form; None if it has none."""
    body = pem.partition(b"-----BEGIN CERTIFICATE-----")[2].partition(b"-----END")[0]
    # A certificate is a sequence of a sequence, which begins with its version, if it is not the
    # first, and its serial number (RFC 5280, section 4.1).
    try:
        der = base64.b64decode(body)
        outer, at, _ = _element(der, 0)
        inner, at, _ = _element(der, at)
        tag, begin, end = _element(der, at)
        if tag == VERSION:
            tag, begin, end = _element(der, end)
    except (binascii.Error, IndexError):
        return None
    if (outer, inner, tag) != (SEQUENCE, SEQUENCE, INTEGER) or not begin < end <= len(der):
        return None
    return int.from_bytes(der[begin:end], signed=True)


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of an element of DER, and where its content begins and ends."""
    tag, length, begin = der[at], der[at + 1], at + 2
    if length & 0x80:
        begin += length & 0x7F
        length = int.from_bytes(der[at + 2 : begin])
    return tag, begin, begin + length


Refusal = Literal["foreign", "denied", "busy", "throttled"]
"""Unreadable here; a sender under a false name; not now; too many messages."""


@dataclass(frozen=True, slots=True, eq=False)
class Inbound:
    """A message of a child; all is called on the event loop."""

    kind: Kind
    data: bytes
    node: str | None  # the sender by the transport, if it knows; the message names the same
    shared: bool  # other aggregators receive it by the same way too
    answer: Callable[[Kind, bytes], None]  # sends bytes back; to a job's message, that it has come
    refuse: Callable[[str, Refusal], None]  # sends why there is no answer
    peer: str = ""  # the connection's other end, where the sender is not known
    identity: PeerIdentity = UNPROVEN  # what stands for the sender's name
    done: Callable[[], object] = int  # called when it no longer waits: another may come

    @property
    def who(self) -> str:
        """The name that it counts against, before it is read."""
        return self.peer if self.node is None else self.node


Take = Callable[[Inbound], None]

Admits = Callable[[str, int], bool]
"""Whether a sender may send so many bytes more now; asked once for each message."""


def everybody(_: str, __: int) -> bool:
    return True


class WatchAdmission(Protocol):
    """Who may watch; `AdmissionControl` is one."""

    @property
    def revision(self) -> int:
        """A number that rises when open watches have to be asked about again."""

    def objection_to_watch(self, identity: PeerIdentity, name: str, group: str) -> str | None:
        """Return why a node may not receive a group's models; None if it may."""


class Downlink(Protocol):
    """The way to the children; `reachable` is None without a broker between."""

    reachable: bool | None

    @property
    def reading(self) -> tuple[int, int] | None:
        """Bytes that messages being read may come to, and the most; None if it reads whole ones."""

    async def open(self, take: Take) -> None:
        """Begin to hand over messages. An address that is taken is a `UsageError`."""

    def publish(self, group: str, data: bytes) -> None:
        """Send every child of a group the newest model; with group "", all children a hello."""

    def push(self, node: str, group: str, kind: Kind, data: bytes) -> None:
        """Send one child the newest model again ("watch"), or an answer that it did not ask for.

        Messages of jobs ("job") wait for all others; those for which there is no room are lost.
        """

    async def close(self) -> None:
        """Let answers under way go out; then stop."""
