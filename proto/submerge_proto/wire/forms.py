"""Each kind of message as protobuf, and back. Foreign messages are checked field by field.

`codec` reads and writes bytes. What several messages share is in `parts`, `columns`, `scores` and
`alarms`. A reader raises `PeerError` for a message that no honest node sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from submerge import Array, PeerError
from submerge.pca.factor import Factors
from submerge.protocol.alarm_status import MOST_WIDENED
from submerge.protocol.messages import (
    HIGHEST,
    Answer,
    EarlierSums,
    Hello,
    Incarnation,
    Join,
    Joined,
    Model,
    Report,
    Stamp,
)
from submerge.protocol.names import LAST_SECOND
from submerge.protocol.score_trail import LAST_MINUTE, MINUTES, NO_TRAIL, ScoreTrail
from submerge.protocol.summaries import Summary
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.v1 import header_pb2
from submerge_proto.v1 import summary_pb2 as v1_pb
from submerge_proto.wire import alarms, parts, scores, summaries
from submerge_proto.wire.columns import MOST_RANK, bytes_of
from submerge_proto.wire.parts import number

# Noise that float32 cannot hold is brought within its range first. An honest root gives each
# channel a noise of at least a ten-thousandth of its variance (`LEAST` of `pca.factor`), and what
# factors hold of a channel is never more than its variance.


LEAST, LARGEST = float(np.finfo(np.float32).tiny), float(np.float32(3e38))
"""Least and largest noise, and largest loading: squares of such quotients are float64."""

STEEP = 1e8
"""Largest part of a channel that factors hold, over its noise."""


def packed(factors: Factors) -> v1_pb.Factors:
    """Return factors as a message."""
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
    """Return float32 numbers, as float64."""
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
        message.earlier.counts.CopyFrom(parts.counts(sums.counts))


def of(message: pb.ReportRequest, *, kept: bool = False) -> EarlierSums | None:
    """Return the sums that a report holds; None if it has none."""
    if not message.HasField("earlier"):
        return None
    earlier = message.earlier
    fingerprint = parts.fingerprint(earlier.fingerprint)
    holder = pb.ReportRequest()
    if earlier.HasField("subspace"):
        holder.subspace.CopyFrom(earlier.subspace)
    summary = summaries.of(holder, fingerprint, kept=kept)
    if summary is None:
        raise PeerError("expected sums of an earlier schema, got no subspace", kind="shape")
    return EarlierSums(fingerprint, summary, parts.counts_of(earlier.counts))


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


def trail(value: ScoreTrail) -> pb.ScoreTrail:
    """Return a trail as a message."""
    return pb.ScoreTrail(last_minute=value.last, levels=value.levels)


def trail_of(message: pb.ReportRequest) -> ScoreTrail:
    """Return the trail that a report has."""
    if message.fence:
        raise PeerError("expected a trail of scores from a client only, got an aggregator's")
    minute = number("last_minute", message.trail.last_minute, LAST_MINUTE)
    levels = message.trail.levels
    if not 1 <= len(levels) <= MINUTES:
        raise PeerError(
            f"a trail of scores has 1 to {MINUTES} levels, got {len(levels)}", kind="shape"
        )
    if len(levels) > minute + 1:
        raise PeerError(
            f"a trail of scores begins in 1970 or later, got {len(levels)} levels until minute"
            f" {minute} since then",
            kind="range",
        )
    return ScoreTrail(minute, levels)


NO_INCARNATION = Incarnation(0, 0)
"""In a model's header: a model belongs to a group, and to no incarnation."""

MOST_FENCES = 256
"""Past fences in a join: four times those that a node of this version remembers."""


def join(value: Join) -> pb.JoinRequest:
    """Return a join."""
    return pb.JoinRequest(
        header=parts.header(value.stamp),
        fence=value.fence,
        past_fences=parts.left(value.past_fences),
        schema=value.schema,
        early=min(value.early, parts.MOST_READINGS),
        share_points=value.share_points,
    )


def join_of(message: pb.JoinRequest) -> Join:
    """Return a join."""
    past = len(message.past_fences)
    if past > MOST_FENCES:
        raise PeerError(f"expected at most {MOST_FENCES} past fences, got {past}", kind="oversize")
    return Join(
        parts.stamp(message.header),
        parts.fence(message.fence),
        parts.left_of(message.past_fences),
        _schema_of(message.schema),
        parts.number("readings", message.early, parts.MOST_READINGS),
        message.share_points,
    )


