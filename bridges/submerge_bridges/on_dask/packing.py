"""packed(), unpacked(): what tasks are sent and return: a line of JSON, and pieces of bytes.

Floats in JSON are read back to the last bit; NaN and infinity are written as Python's module does.
These bytes travel inside one run, between programs of one version; no file holds them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from submerge import PeerError

SIZES = "sizes"


def packed(head: dict[str, Any], pieces: Sequence[bytes] = ()) -> bytes:
    """Return a head and pieces as bytes; the head has no key "sizes"."""
    line = json.dumps(head | {SIZES: [len(each) for each in pieces]})
    return b"".join((line.encode(), b"\n", *pieces))


def unpacked(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the head and the pieces that were packed.

    Raises
    ------
    PeerError
        If the bytes are no others of this form.
    """
    line, end, rest = data.partition(b"\n")
    try:
        head = json.loads(line)
        sizes = head.pop(SIZES)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PeerError("expected what a task of this version returns, got other bytes") from error
    if not end or sum(sizes) != len(rest):
        raise PeerError(f"expected {sum(sizes)} bytes of a task, got {len(rest)}")
    pieces, at = [], 0
    for size in sizes:
        pieces.append(rest[at : at + size])
        at += size
    return head, pieces
