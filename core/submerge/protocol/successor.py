"""successor(): the name under which readings that were measured go over to a settled schema."""

from __future__ import annotations

import hashlib

from submerge.protocol.messages import Incarnation


def successor(measured: Incarnation, family: str) -> Incarnation:
    """Return the name that follows from the incarnation that measured and from the settled schema.

    All copies of its readings, on whatever disk, have this one name, and a parent counts a name
    once. Schemas of one family (`Schema.family`) give one name: a parent reads rows of one as rows
    of the other. Another family gives another name: such rows never stand in for each other.
    """
    text = f"{measured} {family}".encode()
    nonce = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    return Incarnation(measured.created_ms, nonce >> 1)
