"""Messages that are small to send and large to read; none is what an honest node writes.

Each by name: the kind that it claims to be, and its bytes, for a size that they fill.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from submerge.stats.quantile_sketch import varint
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.v1 import summary_pb2
from submerge_proto.wire import codec
from support.wire import HONEST, form_of


def field(number: int, content: bytes) -> bytes:
    """Return a field of bytes, or one that holds a message, whole."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def _times(piece: bytes, size: int) -> bytes:
    return piece * (size // len(piece))


def _said(name: str, extra: bytes = b"") -> bytes:
    """Return an honest message and, after it, what it says as well."""
    data = codec.encode(HONEST[name])
    if name in ("hello", "model"):
        # Said again, a message is merged with what it said before.
        return data + field(1 if name == "hello" else 2, extra)
    return data + extra


def _shaped(coarse: bool, size: int) -> bytes:
    """Return a report of as many columns as are believed, none of them orthonormal."""
    form, message = form_of("report")
    k = 1000
    dim = (size - 13 * k) // ((1 if coarse else 4) * k + 8)
    message.subspace.CopyFrom(
        summary_pb2.Subspace(
            dim=dim,
            mean=np.zeros(dim).tobytes(),
            sigma=np.ones(k).tobytes(),
            weight=100,
            energy=1e6,
            coarse=b"\x01" * (k * dim if coarse else 0),
            scales=np.full(k if coarse else 0, 1 / 64, "<f4").tobytes(),
            columns=b"\0" * (0 if coarse else 4 * k * dim),
        )
    )
    return bytes(form.SerializeToString())


def _moments(size: int) -> bytes:
    form, message = form_of("report")
    message.moments.mean = message.moments.m2 = np.zeros(size // 16).tobytes()
    return bytes(form.SerializeToString())


def _schema(piece: bytes, size: int) -> bytes:
    return codec.encode(HONEST["join"]._replace(schema=b"[" + _times(piece, size) + b"1]"))


def _version_two(size: int) -> bytes:
    header = HONEST["join"].stamp
    later = pb.WatchRequest()
    later.header.version = 2
    later.header.node, later.header.group = header.node, header.group
    return bytes(later.SerializeToString()) + _times(b"\x1a\0", size)


Made = Callable[[int], bytes]

BOMBS: dict[str, tuple[codec.Kind, Made]] = {
    "past fences, all empty": ("join", lambda n: _said("join", _times(b"\x1a\0", n))),
    "lines, all empty": ("joined", lambda n: _said("joined", _times(b"\x42\0", n))),
    "ages in one run": ("report", lambda n: _said("report", field(13, field(2, b"\1" * n)))),
    "ages in many runs": (
        "report",
        lambda n: _said("report", field(13, _times(field(2, b"\1" * 600), n))),
    ),
    "ages one by one": ("report", lambda n: _said("report", field(13, _times(b"\x10\1", n)))),
    "versions in one run": ("answer", lambda n: _said("answer", field(1, field(2, b"\1" * n)))),
    "limits one by one": (
        "watch",
        lambda n: _said("model", field(5, _times(b"\x09" + b"\0" * 8, n))),
    ),
    "hello and model in turn": ("watch", lambda n: _times(b"\x0a\0\x12\0", n)),
    "hello and model in turn, deep": (
        "watch",
        lambda n: _times(field(1, b"\x0a\2\x2a\0") + field(2, b"\x0a\2\x2a\0\x22\0\x2a\0"), n),
    ),
    "one summary said many times": (
        "report",
        lambda n: _said("report", _times(field(6, field(2, b"\0" * 1000)), n)),
    ),
    "empty summaries": ("report", lambda n: _said("report", _times(b"\x32\0\x7a\0", n))),
    "fields that nobody knows": ("report", lambda n: _said("report", _times(b"\xa0\6\1", n))),
    "unknown fields among known": (
        "report",
        lambda n: _said("report", _times(b"\xa0\6\1\x10\0", n)),
    ),
    "groups in groups": (
        "report",
        lambda n: _said("report", _times(b"\xa3\6" * 90 + b"\xa4\6" * 90, n)),
    ),
    "unpaired groups": ("report", lambda n: _said("report", _times(b"\xa3\6", n))),
    "another version's fences": ("join", _version_two),
    "a schema of brackets": ("join", lambda n: _schema(b"[],", n)),
    "a schema of braces": ("join", lambda n: _schema(b"{},", n)),
    "a schema of numbers": ("join", lambda n: _schema(b"0.5,", n)),
    "a schema of depth": ("join", lambda n: _schema(b"[", n)),
    "a schema of one long word": ("join", lambda n: _schema(b"\xe2\x82\xac", n)),
    "moments of many channels": ("report", _moments),
    "columns, none orthonormal": ("report", lambda n: _shaped(False, n)),
    "coarse columns, none orthonormal": ("report", lambda n: _shaped(True, n)),
}
