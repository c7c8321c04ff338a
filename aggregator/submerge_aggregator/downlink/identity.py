"""PeerIdentity: what a transport knows of a child beside its name.

Over gRPC with mutual TLS it is the child's certificate. gRPC has checked it, and hands over its
names and its PEM text; the serial number is read from that text. Over MQTT the broker checks
certificates or passwords, and the aggregator sees a topic only.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal, NamedTuple

Proof = Literal["certificate", "broker", "none"]
"""What stands for a child's name: its certificate; the broker that lets it write to its topic; or
nothing, as on a link without TLS."""

INTEGER, SEQUENCE, VERSION = 0x02, 0x30, 0xA0
"""Tags of DER (X.690): an integer, a sequence, and the version of a certificate (RFC 5280)."""


class PeerIdentity(NamedTuple):
    """What is known of a child.

    proof : what stands for its name
    uris : the alternative names of its certificate that are URIs
    serial : of its certificate; None without one, or if it cannot be read
    """

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
    """Return the serial number of a certificate in PEM form; None if it has none.

    A certificate is a sequence of a sequence, which begins with its version, if it is not the
    first, and its serial number (RFC 5280, section 4.1).
    """
    body = pem.partition(b"-----BEGIN CERTIFICATE-----")[2].partition(b"-----END")[0]
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
