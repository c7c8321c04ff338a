"""Each kind of message as protobuf, and back. Foreign messages are checked field by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from submerge import Array, PeerError
from submerge.drill import drill
from submerge.pca.factor import Factors
from submerge.protocol.alarm_status import MOST_WIDENED
from submerge.protocol.desired_state import MOST_AT_ONCE
from submerge.protocol.messages import (
    DEEPEST,
    HIGHEST,
    MOST_BODY,
    MOST_STEP_S,
    Answer,
    DrillReport,
    DrillTaken,
    EarlierSums,
    Hello,
    Incarnation,
    Join,
    Joined,
    Model,
    Question,
    QuestionReply,
    ReplyTaken,
    Report,
    Stamp,
    Told,
)
from submerge.protocol.names import LAST_SECOND
from submerge.protocol.score_trail import LAST_MINUTE, MINUTES, NO_TRAIL, ScoreTrail
from submerge.protocol.summaries import Method, Summary
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.v1 import summary_pb2 as v1_pb
from submerge_proto.wire import alarms, parts, scores, summaries
from submerge_proto.wire.columns import MOST_RANK, bytes_of
from submerge_proto.wire.fields import (
    PLAIN,
    Part,
    capped,
    finite,
    form,
    real,
    several,
    size,
    whole,
    within,
)

# Noise that float32 cannot hold is brought within its range first. An honest root gives each
# channel a noise of at least a ten-thousandth of its variance (`LEAST` of `pca.factor`), and what
# factors hold of a channel is never more than its variance.

LEAST, LARGEST = float(np.finfo(np.float32).tiny), float(np.float32(3e38))
"""Least and largest noise, and largest loading: squares of such quotients are float64."""

STEEP = 1e8  # largest part of a channel that factors hold, over its noise


def packed(factors: Factors) -> v1_pb.Factors:
    noise = bytes_of(np.clip(factors.noise, LEAST, LARGEST), "<f4")
    if factors.loadings is None:
        return v1_pb.Factors(noise=noise)
    loadings = np.clip(factors.loadings.T, -LARGEST, LARGEST)
    return v1_pb.Factors(noise=noise, loadings=bytes_of(loadings, "<f4"))


def unpacked(messages: Sequence[v1_pb.Factors], summary: Summary | None) -> tuple[Factors, ...]:
    """Return the factors that messages hold, for each part of a summary; () if there are none."""
    if not messages:
        return ()
    subspaces = () if summary is None else summary.parts
    if len(messages) != len(subspaces):
        raise PeerError(
            f"expected factors for each of {len(subspaces)} subspaces, got {len(messages)}",
            kind="shape",
        )
    known = tuple(_one(each, part.dim) for each, part in zip(messages, subspaces, strict=True))
    for factors, part in zip(known, subspaces, strict=True):
        held = np.square(factors.loadings_of(part)).sum(axis=1)
        if not (held <= STEEP * factors.noise).all():
            raise PeerError(
                f"expected noise of at least {1 / STEEP:g} of what factors hold of a channel, got"
                f" {(factors.noise / np.maximum(held, LEAST)).min():.3g}",
                kind="range",
            )
    return known


def _one(message: v1_pb.Factors, dim: int) -> Factors:
    noise = _numbers(message.noise)
    if len(noise) != dim:
        raise PeerError(f"expected the noise of {dim} channels, got {len(noise)}", kind="shape")
    if not (noise >= LEAST).all() or not (noise <= LARGEST).all():
        raise PeerError(f"noise must be {LEAST:g} to {LARGEST:g}", kind="range")
    if not message.loadings:
        return Factors(noise)
    loadings = _numbers(message.loadings)
    k, rest = divmod(len(loadings), dim)
    if rest or not k <= min(dim, MOST_RANK):
        raise PeerError(
            f"expected loadings of {dim} channels, got {len(loadings)} numbers", kind="shape"
        )
    if not (np.abs(loadings) <= LARGEST).all():
        raise PeerError(f"loadings must be at most {LARGEST:g} either way", kind="range")
    return Factors(noise, loadings.reshape(k, dim).T)


def _numbers(data: bytes) -> Array:
    if len(data) % 4:
        raise PeerError(f"factors: expected float32, got {len(data)} bytes", kind="shape")
    return np.frombuffer(data, "<f4").astype(np.float64)


# Sums in either would count readings twice, so such a report is refused.


def put(
    message: pb.ReportRequest, sums: EarlierSums | None, *, coarse: bool = False, kept: bool = False
) -> None:
    """Put sums into a report, as `summaries.put`; those that have faded to nothing are left out."""
    if sums is None:
        return
    holder = pb.ReportRequest()
    summaries.put(holder, sums.summary, coarse=coarse, kept=kept)
    if holder.HasField("subspace"):
        message.earlier.fingerprint = bytes.fromhex(sums.fingerprint)
        message.earlier.subspace.CopyFrom(holder.subspace)
        message.earlier.counts.CopyFrom(parts.COUNTS.made(sums.counts))


def of(message: pb.ReportRequest, *, kept: bool = False) -> EarlierSums | None:
    if not message.HasField("earlier"):
        return None
    earlier = message.earlier
    fingerprint = parts.FINGERPRINT.read(earlier.fingerprint)
    holder = pb.ReportRequest()
    if earlier.HasField("subspace"):
        holder.subspace.CopyFrom(earlier.subspace)
    summary = summaries.of(holder, fingerprint, kept=kept)
    if summary is None:
        raise PeerError("expected sums of an earlier schema, got no subspace", kind="shape")
    return EarlierSums(fingerprint, summary, parts.COUNTS.read(earlier.counts))


def check(report: Report) -> None:
    """Refuse sums in a report that cannot have them, or of more readings than it counts."""
    sums = report.earlier
    if sums is None:
        return
    if not report.fence:
        raise PeerError("a client has no sums of an earlier schema, got some", kind="shape")
    if report.summary is not None:
        raise PeerError("expected a summary, or sums of an earlier schema, got both", kind="shape")
    if sums.fingerprint == report.fingerprint:
        raise PeerError("expected sums of an earlier schema, got the report's own", kind="shape")
    part, whole = sums.counts, report.counts
    pairs = (
        *((part.learnt, whole.learnt), (part.withheld, whole.withheld)),
        *((part.lost, whole.lost), (part.moved, whole.moved)),
    )
    if any(few > many for few, many in pairs):
        raise PeerError(
            f"expected earlier sums of at most {whole.learnt} readings, got {part.learnt}",
            kind="range",
        )


# A level is any byte, so that a later version may say more with it.

_TRAIL = form(
    pb.ScoreTrail,
    ScoreTrail,
    last=whole("last_minute", LAST_MINUTE).at("last_minute"),
    levels=PLAIN,
)


def _trail_of(message: pb.ReportRequest) -> ScoreTrail:
    if message.fence:
        raise PeerError("expected a trail of scores from a client only, got an aggregator's")
    trail = _TRAIL.read(message.trail)
    n, minute = len(trail.levels), trail.last
    if not 1 <= n <= MINUTES:
        raise PeerError(f"a trail of scores has 1 to {MINUTES} levels, got {n}", kind="shape")
    if n > minute + 1:
        raise PeerError(
            f"a trail of scores begins in 1970 or later, got {n} levels until minute"
            f" {minute} since then",
            kind="range",
        )
    return trail


NO_INCARNATION = Incarnation(0, 0)
"""In a model's header: a model belongs to a group, and to no incarnation."""

