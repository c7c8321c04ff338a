"""encode(), decode(): the messages of jobs as bytes, and back. Foreign bytes are checked here."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from submerge import PeerError
from submerge.jobs.job import MOST_PIECE, MOST_PIECES
from submerge.jobs.machine import PARCEL, JobMessage, JobPiece, JobPieceTaken
from submerge.jobs.roster import MOST_MEMBERS
from submerge_proto.v1 import jobs_pb2 as pb
from submerge_proto.wire import bounds, parts
from submerge_proto.wire.fields import PLAIN, Part, form, number, whole

OVERHEAD = 512  # most bytes of a piece beside its data: a header, two names and numbers


def encode(message: JobMessage) -> bytes:
    if isinstance(message, JobPieceTaken):
        return pb.JobMessage(taken=_TAKEN.made(message)).SerializeToString()
    return pb.JobMessage(piece=_PIECE.made(message)).SerializeToString()


def decode(data: bytes) -> JobMessage:
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
    found: JobMessage = (_PIECE if kind == "piece" else _TAKEN).read(message)
    return found


def _parcel(sent: bytes) -> bytes:
    if len(sent) != PARCEL:
        raise PeerError(f"a payload's name has {PARCEL} bytes", kind="name")
    return bytes(sent)


def _data(sent: bytes) -> bytes:
    if not 0 < len(sent) <= MOST_PIECE:
        raise PeerError(f"a piece has 1 to {MOST_PIECE} bytes, got {len(sent)}", kind="oversize")
    return bytes(sent)


def _have(sent: bytes) -> bytes:
    if not 0 < len(sent) <= -(-MOST_PIECES // 8):
        raise PeerError(f"at most {MOST_PIECES} pieces, got more or none", kind="oversize")
    return bytes(sent)


def _piece(**fields: Any) -> JobPiece:
    piece = JobPiece(**fields)
    if not piece.up:
        number("a weight", piece.weight, 0)
    if not piece.number < piece.total:
        raise PeerError(f"piece {piece.number} of {piece.total} is none", kind="range")
    return piece


_OF_ANY: dict[str, Part[Any]] = {
    "stamp": parts.HEADER,
    "job": parts.NAME,
    "up": PLAIN,
    "parcel": Part(PLAIN.made, _parcel),
}


_PIECE = form(
    pb.JobPiece,
    _piece,
    **_OF_ANY,
    weight=whole("a weight", MOST_MEMBERS),
    number=PLAIN,
    total=whole("pieces", MOST_PIECES),
    data=Part(PLAIN.made, _data),
)

_TAKEN = form(pb.JobPieceTaken, JobPieceTaken, **_OF_ANY, have=Part(PLAIN.made, _have), over=PLAIN)
