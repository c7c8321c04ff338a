"""encode(), decode(): messages as bytes, and back. Foreign bytes are checked here, once.

What `decode` returns is safe to use: names are valid, numbers are finite and small enough for sums,
bases are orthonormal (docs/wire.md). Anything else is a `PeerError`; if the header could be read it
is a `MessageRefused`, so that the sender gets the reason.
"""

from __future__ import annotations

import contextlib
from typing import Any, Literal, get_args

from google.protobuf.message import DecodeError

from submerge import PeerError, errors
from submerge.protocol.messages import (
    Answer,
    DrillReport,
    DrillTaken,
    Hello,
    Join,
    Joined,
    Message,
    Model,
    Question,
    QuestionReply,
    Reason,
    ReplyTaken,
    Report,
    Stamp,
)
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.v1 import header_pb2, jobs_pb2
from submerge_proto.wire import bounds, forms, parts
from submerge_proto.wire.fields import Part

Kind = Literal[
    "join",
    "joined",
    "report",
    "answer",
    "watch",
    "drill",
    "drilled",
    "question",
    "reply",
    "replied",
    "job",
]
"""The kind of a message, by its method or topic; hello and model are "watch". Messages of jobs are
carried like others, and read by `jobs.decode`."""

KINDS: tuple[Kind, ...] = get_args(Kind)


class MessageRefused(PeerError):
    """A message that cannot be accepted, from a known sender, who gets the reason.

    stamp : The sender's, as far as it could be read.
    reason : VERSION or INVALID, for the answer. `kind`, as of any `PeerError`, is more exact.
    fence : For the answer, which another process ignores; empty if it could not be read.
    """

    def __init__(
        self, why: str, *, kind: errors.Kind, stamp: Stamp, reason: Reason, fence: bytes = b""
    ) -> None:
        self.stamp, self.reason, self.fence = stamp, reason, fence
        super().__init__(why, kind=kind)


_PARTS: dict[Kind, Part[Any]] = {
    "join": forms.JOIN,
    "joined": forms.JOINED,
    "report": forms.REPORT,
    "answer": forms.ANSWER,
    "drill": forms.DRILL,
    "drilled": forms.DRILLED,
    "question": forms.QUESTION,
    "reply": forms.REPLY,
    "replied": forms.REPLIED,
}

_WATCHED: dict[str, Part[Any]] = {
    "hello": forms.HELLO,
    "model": forms.MODEL,
    "answer": forms.ANSWER,
    "question": forms.QUESTION,
}
"""By the field of a watch."""

_KINDS: dict[type[Message], Kind] = {
    Join: "join",
    Joined: "joined",
    Report: "report",
    Answer: "answer",
    Hello: "watch",
    Model: "watch",
    DrillReport: "drill",
    DrillTaken: "drilled",
    Question: "question",
    QuestionReply: "reply",
    ReplyTaken: "replied",
}


def kind_of(message: Message) -> Kind:
    """Return the kind of a message: its method or topic."""
    return _KINDS[type(message)]


def encode(message: Message, *, coarse: bool = False) -> bytes:
    """Return a message as bytes; `coarse`: columns as int8 where the error is small."""
    match message:
        case Report():
            made: Any = forms.report(message, coarse=coarse)
        case Hello():
            made = pb.WatchResponse(hello=forms.HELLO.made(message))
        case Model():
            made = pb.WatchResponse(model=forms.MODEL.made(message))
        case _:
            made = _PARTS[kind_of(message)].made(message)
    return bytes(made.SerializeToString())


def decode(kind: Kind, data: bytes) -> Message:
    if kind == "job":
        raise PeerError("expected a message between nodes, got one of a job")
    part = None if kind == "watch" else _PARTS[kind]
    form = pb.WatchResponse if part is None else part.message
    try:
        bounds.check(form, data)
        message: Any = form.FromString(data)
    except _NO_MESSAGE as error:
        raise _unreadable(kind, data, error) from error
    if part is None:
        which = message.WhichOneof("event")
        if which is None or which == "job":
            raise PeerError("expected a hello, a model, an answer or a question, got none")
        message, part = getattr(message, which), _WATCHED[which]
    refusal = _foreign(message.header)
    if refusal is not None:
        raise refusal
    try:
        found: Message = part.read(message)
    except PeerError as error:
        if kind not in ("join", "report"):
            raise
        stamp = parts.HEADER.read(message.header)  # raises if there is no sender to answer
        fence = message.fence if len(message.fence) == parts.FENCE_BYTES else b""
        raise MessageRefused(
            str(error), kind=error.kind, stamp=stamp, reason=Reason.INVALID, fence=fence
        ) from error
    return found


def as_watched(kind: Kind, data: bytes) -> bytes:
    """Return an encoded answer or question, or a job's message, as a message of a watch."""
    if kind == "job":
        return pb.WatchResponse(job=jobs_pb2.JobMessage.FromString(data)).SerializeToString()
    if kind == "question":
        return pb.WatchResponse(question=pb.Question.FromString(data)).SerializeToString()
    return pb.WatchResponse(answer=pb.ReportResponse.FromString(data)).SerializeToString()


def of_watch(data: bytes) -> tuple[Kind, bytes]:
    """Return what a watch has brought: a job's message by itself, anything else as it is."""
    if not data.startswith(_JOB_TAG):
        return "watch", data
    try:
        bounds.check(pb.WatchResponse, data)
        message = pb.WatchResponse.FromString(data)
    except _NO_MESSAGE:
        return "watch", data  # `decode` says why it is none
    if message.WhichOneof("event") != "job":
        return "watch", data
    return "job", message.job.SerializeToString()


_JOB_TAG = bytes([pb.WatchResponse.JOB_FIELD_NUMBER << 3 | 2])

_NO_MESSAGE = (DecodeError, UnicodeDecodeError, PeerError)


def _unreadable(kind: Kind, data: bytes, error: Exception) -> PeerError:
    """Return why bytes are no message; another version may have sent another form."""
    refusal = error if isinstance(error, PeerError) and error.kind == "oversize" else None
    with contextlib.suppress(*_NO_MESSAGE):
        # Only the header, which is the same in every version.
        bounds.check(pb.WatchRequest, data)
        header = pb.WatchRequest.FromString(data).header
        refusal = (_foreign(header) if header.version else None) or refusal
    return refusal or PeerError(f"expected a {kind}, got {len(data)} bytes of something else")


def _foreign(header: header_pb2.Header) -> PeerError | None:
    """Return a refusal of another version, with the sender if it is named; else None."""
    if header.version == parts.VERSION:
        return None
    why = f"this node speaks version {parts.VERSION} of the protocol, got version {header.version}"
    if header.versions:
        why += f" from one that speaks {', '.join(map(str, header.versions[:8]))}"
    why += "; update the older one"
    try:
        stamp = parts.HEADER.read(header)
    except PeerError:
        return PeerError(why, kind="version")
    return MessageRefused(why, kind="version", stamp=stamp, reason=Reason.VERSION)