MOST_FENCES = 256  # past fences in a join: four times those that a node of this version remembers


def _schema(text: bytes) -> bytes:
    """Return a schema's text, if its size is bearable; the node checks whether it is a schema."""
    parts.schema_of(text)
    return text


_SCHEMA = Part(PLAIN.made, _schema)

JOIN = form(
    pb.JoinRequest,
    Join,
    past_fences=several(parts.PAST_FENCE, "past fences", MOST_FENCES),
    stamp=parts.HEADER,
    fence=parts.FENCE,
    schema=_SCHEMA,
    early=parts.READINGS,
    share_points=PLAIN,
)

JOINED = form(
    pb.JoinResponse,
    Joined,
    stamp=parts.HEADER,
    reason=parts.REASON,
    fence=parts.FENCE,
    pinned=parts.INCARNATION.maybe,
    top=PLAIN,
    floor=whole("floor").at("floor_ms"),
    schema=_SCHEMA,
    lines=parts.LINES,
    whole_scatter=PLAIN,
)


def _certified_until(value: float) -> float:
    """Return when a certificate ends: a time that can be shown as a date."""
    if not 0 <= real("certified_until_s", value) <= LAST_SECOND:
        raise PeerError(
            f"a certificate ends from 1970 to 9999, got {value} s since 1970", kind="range"
        )
    return value


TOLD = form(pb.Told, Told, releases=capped("releases"), committed=size("committed"))

