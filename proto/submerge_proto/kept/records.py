"""pack(), unpack(): the records that nodes keep, as bytes, and back; a `PeerError` if one is off.

The first word of a record's key selects its form. Checkpoints and stores have checksums, but a
record may be from another version of submerge. So lengths, shapes and finiteness are checked, and
the ranges of our own numbers are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from submerge import PeerError
from submerge.aggregator.rows.pool import Row
from submerge.protocol.machine import Key
from submerge.protocol.messages import Report
from submerge_proto.kept import client as kept_by_client
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import alarms, parts
from submerge_proto.wire.fields import Part


def pack(key: Key, record: Any) -> bytes:
    return bytes(_form(key).made(record).SerializeToString())


def unpack(key: Key, data: bytes) -> Any:
    """Return the record that bytes hold; raises PeerError if they hold none."""
    form = _form(key)
    try:
        record = form.read(form.message.FromString(data))
    except (DecodeError, ValueError, PeerError) as error:
        why = "" if isinstance(error, DecodeError | UnicodeDecodeError) else f": {error}"
        raise PeerError(f"expected a whole record {'/'.join(key)} of this version{why}") from error
    if key[0] == "row" and key != row_key(record):
        raise PeerError(f"expected the record {'/'.join(key)}, got {'/'.join(row_key(record))}")
    if key[0] == "history" and key[2:] != (record.name,):
        raise PeerError(f"expected the record {'/'.join(key)}, got history {record.name}")
    return record


def unpack_all(kept: Mapping[Key, bytes]) -> dict[Key, Any]:
    return {key: unpack(key, data) for key, data in kept.items()}


def row_key(row: Row) -> Key:
    node, group, (created_ms, nonce), _ = row.report.stamp
    return "row", group, node, str(created_ms), str(nonce)


def _form(key: Key) -> Part[Any]:
    word = key[0] if key else ""
    form = kept_by_client.FORMS.get(word)
    if form is None:
        # Imported late: a client keeps none of these, and is 0.4 MiB smaller without.
        from submerge_proto.kept import aggregator as kept_by_aggregator

        form = kept_by_aggregator.FORMS.get(word)
    if form is None:
        raise PeerError(f"expected a known record, got {'/'.join(key)!r}")
    return form


# Encoding the report again would take as long as decoding it did. What the reader has dropped or
# cut is dropped here, too: fields of a later version, which that version would find in its store
# unchecked, and text for people.


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
            return pack(key, record)
        message = pb.Row(as_of_s=record.as_of, digest=record.digest, as_received=True)
        message.report.MergeFromString(data)
        message.DiscardUnknownFields()
        message.report.ClearField("trail")
        header, status = message.report.header, record.report.alarm_status
        header.versions[:] = [parts.VERSION]
        header.software = record.report.software
        if status is not None:
            message.report.alarm_status.CopyFrom(alarms.ALARM_STATUS.made(status))
        return bytes(message.SerializeToString())
