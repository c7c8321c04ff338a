"""A client's records as protobuf, and back; and the parts that aggregators share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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


class RecordForm(NamedTuple):
    """How one kind of record is kept: the message, its maker and its reader."""

    message: Any
    made: Callable[[Any], Any]
    read: Callable[[Any], Any]


def report(value: Report) -> wire.ReportRequest:
    """Return a report for a record."""
    message = forms.report(value, kept=True)
    message.header.software = value.software  # the sender's, not ours
    return message


def report_of(message: wire.ReportRequest) -> Report:
    """Return the report in a record."""
    parts.check_version(message.header.version)
    return forms.report_of(message, kept=True)


def pin(value: Pin) -> pb.Pin:
    """Return a pin as a message."""
    return pb.Pin(
        parent=value.parent, incarnation=parts.incarnation(value.incarnation), top=value.top
    )


def pin_of(message: Any) -> Pin | None:
    """Return the pin in a record; None if there is none."""
    if not message.HasField("pin"):
        return None
    kept = message.pin
    return Pin(kept.parent, parts.incarnation_of(kept.incarnation), kept.top)


def _checkpoint(value: Checkpoint) -> pb.Checkpoint:
    pinned = None if value.pin is None else pin(value.pin)
    made = pb.Checkpoint(report=report(value.report), pin=pinned, delivered=value.delivered)
    if value.measured is not None:
        made.measured.CopyFrom(_measured(value.measured))
    return made


def _checkpoint_of(message: pb.Checkpoint) -> Checkpoint:
    kept, measured = report_of(message.report), None
    if message.HasField("measured"):
        measured = _measured_of(message.measured, kept)
    return Checkpoint(kept, pin_of(message), message.delivered, measured)


def _measured(value: MeasuredRows) -> pb.MeasuredRows:
    rows, weights = columns.bytes_of(value.rows, "<f8"), columns.bytes_of(value.weights, "<f8")
    whole = None if value.whole is None else triangles.packed(value.whole, exact=True)
    return pb.MeasuredRows(whole=whole, rows=rows, weights=weights, schema=value.schema)


def _measured_of(message: pb.MeasuredRows, kept: Report) -> MeasuredRows:
    """Return the readings that a report's incarnation has measured."""
    whole = None
    if message.HasField("whole"):
        whole = triangles.unpacked(message.whole, kept.fingerprint, kept=True)
    weights = columns.array_of(message.weights, "weights")
    width = 0 if kept.moments is None else len(kept.moments.mean)
    rows = columns.array_of(message.rows, "readings", len(weights) * width)
    if message.schema:
        Schema.parse(message.schema)
    return MeasuredRows(whole, rows.reshape(len(weights), width), weights, message.schema)


def _past(value: Past) -> pb.Past:
    absorbed = None if value.absorbed is None else parts.incarnation(value.absorbed)
    finals = map(_checkpoint, value.finals)
    return pb.Past(finals=finals, absorbed=absorbed, lost=value.lost, lifetime=value.lifetime)


def _past_of(message: pb.Past) -> Past:
    finals = tuple(map(_checkpoint_of, message.finals))
    absorbed = parts.maybe_incarnation(message, "absorbed")
    return Past(finals, absorbed, message.lost, message.lifetime)


def has_whole_scatter(record: Any) -> bool:
    """Return whether a report in a client's record has a whole scatter, new to earlier versions."""
    several = record.finals if isinstance(record, Past) else (record,)
    return any(isinstance(each, Checkpoint) and is_whole(each.report) for each in several)


FORMS = {
    "checkpoint": RecordForm(pb.Checkpoint, _checkpoint, _checkpoint_of),
    "past": RecordForm(pb.Past, _past, _past_of),
    "model": RecordForm(wire.Model, forms.model, kept_monitor.model_of),
    "lookout": RecordForm(pb.NodeMonitor, kept_monitor.monitor, kept_monitor.monitor_of),
}
"""By the first word of a record's key."""