_REPORT_FIELDS: Part[Any] = form(
    pb.ReportRequest,
    dict,
    stamp=parts.HEADER,
    final=PLAIN,
    pinned=parts.INCARNATION,
    fence=parts.FENCE,
    fingerprint=parts.FINGERPRINT,
    moments=parts.MOMENTS.maybe,
    counts=parts.COUNTS,
    as_of=finite("as_of_s").at("as_of_s"),
    synced=PLAIN,
    version=capped("model_version", HIGHEST).at("model_version"),
    lifetime=capped("lifetime"),
    census=parts.CENSUS.maybe,
    scores=scores.SCORES.maybe,
    certified_until=Part(PLAIN.made, _certified_until, "certified_until_s"),
    alarm_status=alarms.ALARM_STATUS.maybe,
    left=capped("left"),
    told=TOLD.maybe,
)
"""What a report says in fields of its own, but for summaries, trail, and words for people."""


def report(value: Report, *, coarse: bool = False, kept: bool = False) -> pb.ReportRequest:
    """Return a report; `kept`: for a record, as `summaries.put`."""
    message: pb.ReportRequest = _REPORT_FIELDS.made(value)
    message.header.software = value.software or parts.SOFTWARE
    said = value.method
    message.algorithm, message.rank = said.algorithm, said.rank
    message.own_share, message.unlike = said.own_share, said.unlike
    summaries.put(message, value.summary, coarse=coarse, kept=kept)
    if value.trail.levels and not kept:
        message.trail.CopyFrom(_TRAIL.made(value.trail))
    put(message, value.earlier, coarse=coarse, kept=kept)
    return message


def _method_of(message: pb.ReportRequest) -> Method:
    algorithm = parts.text(message.algorithm, parts.SOFTWARE_LETTERS)
    share, unlike = within("own_share", message.own_share, 1.0), within("unlike", message.unlike)
    return Method(algorithm, message.rank, share, unlike)


def report_of(message: pb.ReportRequest, *, kept: bool = False) -> Report:
    """Return a report; `kept`: it is from one's own disk."""
    said = _REPORT_FIELDS.read(message)
    report = Report(
        **said,
        summary=summaries.of(message, said["fingerprint"], kept=kept),
        software=parts.text(message.header.software, parts.SOFTWARE_LETTERS),
        method=_method_of(message),
        trail=_trail_of(message) if message.HasField("trail") else NO_TRAIL,
        earlier=of(message, kept=kept),
    )
    _check_readings(report)
    check(report)
    if report.alarm_status is not None and not report.fence:
        alarms.check_own(report.alarm_status, report.stamp.node)
    return report


REPORT = Part(report, report_of, message=pb.ReportRequest)


def _check_readings(report: Report) -> None:
    """Refuse a client's report whose moments or summary hold more readings than it counts."""
    if report.fence:
        return  # an aggregator sends sums, and summands may have been cut
    learnt = report.counts.learnt
    if report.moments is not None and report.moments.count > learnt:
        raise PeerError(
            f"expected moments of at most {learnt} readings, got {report.moments.count}",
            kind="range",
        )
    # In a kernel group both subspaces weigh the same.
    if report.summary is not None and report.summary.weight > learnt * (1 + 1e-6):
        raise PeerError(
            f"weight must be at most {learnt}, got {report.summary.weight:g}", kind="range"
        )


ANSWER = form(
    pb.ReportResponse,
    Answer,
    stamp=parts.HEADER,
    reason=parts.REASON,
    fence=parts.FENCE,
    pinned=parts.INCARNATION.maybe,
    top=PLAIN,
    newest=whole("newest"),
    root=parts.INCARNATION.maybe,
    durable=whole("durable"),
    floor=whole("floor").at("floor_ms"),
    desired_states=several(alarms.DESIRED_STATE, "desired states", MOST_AT_ONCE),
)


def _hello(value: Hello) -> pb.Hello:
    header = parts.header(Stamp(value.node, "", value.incarnation, 0))
    return pb.Hello(header=header, top=value.top, boot=value.boot)


def _hello_of(message: pb.Hello) -> Hello:
    header = message.header
    incarnation = parts.INCARNATION.read(header.incarnation)
    return Hello(parts.name(header.node), incarnation, message.top, message.boot)


HELLO = Part(_hello, _hello_of, message=pb.Hello)


_MODEL_FIELDS: Part[Any] = form(
    pb.Model,
    dict,
    version=whole("version", HIGHEST),
    schema=PLAIN,
    limits=scores.LIMITS.maybe,
    counts=parts.COUNTS,
    nodes=capped("nodes"),
    created=finite("created_s").at("created_s"),
    expires=finite("expires_s").at("expires_s"),
    maxima=scores.MAXIMA.maybe,
    rank=whole("rank", MOST_RANK),
    # 0 from a root that knows of none.
    widened=Part(
        lambda value: min(value, MOST_WIDENED) if value > 1 else 0.0,
        lambda sent: max(within("widened", sent, MOST_WIDENED), 1.0),
    ),
    block_s=scores.BLOCK_S,
    epsilon=size("epsilon"),
    told=TOLD.maybe,
)
"""What a model says in fields of its own: all but its group, what was learnt, and staleness."""


