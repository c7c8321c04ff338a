"""Streams of reports that stay open: how many, and how many of one sender."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.protocol.messages import Answer, Incarnation, Reason, Stamp
from submerge_aggregator.downlink import UNPROVEN
from submerge_aggregator.downlink.message_calls import (
    CallSender,
    OpenReportStream,
    ReportStreams,
    turns_away,
)
from submerge_aggregator.downlink.over_grpc import GrpcDownlink
from submerge_aggregator.downlink.readings import LEAST_PLACES, SHARES, CallsUnderWay, ReadingLimits
from submerge_proto.wire import codec

ANSWER = codec.encode(Answer(Stamp("c", "g", Incarnation(1, 1), 1), Reason.ACK))


def streams_of(places: int, size: int = 1000) -> ReportStreams:
    """Return streams with so many places, open for children."""
    streams = ReportStreams(size, ReadingLimits(2 * size * places))
    streams.open()
    return streams


def sender(who: str) -> CallSender:
    return CallSender("ipv4:1", who, who, UNPROVEN)


@given(st.integers(1, 64 << 20), st.integers(1000, 8 << 20))
def test_all_messages_that_may_arrive_are_within_the_budget(budget, size):
    """Those of calls, in two copies, and one on each stream; but for a few places in any case."""
    limits = ReadingLimits(budget)
    calls, streams = CallsUnderWay(size, limits), ReportStreams(size, limits)
    jobs = CallsUnderWay(size, limits, limits.job_bytes)

    assert jobs.most <= max(limits.job_bytes, LEAST_PLACES * 2 * size)
    assert calls.most <= max(limits.call_bytes, LEAST_PLACES * 2 * size)
    assert streams.most <= max(limits.stream_bytes, LEAST_PLACES * size)
    assert limits.call_bytes + limits.stream_bytes + limits.job_bytes == budget


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_no_sender_has_more_than_its_share_and_all_no_more_than_there_are(steps):
    """Whatever order they come and go in; what is released is free again."""
    streams, held = streams_of(16), list[OpenReportStream]()
    for who, comes in steps:
        if comes:
            stream = streams.keep(sender(who), ANSWER)
            had = Counter(each.sender.who for each in held)[who]
            assert (stream is None) == (had >= 16 // SHARES or len(held) >= 16)
            held += [stream] if stream else []
        elif held:
            streams.release(held.pop(0))
        assert len(held) == len(streams)
        assert streams.used == 1000 * len(held) <= streams.most


def test_a_full_house_keeps_no_more_streams_open():
    """Nor does one that is not open yet, or closes."""
    streams = streams_of(16)
    kept = [streams.keep(sender(f"c{i}"), ANSWER) for i in range(17)]

    assert [True] * 16 + [False] == [each is not None for each in kept]
    streams.close()
    streams.release(kept[0])
    assert streams.keep(sender("d"), ANSWER) is None


def test_an_answer_names_the_child_and_its_group():
    """By these a stream is cut when its node is refused."""
    stream = streams_of(16).keep(sender("c"), ANSWER)

    assert ("c", "g") == (stream.node, stream.group)


def test_what_may_be_read_reaches_its_limit_where_all_places_are_taken():
    """The metric counts open streams, and messages of jobs, in both of its numbers."""
    downlink = GrpcDownlink("127.0.0.1:0", limit=1000, limits=ReadingLimits(64_000))
    calls = downlink.calls
    calls.streams.open()
    calls.readings.read = calls.readings.places
    calls.job_readings.read = calls.job_readings.places
    before, most = downlink.reading
    kept = [calls.streams.keep(sender(f"c{i}"), ANSWER) for i in range(calls.streams.places)]

    assert all(kept)
    assert before < most
    assert (most, most) == downlink.reading


@pytest.mark.parametrize("reason", Reason)
def test_a_node_that_may_not_report_is_turned_away(reason):
    """Denied by its certificate or the roster, or banned; any other answer keeps the stream."""
    answer = Answer(Stamp("c", "g", Incarnation(1, 1), 1), reason)

    assert (reason in (Reason.DENIED, Reason.BANNED)) == turns_away(codec.encode(answer))


def test_an_answer_that_cannot_be_read_keeps_no_stream():
    """It is ours, so this is a bug; the stream ends after it, in order."""
    assert turns_away(b"\xff")
