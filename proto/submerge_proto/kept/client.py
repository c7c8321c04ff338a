"""A client's records as protobuf, and back; and the parts that aggregators share."""

from __future__ import annotations

from typing import Any

from submerge.client.incarnation import Checkpoint
from submerge.client.measurement import MeasuredRows
from submerge.client.pending_finals import Past
from submerge.protocol.messages import Pin, Report
from submerge.protocol.session import is_whole
from submerge.schema import Schema
from submerge_proto.kept import monitor as kept_monitor
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import columns, forms, parts, triangles
from submerge_proto.wire.fields import PLAIN, Part, form, several


def _report(value: Report) -> wire.ReportRequest:
    message = forms.report(value, kept=True)
    message.header.software = value.software  # the sender's, not ours
    return message


def _report_of(message: wire.ReportRequest) -> Report:
    parts.check_version(message.header.version)
    return forms.report_of(message, kept=True)


REPORT = Part(_report, _report_of)

PIN = form(pb.Pin, Pin, parent=PLAIN, incarnation=parts.INCARNATION, top=PLAIN)


def _measured(value: MeasuredRows) -> pb.MeasuredRows:
    rows, weights = columns.bytes_of(value.rows, "<f8"), columns.bytes_of(value.weights, "<f8")
    whole = None if value.whole is None else triangles.packed(value.whole, exact=True)
    return pb.MeasuredRows(whole=whole, rows=rows, weights=weights, schema=value.schema)


def _measured_of(message: pb.MeasuredRows, kept: Report) -> MeasuredRows:
    whole = None
    if message.HasField("whole"):
        whole = triangles.unpacked(message.whole, kept.fingerprint, kept=True)
    weights = columns.array_of(message.weights, "weights")
    width = 0 if kept.moments is None else len(kept.moments.mean)
    rows = columns.array_of(message.rows, "readings", len(weights) * width)
    if message.schema:
        Schema.parse(message.schema)
    return MeasuredRows(whole, rows.reshape(len(weights), width), weights, message.schema)


_CHECKPOINT_FIELDS: Part[Any] = form(
    pb.Checkpoint, dict, report=REPORT, pin=PIN.maybe, delivered=PLAIN
)


def _checkpoint(value: Checkpoint) -> pb.Checkpoint:
    message: pb.Checkpoint = _CHECKPOINT_FIELDS.made(value)
    if value.measured is not None:
        message.measured.CopyFrom(_measured(value.measured))
    return message


def _checkpoint_of(message: pb.Checkpoint) -> Checkpoint:
    said, measured = _CHECKPOINT_FIELDS.read(message), None
    if message.HasField("measured"):
        measured = _measured_of(message.measured, said["report"])
    return Checkpoint(**said, measured=measured)


CHECKPOINT = Part(_checkpoint, _checkpoint_of, message=pb.Checkpoint)

PAST = form(
    pb.Past,
    Past,
    finals=several(CHECKPOINT),
    absorbed=parts.INCARNATION.maybe,
    lost=PLAIN,
    lifetime=PLAIN,
)


def has_whole_scatter(record: Any) -> bool:
    """Return whether a report in a client's record has a whole scatter, new to earlier versions."""
    several = record.finals if isinstance(record, Past) else (record,)
    return any(isinstance(each, Checkpoint) and is_whole(each.report) for each in several)


FORMS: dict[str, Part[Any]] = {
    "checkpoint": CHECKPOINT,
    "past": PAST,
    "model": kept_monitor.MODEL,
    "lookout": kept_monitor.MONITOR,
}
"""By the first word of a record's key."""
