"""ReceivedReports: rows are written with the bytes of the reports that they hold.

What a child has sent is bytes already, and `codec.decode` has checked them. Encoding the report
again would take as long as decoding it did. What the reader has dropped or cut is dropped here,
too: fields of a later version, which that version would find in its store unchecked, and text for
people. So is the trail of scores, which no store keeps.
"""

from __future__ import annotations

from typing import Any

from submerge.aggregator.rows.pool import Row
from submerge.protocol.machine import Key
from submerge.protocol.messages import Report
from submerge_proto.kept import records
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import alarms, parts


class ReceivedReports:
    """The reports of one batch, and the bytes that each came as."""

    def __init__(self) -> None:
        self._came: dict[Report, bytes] = {}

    def note(self, report: Report, data: bytes) -> None:
        """Note what `codec.decode` has read as this report."""
        self._came[report] = data

    def clear(self) -> None:
        """Forget all reports: the batch is over."""
        self._came.clear()

    def pack(self, key: Key, record: Any) -> bytes:
        """Return a record as bytes that `records.unpack` reads."""
        data = self._came.get(record.report) if isinstance(record, Row) else None
        if data is None:
            return records.pack(key, record)
        message = pb.Row(as_of_s=record.as_of, digest=record.digest, as_received=True)
        message.report.MergeFromString(data)
        message.DiscardUnknownFields()
        message.report.ClearField("trail")
        header, status = message.report.header, record.report.alarm_status
        header.versions[:] = [parts.VERSION]
        header.software = record.report.software
        if status is not None:
            message.report.alarm_status.CopyFrom(alarms.alarm_status(status))
        return bytes(message.SerializeToString())
