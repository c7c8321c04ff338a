"""Rows with the bytes that their reports came as: read again, they are what the border has read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from submerge.aggregator.rows.pool import Row
from submerge.client.incarnation import Checkpoint
from submerge.protocol.messages import Report
from submerge.protocol.report_bytes import digest
from submerge.protocol.score_trail import LAST_MINUTE, MINUTES, NO_TRAIL, ScoreTrail
from submerge.protocol.summaries import Subspaces
from submerge_proto.kept import records
from submerge_proto.kept.records import ReceivedReports
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import codec
from support.nodes import EPOCH
from support.wire import a_report, as_kept, reported, reports

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "v1").glob("report*.bin"))


def row_of(data: bytes) -> tuple[Row, Row, pb.Row]:
    """Return a row as it is held, the row that its record gives, and the record."""
    report = codec.decode("report", data)
    assert isinstance(report, Report)
    row, received = Row(report, b"", EPOCH), ReceivedReports()
    received.note(report, data)
    packed = received.pack(records.row_key(row), row)
    return row, records.unpack(records.row_key(row), packed), pb.Row.FromString(packed)


@pytest.mark.parametrize("path", GOLDEN, ids=[path.stem for path in GOLDEN])
def test_a_golden_report_is_held_as_it_came(path):
    """Every field that a report may have; and the same report again has the same digest."""
    row, kept, message = row_of(path.read_bytes())

    assert message.as_received
    assert reported(as_kept(row)) == reported(kept)
    assert kept.came_as(codec.decode("report", path.read_bytes()), Subspaces(2))


@given(reports())
def test_the_digest_of_a_row_survives_the_store(report):
    """A report that comes again after a restart is the same one."""
    data = codec.encode(report)
    row, kept, _ = row_of(data)

    assert digest(row.report, Subspaces(2)) == digest(kept.report, Subspaces(2))


def test_what_the_border_has_dropped_is_not_kept():
    """Fields of a later version, a thousand versions, and text that was cut."""
    message = wire.ReportRequest.FromString(codec.encode(a_report()))
    plain = len(row_of(message.SerializeToString())[2].SerializeToString())
    message.header.versions.extend([1] * 1000)
    message.header.software = "s" * 900
    data = message.SerializeToString() + b"\xc2\x3e\xd0\x0f" + bytes(2000)
    row, kept, record = row_of(data)

    assert len(record.SerializeToString()) < plain + 100
    assert "s" * 64 == kept.report.software
    assert reported(as_kept(row)) == reported(kept)


def test_a_row_is_encoded_where_its_report_is_not_as_it_came():
    """Alarms of the future were moved: the record holds the times that the row holds."""
    report = a_report()
    received = ReceivedReports()
    received.note(report, codec.encode(report))
    row = Row(replace(report, lifetime=report.lifetime + 1), b"d" * 16, EPOCH)
    packed = received.pack(records.row_key(row), row)

    assert not pb.Row.FromString(packed).as_received
    assert reported(as_kept(row)) == reported(records.unpack(records.row_key(row), packed))


def test_bytes_are_forgotten_with_their_batch():
    """They would take as much memory as the rows."""
    report, received = a_report(), ReceivedReports()
    received.note(report, codec.encode(report))
    received.clear()
    row = Row(report, b"", EPOCH)

    assert not pb.Row.FromString(received.pack(records.row_key(row), row)).as_received


def test_no_store_keeps_a_trail_of_scores():
    """Neither a row with the bytes of its report, nor one that is encoded, nor a checkpoint."""
    with_one = replace(a_report(), trail=ScoreTrail(LAST_MINUTE, bytes(range(1, MINUTES + 1))))
    without = replace(with_one, trail=NO_TRAIL)
    sizes = []
    for each in (with_one, without):
        row, kept, message = row_of(codec.encode(each))
        assert NO_TRAIL == kept.report.trail
        checkpoint = Checkpoint(each, None, 0)
        sizes.append(
            (
                message.ByteSize(),
                len(records.pack(records.row_key(row), row)),
                len(records.pack(("checkpoint",), checkpoint)),
            )
        )

    assert sizes[0] == sizes[1]