def joined(value: Joined) -> pb.JoinResponse:
    """Return the answer to a join."""
    return pb.JoinResponse(
        header=parts.header(value.stamp),
        reason=parts.reason(value.reason),
        fence=value.fence,
        pinned=_maybe(value.pinned),
        top=value.top,
        floor_ms=value.floor,
        schema=value.schema,
        lines=parts.lines(value.lines),
        whole_scatter=value.whole_scatter,
    )


def joined_of(message: pb.JoinResponse) -> Joined:
    """Return the answer to a join."""
    return Joined(
        parts.stamp(message.header),
        parts.reason_of(message.reason),
        parts.fence(message.fence),
        parts.maybe_incarnation(message, "pinned"),
        message.top,
        parts.number("floor", message.floor_ms),
        _schema_of(message.schema),
        parts.lines_of(message.lines),
        message.whole_scatter,
    )


def report(value: Report, *, coarse: bool = False, kept: bool = False) -> pb.ReportRequest:
    """Return a report; `kept`: for a record, as `summaries.put`."""
    message = pb.ReportRequest(
        header=parts.header(value.stamp, value.software),
        final=value.final,
        pinned=parts.incarnation(value.pinned),
        fence=value.fence,
        fingerprint=bytes.fromhex(value.fingerprint),
        counts=parts.counts(value.counts),
        as_of_s=value.as_of,
        synced=value.synced,
        model_version=min(value.version, HIGHEST),
        lifetime=min(value.lifetime, parts.MOST),
        certified_until_s=value.certified_until,
    )
    summaries.put(message, value.summary, coarse=coarse, kept=kept)
    if value.moments is not None:
        message.moments.CopyFrom(parts.moments(value.moments))
    if value.census is not None:
        message.census.CopyFrom(parts.census(value.census))
    if value.scores is not None:
        message.scores.CopyFrom(scores.scores(value.scores))
    if value.alarm_status is not None:
        message.alarm_status.CopyFrom(alarms.alarm_status(value.alarm_status))
    if value.trail.levels and not kept:
        message.trail.CopyFrom(trail(value.trail))
    put(message, value.earlier, coarse=coarse, kept=kept)
    return message


def report_of(message: pb.ReportRequest, *, kept: bool = False) -> Report:
    """Return a report; `kept`: it is from one's own disk."""
    fingerprint = parts.fingerprint(message.fingerprint)
    has = message.HasField
    report = Report(
        stamp=parts.stamp(message.header),
        final=message.final,
        pinned=parts.incarnation_of(message.pinned),
        fence=parts.fence(message.fence),
        fingerprint=fingerprint,
        summary=summaries.of(message, fingerprint, kept=kept),
        moments=parts.moments_of(message.moments) if has("moments") else None,
        counts=parts.counts_of(message.counts),
        as_of=parts.real("as_of_s", message.as_of_s),
        synced=message.synced,
        version=parts.number("model_version", message.model_version, HIGHEST),
        lifetime=parts.number("lifetime", message.lifetime),
        census=parts.census_of(message.census) if has("census") else None,
        scores=scores.scores_of(message.scores) if has("scores") else None,
        software=parts.text(message.header.software, parts.SOFTWARE_LETTERS),
        certified_until=_certified_until_of(message.certified_until_s),
        alarm_status=alarms.alarm_status_of(message.alarm_status) if has("alarm_status") else None,
        trail=trail_of(message) if has("trail") else NO_TRAIL,
        earlier=of(message, kept=kept),
    )
    _check_readings(report)
    check(report)
    if report.alarm_status is not None and not report.fence:
        alarms.check_own(report.alarm_status, report.stamp.node)
    return report


def _certified_until_of(value: float) -> float:
    """Return when a certificate ends: a time that can be shown as a date."""
    if not 0 <= parts.real("certified_until_s", value) <= LAST_SECOND:
        raise PeerError(
            f"a certificate ends from 1970 to 9999, got {value} s since 1970", kind="range"
        )
    return value


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


