"""ReportsOnStream: reports to one parent on one stream, each with an answer; or as calls.

To set up a call costs the parent more than to answer a report. So a stream stays open from one
report to the next. It begins with a report, and while it is open two threads belong to it: gRPC's,
which sends, and one that waits for answers, which come in the order of the reports.

1. A refusal ends the stream with the status that it would give a call. All reports under way end
   with that status, and the next report begins another stream.
2. A parent without room for an open stream ends it after an answer. Reports that it has not read
   go on the next stream.
3. A parent of an earlier version has no streams. Each report is then a call, until the connection
   has been lost.
4. A stream on which an answer is overdue is given up before the next report is sent.
5. Every report ends, also where the channel is closed before it could be sent again.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import grpc


class StreamedReport:
    """A report under way; to its sender it is like a call of gRPC's."""

    def __init__(self, data: bytes) -> None:
        self.data, self.since = data, time.monotonic()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[Any], object]] | None = []
        self._answer: bytes | None = None
        self._call: Any = None

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call back with this report when it has ended; at once if it has."""
        with self._lock:
            if self._callbacks is not None:
                self._callbacks.append(callback)
                return
        callback(self)

    def end(self, answer: bytes | None, call: Any) -> None:
        """End with an answer, or without one as that call has ended."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks or [], None
            self._answer, self._call = answer, call
        for callback in callbacks:
            callback(self)

    def cancelled(self) -> bool:
        """Return whether it was given up on this side."""
        return self.code() is grpc.StatusCode.CANCELLED

    def code(self) -> grpc.StatusCode:
        """Return the status that it has ended with."""
        if self._answer is not None:
            return grpc.StatusCode.OK
        code: grpc.StatusCode = self._call.code()
        return grpc.StatusCode.UNAVAILABLE if code is grpc.StatusCode.OK else code

    def details(self) -> str:
        """Return what the parent says of that."""
        return str(self._call.details())

    def trailing_metadata(self) -> Any:
        """Return what came with the status."""
        return self._call.trailing_metadata()

    def result(self) -> bytes | None:
        """Return the answer."""
        return self._answer


class ReportsOnStream:
    """The reports on one channel.

    stream, call : gRPC's, for a stream of reports and for a single one.
    patience_s : An answer that has not come by then is overdue.
    failed : Called for an error on its thread that is no network error.
    """

    def __init__(
        self, stream: Any, call: Any, patience_s: float, failed: Callable[[], object]
    ) -> None:
        self._begin, self._call, self._patience_s = stream, call, patience_s
        self._failed = failed
        self._lock = threading.Lock()
        self._open: _OpenStream | None = None
        self._by_calls = False

    def future(self, data: bytes) -> Any:
        """Send a report; return what stands for it, as a method of gRPC's does."""
        with self._lock:
            if not self._by_calls:
                report = StreamedReport(data)
                self._put(report)
                return report
        return self._call.future(data, timeout=self._patience_s)

    def connected_again(self) -> None:
        """Try streams again: the parent may be of another version by now."""
        with self._lock:
            self._by_calls = False

    def give_up_overdue(self) -> None:
        """End a stream whose oldest report is overdue."""
        with self._lock:
            stream = self._open
            if stream is None or not stream.is_overdue(self._patience_s):
                return
            self._open = None
        stream.call.cancel()

    def _put(self, report: StreamedReport) -> None:
        """Put a report on the stream, and begin one if there is none; the lock is held."""
        stream = self._open
        if stream is None:
            stream = _OpenStream(self._begin)
            threading.Thread(target=self._read, args=(stream,), name="reports", daemon=True).start()
            self._open = stream
        stream.put(report)

    def _read(self, stream: _OpenStream) -> None:
        """Hand answers over until a stream ends; on a thread of its own."""
        try:
            for answer in stream.call:
                with self._lock:
                    report = stream.under_way.popleft()
                    stream.answered += 1
                report.end(answer, stream.call)
        except grpc.RpcError:
            pass  # its code says so, too
        except Exception:  # promise 3 of an uplink: no thread dies in silence
            self._failed()
            stream.call.cancel()
        for report in self._send_again(stream):
            self._end(report, stream.call)

    def _send_again(self, stream: _OpenStream) -> deque[StreamedReport]:
        """Send again what an ended stream has left, if its status allows; return the others."""
        code, left = stream.call.code(), stream.under_way
        try:
            with self._lock:
                if self._open is stream:
                    self._open = None
                stream.outbox.put(None)  # gRPC's thread ends
                self._by_calls |= code is grpc.StatusCode.UNIMPLEMENTED
                if code is grpc.StatusCode.OK and stream.answered:
                    while left:
                        self._put(left[0])
                        left.popleft()
            if code is grpc.StatusCode.UNIMPLEMENTED:
                while left:
                    self._send_by_call(left[0])
                    left.popleft()
        except Exception:  # the channel may be closed by now
            self._failed()
        return left

    def _end(self, report: StreamedReport, call: Any) -> None:
        """End a report that has no answer; an error in what it calls back ends no other report."""
        try:
            report.end(None, call)
        except Exception:
            self._failed()

    def _send_by_call(self, report: StreamedReport) -> None:
        """Send a report for which there is no stream."""

        def ended(call: Any) -> None:
            report.end(call.result() if call.code() is grpc.StatusCode.OK else None, call)

        self._call.future(report.data, timeout=self._patience_s).add_done_callback(ended)


class _OpenStream:
    """A stream, and what is under way on it, the oldest first."""

    def __init__(self, begin: Any) -> None:
        self.outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.under_way: deque[StreamedReport] = deque()
        self.answered = 0
        self.call = begin(iter(self.outbox.get, None))

    def put(self, report: StreamedReport) -> None:
        self.under_way.append(report)
        self.outbox.put(report.data)

    def is_overdue(self, patience_s: float) -> bool:
        return bool(self.under_way) and self.under_way[0].since < time.monotonic() - patience_s
