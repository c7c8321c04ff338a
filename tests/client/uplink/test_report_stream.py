"""ReportsOnStream over a channel that is closed under it: every report ends, no thread dies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from submerge_client.uplink.over_grpc import ReportsOnStream, StreamedReport
from support.patience import until

PATIENCE_S = 1000.0


class FakeStream:
    """A stream that answers its first `answers` reports, and ends with a status when told to."""

    def __init__(self, reports: Iterator[bytes], code: grpc.StatusCode, answers: int) -> None:
        self._reports, self._code, self._answers = reports, code, answers
        self.ends = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self._answers):
            next(self._reports)
            yield b"answer"
        self.ends.wait()

    def code(self) -> grpc.StatusCode:
        return self._code

    def cancel(self) -> None:
        self.ends.set()


class FakeChannel:
    """A channel with one stream; after it, gRPC says that the channel is closed."""

    def __init__(self, code: grpc.StatusCode, answers: int) -> None:
        self._code, self._answers = code, answers
        self.streams: list[FakeStream] = []

    def stream(self, reports: Iterator[bytes]) -> FakeStream:
        if self.streams:
            raise ValueError("Cannot invoke RPC on closed channel!")
        self.streams.append(FakeStream(reports, self._code, self._answers))
        return self.streams[0]


class Sender:
    """Sends reports, and keeps those that have ended; `failures` counts as an uplink does."""

    def __init__(self, channel: FakeChannel) -> None:
        self.failures, self.ended = 0, list[StreamedReport]()
        self.reports = ReportsOnStream(channel.stream, PATIENCE_S, self._failed)

    def send(self, then: Callable[[Any], object] = lambda _: None) -> StreamedReport:
        report: StreamedReport = self.reports.future(b"report")
        report.add_done_callback(self.ended.append)
        report.add_done_callback(then)
        return report

    def _failed(self) -> None:
        self.failures += 1


def test_reports_that_cannot_be_sent_again_end_without_an_answer():
    """The channel is closed. It is counted, and their places are free."""
    channel = FakeChannel(grpc.StatusCode.OK, 1)
    sender = Sender(channel)
    reports = [sender.send()]
    until(lambda: len(sender.ended) == 1)
    reports += [sender.send() for _ in range(3)]
    channel.streams[0].ends.set()
    until(lambda: len(sender.ended) == 4)

    assert reports == sender.ended
    assert [grpc.StatusCode.UNAVAILABLE] * 3 == [report.code() for report in reports[1:]]
    assert 1 == sender.failures


def test_an_error_in_what_one_report_calls_back_ends_the_others_too():
    """It is counted, and every report ends."""

    def bug(_: Any) -> None:
        raise RuntimeError

    channel = FakeChannel(grpc.StatusCode.UNAVAILABLE, 0)
    sender = Sender(channel)
    for then in (bug, lambda _: None):
        sender.send(then)
    channel.streams[0].ends.set()
    until(lambda: len(sender.ended) == 2)

    assert 1 == sender.failures


def test_a_stream_that_no_thread_can_read_is_not_kept(monkeypatch):
    """Else all later reports would wait on it for ever."""
    channel = FakeChannel(grpc.StatusCode.OK, 1)
    sender = Sender(channel)

    def refuse(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        sender.send()

    assert sender.reports._open is None