def answer(value: Answer) -> pb.ReportResponse:
    """Return the answer to a report."""
    return pb.ReportResponse(
        header=parts.header(value.stamp),
        reason=parts.reason(value.reason),
        fence=value.fence,
        pinned=_maybe(value.pinned),
        top=value.top,
        newest=value.newest,
        root=_maybe(value.root),
        durable=value.durable,
        floor_ms=value.floor,
        desired_states=alarms.desired_states(value.desired_states),
    )


def answer_of(message: pb.ReportResponse) -> Answer:
    """Return the answer to a report."""
    return Answer(
        parts.stamp(message.header),
        parts.reason_of(message.reason),
        parts.fence(message.fence),
        parts.maybe_incarnation(message, "pinned"),
        message.top,
        parts.number("newest", message.newest),
        parts.maybe_incarnation(message, "root"),
        parts.number("durable", message.durable),
        parts.number("floor", message.floor_ms),
        alarms.desired_states_of(message.desired_states),
    )


def hello(value: Hello) -> pb.Hello:
    """Return a parent's hello."""
    header = parts.header(Stamp(value.node, "", value.incarnation, 0))
    return pb.Hello(header=header, top=value.top, boot=value.boot)


def hello_of(message: pb.Hello) -> Hello:
    """Return a parent's hello."""
    header = message.header
    incarnation = parts.incarnation_of(header.incarnation)
    return Hello(parts.name(header.node), incarnation, message.top, message.boot)


def model(value: Model) -> pb.Model:
    """Return a model."""
    p50, p99, most = value.staleness
    message = pb.Model(
        header=parts.header(Stamp("", value.group, NO_INCARNATION, 0)),
        version=value.version,
        schema=value.schema,
        counts=parts.counts(value.counts),
        nodes=min(value.nodes, parts.MOST),
        staleness_p50_s=p50,
        staleness_p99_s=p99,
        staleness_max_s=most,
        created_s=value.created,
        expires_s=value.expires,
        rank=value.rank,
    )
    summaries.put(message, value.summary)
    if value.widened > 1:
        message.widened = min(value.widened, MOST_WIDENED)
    if message.HasField("subspace"):  # a summary that has faded to nothing is left out
        message.factors.extend(map(packed, value.factors))
    message.block_s = value.block_s
    if value.limits is not None:
        message.limits.CopyFrom(scores.limits(value.limits))
    if value.maxima is not None:
        message.maxima.CopyFrom(scores.maxima(value.maxima))
    return message


def model_of(message: pb.Model) -> Model:
    """Return a model."""
    fingerprint, schema = parts.fingerprint_of_text(message.schema), None
    summary = summaries.of(message, fingerprint)
    limits = scores.limits_of(message.limits) if message.HasField("limits") else None
    maxima = scores.maxima_of(message.maxima) if message.HasField("maxima") else None
    if any(part is not None for part in (summary, limits, maxima)):
        schema = parts.schema_of(message.schema)
    if schema is not None and summary is not None:
        summaries.check_fits(summary, schema)
    if schema is not None and schema.linear:
        # Not refused: one child's third sketch would cost all others the model.
        limits = limits and replace(limits, linear=())
        maxima = maxima and maxima.without("linear")
    return Model(
        parts.name(message.header.group),
        parts.number("version", message.version, HIGHEST),
        message.schema,
        fingerprint,
        summary,
        limits,
        parts.counts_of(message.counts),
        parts.number("nodes", message.nodes),
        (
            parts.real("staleness", message.staleness_p50_s),
            parts.real("staleness", message.staleness_p99_s),
            parts.real("staleness", message.staleness_max_s),
        ),
        created=parts.real("created_s", message.created_s),
        expires=parts.real("expires_s", message.expires_s),
        maxima=maxima,
        factors=unpacked(message.factors, summary),
        rank=parts.number("rank", message.rank, MOST_RANK),
        widened=_widened_of(message.widened),
        block_s=scores.block_s_of(message.block_s),
    )


def _widened_of(value: float) -> float:
    """Return the factor on limits; 1 from a root that knows of none."""
    return max(parts.within("widened", value, MOST_WIDENED), 1.0)


def _schema_of(text: bytes) -> bytes:
    """Return a schema's text, if its size is bearable; the node checks whether it is a schema."""
    parts.schema_of(text)
    return text


def _maybe(value: Incarnation | None) -> header_pb2.Incarnation | None:
    return None if value is None else parts.incarnation(value)
