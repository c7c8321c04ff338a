"""encode(), decode(): the messages of jobs as bytes, and back. Foreign bytes are checked here.

What a payload holds is checked when all its pieces are here (`submerge.jobs.envelopes`), and what
its arrays hold by the kind of job.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from submerge import PeerError
from submerge.jobs.job import MOST_PIECE, MOST_PIECES
from submerge.jobs.machine import PARCEL, JobMessage, JobPiece, JobPieceTaken
from submerge.jobs.roster import MOST_MEMBERS
from submerge.protocol.messages import Stamp
from submerge_proto.v1 import jobs_pb2 as pb
from submerge_proto.wire import bounds, parts

OVERHEAD = 512
"""Most bytes of a piece beside its data: a header, two names and numbers."""


def encode(message: JobMessage) -> bytes:
    """Return a message as bytes."""
    common: dict[str, Any] = {
        "header": parts.header(message.stamp),
        "job": message.job,
        "up": message.up,
        "parcel": message.parcel,
    }
    if isinstance(message, JobPieceTaken):
        taken = pb.JobPieceTaken(**common, have=message.have, over=message.over)
        return pb.JobMessage(taken=taken).SerializeToString()
    piece = pb.JobPiece(
        **common,
        weight=message.weight,
        number=message.number,
        total=message.total,
        data=message.data,
    )
    return pb.JobMessage(piece=piece).SerializeToString()


def decode(data: bytes) -> JobMessage:
    """Return the message that bytes hold."""
    try:
        bounds.check(pb.JobMessage, data)
        envelope = pb.JobMessage.FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:
        raise PeerError(f"expected a message of a job, got {len(data)} bytes") from error
    kind = envelope.WhichOneof("message")
    if kind is None:
        raise PeerError("expected a piece, or what has arrived of pieces, got none")
    message = getattr(envelope, kind)
    if message.header.version != parts.VERSION:
        raise PeerError(
            f"this node speaks version {parts.VERSION} of the protocol, got version"
            f" {message.header.version}; update the older one",
            kind="version",
        )
    stamp = parts.stamp(message.header)
    if len(message.parcel) != PARCEL:
        raise PeerError(f"a payload's name has {PARCEL} bytes", kind="name")
    return _piece(message, stamp) if kind == "piece" else _taken(message, stamp)


def _piece(message: pb.JobPiece, stamp: Stamp) -> JobPiece:
    weight = parts.number("a weight", message.weight, MOST_MEMBERS if message.up else 0)
    total = parts.number("pieces", message.total, MOST_PIECES)
    if not message.number < total:
        raise PeerError(f"piece {message.number} of {total} is none", kind="range")
    if not 0 < len(message.data) <= MOST_PIECE:
        raise PeerError(
            f"a piece has 1 to {MOST_PIECE} bytes, got {len(message.data)}", kind="oversize"
        )
    return JobPiece(
        *(stamp, parts.name(message.job), message.up, bytes(message.parcel)),
        *(weight, message.number, total, bytes(message.data)),
    )


def _taken(message: pb.JobPieceTaken, stamp: Stamp) -> JobPieceTaken:
    if not 0 < len(message.have) <= -(-MOST_PIECES // 8):
        raise PeerError(f"at most {MOST_PIECES} pieces, got more or none", kind="oversize")
    return JobPieceTaken(
        *(stamp, parts.name(message.job), message.up, bytes(message.parcel)),
        *(bytes(message.have), message.over),
    )