_STALENESS = "staleness_p50_s", "staleness_p99_s", "staleness_max_s"


def _model(value: Model) -> pb.Model:
    message: pb.Model = _MODEL_FIELDS.made(value)
    message.header.CopyFrom(parts.header(Stamp("", value.group, NO_INCARNATION, 0)))
    for field, seconds in zip(_STALENESS, value.staleness, strict=True):
        setattr(message, field, seconds)
    summaries.put(message, value.summary)
    if message.HasField("subspace"):  # a summary that has faded to nothing is left out
        message.factors.extend(map(packed, value.factors))
    return message


def _model_of(message: pb.Model) -> Model:
    said, schema = _MODEL_FIELDS.read(message), None
    fingerprint = parts.fingerprint_of_text(said["schema"])
    summary = summaries.of(message, fingerprint)
    if any(part is not None for part in (summary, said["limits"], said["maxima"])):
        schema = parts.schema_of(said["schema"])
    if schema is not None and summary is not None:
        summaries.check_fits(summary, schema)
    if schema is not None and schema.linear:
        # Not refused: one child's third sketch would cost all others the model.
        said["limits"] = said["limits"] and replace(said["limits"], linear=())
        said["maxima"] = said["maxima"] and said["maxima"].replaced("linear")
    p50, p99, most = (real("staleness", getattr(message, field)) for field in _STALENESS)
    return Model(
        **said,
        group=parts.name(message.header.group),
        fingerprint=fingerprint,
        summary=summary,
        staleness=(p50, p99, most),
        factors=unpacked(message.factors, summary),
    )


MODEL = Part(_model, _model_of, message=pb.Model)


MOST_CHANNELS = 65_536  # channels of one answer
LARGEST_RATE = 1e6  # false alarms a second


def _channels(sent: bytes) -> bytes:
    if not 1 <= len(sent) // 16 <= MOST_CHANNELS:
        raise PeerError(
            f"expected a drill of 1 to {MOST_CHANNELS} channels, got {len(sent)} bytes",
            kind="oversize" if sent else "shape",
        )
    drill.unpacked(sent)
    return bytes(sent)


def _drilled(**fields: Any) -> DrillReport:
    found = DrillReport(**fields)
    if not abs(found.at) <= LAST_SECOND or not 0 <= found.at_most_per_s <= LARGEST_RATE:
        raise PeerError("a drill of an impossible time or rate", kind="range")
    return found


DRILL = form(
    pb.DrillRequest,
    _drilled,
    channels=Part(PLAIN.made, _channels),
    stamp=parts.HEADER,
    node=parts.NAME,
    fingerprint=parts.FINGERPRINT,
    at=finite("as_of_s").at("as_of_s"),
    number=capped("a drill"),
    rows=whole("rows"),
    spans=whole("spans"),
    within=whole("rows"),
    at_most_per_s=finite("a rate"),
)

DRILLED = form(pb.DrillResponse, DrillTaken, stamp=parts.HEADER, reason=parts.REASON)

QUESTION_NUMBER = whole("a question", 2**63)  # questions have random numbers below it

_NAME_OR_NONE = Part(PLAIN.made, lambda sent: parts.name(sent) if sent else "")


def _question(stamp: Stamp, **asked: Any) -> Question:
    return Question(stamp.node, stamp.group, stamp.incarnation, **asked)


QUESTION = form(
    pb.Question,
    _question,
    stamp=parts.HEADER,  # it has the parent's incarnation
    number=QUESTION_NUMBER,
    path=several(parts.NAME, "names of a way", DEEPEST),
    topic=parts.NAME,
    about=_NAME_OR_NONE,
    after=_NAME_OR_NONE,
    since_s=whole("a time"),
    step_s=whole("a step", MOST_STEP_S),
)


def _reply(**said: Any) -> QuestionReply:
    reply = QuestionReply(**said)
    if not reply.number or bool(reply.body) == bool(reply.problem):
        raise PeerError("a reply has a number, and either a body or a problem")
    if len(reply.body) > MOST_BODY:
        raise PeerError(
            f"a reply has at most {MOST_BODY} bytes, got {len(reply.body)}", kind="oversize"
        )
    return reply


REPLY = form(
    pb.ReplyRequest,
    _reply,
    stamp=parts.HEADER,
    number=QUESTION_NUMBER,
    body=Part(PLAIN.made, bytes),
    problem=parts.TEXT,
)

REPLIED = form(pb.ReplyResponse, ReplyTaken, stamp=parts.HEADER, reason=parts.REASON)
