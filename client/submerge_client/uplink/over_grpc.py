"""GrpcUplink: the uplink over gRPC, with synchronous stubs: threads, and no event loop.

The parent's watch stream shows whether the connection is open: its first message is a hello. What
has failed is not repeated here: the node sends it again, or something newer.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import grpc

from submerge import UsageError
from submerge.protocol.messages import Incarnation, Stamp
from submerge.protocol.retry import Retry
from submerge_client.memory import SystemEntropy
from submerge_client.uplink import (
    Came,
    Hear,
    Heard,
    JobQueue,
    Opened,
    Parted,
    SendRefused,
    Slowed,
    check_size,
)
from submerge_client.uplink.tls import ParentName, Tls
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, parts
from submerge_proto.wire.codec import Kind


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
        return self.code() is grpc.StatusCode.CANCELLED

    def code(self) -> grpc.StatusCode:
        if self._answer is not None:
            return grpc.StatusCode.OK
        code: grpc.StatusCode = self._call.code()
        return grpc.StatusCode.UNAVAILABLE if code is grpc.StatusCode.OK else code

    def details(self) -> str:
        return str(self._call.details())

    def trailing_metadata(self) -> Any:
        return self._call.trailing_metadata()

    def result(self) -> bytes | None:
        return self._answer


class ReportsOnStream:
    """The reports on one channel, whose answers are overdue after `patience_s`."""

    def __init__(self, stream: Any, patience_s: float, failed: Callable[[], object]) -> None:
        self._begin, self._patience_s, self._failed = stream, patience_s, failed
        self._lock = threading.Lock()
        self._open: _OpenStream | None = None

    def future(self, data: bytes) -> StreamedReport:
        """Send a report; return what stands for it, as a method of gRPC's does."""
        report = StreamedReport(data)
        with self._lock:
            self._put(report)
        return report

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
        left = stream.under_way
        try:
            with self._lock:
                if self._open is stream:
                    self._open = None
                stream.outbox.put(None)  # gRPC's thread ends
                if stream.call.code() is grpc.StatusCode.OK and stream.answered:
                    while left:
                        self._put(left[0])
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


MOST_JOB_CALLS = 2
"""Calls at once. The next message goes when the parent has taken one: it sets the pace."""


class JobCalls:
    """The calls with messages of jobs on one channel; the parent has not taken those `lost`."""

    def __init__(self, call: Any, patience_s: float, failed: Callable[[], object]) -> None:
        self._call, self._patience_s, self._failed = call, patience_s, failed
        # A call that has ended runs its new callback at once, on this very thread.
        self._lock = threading.RLock()
        self._queue: JobQueue[bytes] = JobQueue()
        self._under_way = self.lost = 0
        self._closed = False

    def send(self, data: bytes) -> None:
        """Send a message as soon as its turn comes."""
        with self._lock:
            if not self._closed:
                self._queue.put(data, len(data))
                self._next()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._queue.clear()

    def _next(self) -> None:
        """Make the calls that are due; the lock is held."""
        while self._queue and self._under_way < MOST_JOB_CALLS and not self._closed:
            data = self._queue.take()
            try:
                call = self._call.future(data, timeout=self._patience_s)
            except Exception:  # the channel may be closed by now
                self._failed()
                self._queue.clear()
                return
            self._under_way += 1
            call.add_done_callback(self._ended)

    def _ended(self, call: Any) -> None:
        """Go on after a call; on one of gRPC's threads."""
        with self._lock:
            self._under_way -= 1
            self.lost += call.code().value[0] != 0
            self._next()


SERVICE = pb.DESCRIPTOR.services_by_name["AggregatorService"].full_name

CALL_S = 10.0  # deadline of a call: as long as the node itself waits

MOST_CALLS = 8
"""Calls of one kind and group at once: a report, and finals of earlier incarnations. Of further
messages, the newest waits for one of them to end."""

MOST_REPLIES = 64  # the same for replies to questions, which do not replace each other
AGAIN_S, CAP_S = 0.5, 30.0  # least and longest wait before a broken watch is tried again
CLOSE_S = 2.0  # for calls that are on their way when it is closed
THROTTLED = "submerge-throttled"  # metadata of an UNAVAILABLE: this node sent too much

ANSWERS: dict[Kind, Kind] = {
    "join": "joined",
    "report": "answer",
    "drill": "drilled",
    "reply": "replied",
}
"""Kinds of messages that go up, and of their answers."""

QUIET = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
"""Failures that only mean "not now"."""

OPTIONS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 10_000),
    ("grpc.enable_retries", 0),  # one layer repeats messages, and it is the node
    ("grpc.use_local_subchannel_pool", 1),
)


class GrpcUplink:
    """An `Uplink` over gRPC; the parent has to prove a name, None: the target's host."""

    def __init__(
        self,
        target: str,
        *,
        node: str,
        groups: Sequence[str],
        limit: int,
        tls: Tls | None = None,
        name: ParentName | None = None,
    ) -> None:
        self._target, self._node, self._groups, self._limit = target, node, tuple(groups), limit
        self._tls, self._name, self._by_host = tls, name, False
        if tls is not None:
            tls.context()  # an unusable file raises here, not on a thread
        self.failures = 0
        self._hear: Hear = lambda _: None
        self._channel: Any = None
        self._stamp: tuple[object, ...] = ()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._streams: dict[str, Any] = {}
        self._calls: dict[tuple[Kind, str], set[Any]] = {}
        self._waiting: dict[tuple[Kind, str], bytes] = {}
        # A call that has ended runs its new callback at once, on this very thread.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._why: str | None = None

    def open(self, hear: Hear) -> None:
        """Begin to connect, one watch a group."""
        self._hear = hear
        self._connect()
        for group in self._groups:
            thread = threading.Thread(
                target=self._watch, args=(group,), name=f"watch {group}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def send(self, kind: Kind, group: str, data: bytes, *, final: bool = False) -> None:
        """Make a call, whose answer goes to `hear`. Over `MOST_CALLS` calls it is the next."""
        check_size(kind, data, self._limit)
        with self._lock:
            if self._closing.is_set() or self._channel is None:
                return
            if kind == "job":
                self._jobs.send(data)
                return
            self._reports[group].give_up_overdue()
            self._waiting[kind, group] = data
            self._call(kind, group)

    def close(self) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: not self._waiting and not any(self._calls.values()), CLOSE_S
            )
            self._closing.set()
            if self._channel is not None:
                self._jobs.close()
        for stream in list(self._streams.values()):
            stream.cancel()
        if self._channel is not None:
            self._channel.close()
        for thread in self._threads:
            thread.join(CLOSE_S)

    def _connect(self) -> None:
        options = (
            *OPTIONS,
            ("grpc.max_receive_message_length", self._limit),
            ("grpc.max_send_message_length", self._limit),
        )
        if self._tls is None:
            channel = grpc.insecure_channel(self._target, options)
        else:
            stamp = self._tls.stamp()
            if self._name is not None:
                options += self._name.options()
                self._by_host = self._name.by_host
            credentials = grpc.ssl_channel_credentials(*self._tls.contents())
            self._stamp = stamp
            channel = grpc.secure_channel(self._target, credentials, options)
        self._channel = channel
        self._methods: dict[Kind, Any] = {
            kind: channel.unary_unary(f"/{SERVICE}/{kind.capitalize()}")
            for kind in ("join", "drill", "reply")
        }
        new_stream = partial(
            ReportsOnStream,
            channel.stream_stream(f"/{SERVICE}/Reports"),
            CALL_S,
            self._note_failure,
        )
        # A group does not wait for the answers of another.
        self._reports: dict[str, ReportsOnStream] = defaultdict(new_stream)
        self._jobs = JobCalls(channel.unary_unary(f"/{SERVICE}/Job"), CALL_S, self._note_failure)
        self._watching = channel.unary_stream(f"/{SERVICE}/Watch")

    def _renew(self) -> None:
        """After a break, use changed certificates, and check the parent's other name, if any."""
        # An open connection is left alone: its identity was proven when it began.
        with self._lock:
            if self._tls is None or self._closing.is_set():
                return
            renamed = self._name is not None and self._name.by_host != self._by_host
            if self._tls.stamp() == self._stamp and not renamed:
                return
            old = self._channel
            try:
                self._connect()
            except UsageError:
                return  # half replaced: the old ones may still work, and the next try looks again
        old.close()

    def _call(self, kind: Kind, group: str) -> None:
        """Send what waits, if there is room for one more call; the lock is held."""
        calls = self._calls.setdefault((kind, group), set())
        most = MOST_REPLIES if kind == "reply" else MOST_CALLS
        if len(calls) >= most or (kind, group) not in self._waiting:
            return
        data = self._waiting.pop((kind, group))
        if kind == "report":
            call = self._reports[group].future(data)
        else:
            call = self._methods[kind].future(data, timeout=CALL_S)
        calls.add(call)
        call.add_done_callback(lambda done: self._answered(kind, group, done))

    def _answered(self, kind: Kind, group: str, call: Any) -> None:
        """A call has ended; on one of gRPC's threads."""
        with self._changed:
            self._calls[kind, group].discard(call)
            closing = self._closing.is_set()
            if not closing:
                self._call(kind, group)
            self._changed.notify_all()
        if closing or call.cancelled():
            return
        code = call.code()
        if code is grpc.StatusCode.OK:
            self._hand(Came(ANSWERS[kind], call.result()))
        elif THROTTLED in dict(call.trailing_metadata() or ()):
            self._hand(Slowed(str(call.details())))
        elif code not in QUIET:
            # The connection works and the message is refused: only a person can change that.
            self._hand(SendRefused(f"{code.name}: {call.details()}"))

    def _watch(self, group: str) -> None:
        """Listen for hello and models, as long as the uplink is open."""
        header = parts.header(Stamp(self._node, group, Incarnation(0, 0), 0))
        request = pb.WatchRequest(header=header, jobs=True).SerializeToString()
        retry, rng = Retry(AGAIN_S, CAP_S), SystemEntropy()
        while not self._closing.is_set():
            channel = self._channel
            opened, proven, why = self._listen(group, request)
            if self._closing.is_set():
                return
            if self._name is not None and channel is self._channel:
                why = self._name.parted(why, proven=proven)
                self._renew()  # at once: nothing more goes to a server by its host name
                if self._name.by_host:
                    continue  # it is the parent, with a certificate from before there were roles
            if why != self._why:
                self._why = why
                self._hand(Parted(why))
            if opened:
                retry.stop()
            now = time.monotonic()
            retry.tried(now, rng)
            self._closing.wait(retry.at - now)
            self._renew()

    def _listen(self, group: str, request: bytes) -> tuple[bool, bool, str]:
        """Listen to the end; return whether it was open, the name proven, and why it ended."""
        opened = False
        try:
            stream = self._streams[group] = self._watching(request)
            for data in stream:
                if not opened:
                    opened, self._why = True, None
                    if not self._hand(Opened()):
                        return True, True, "a bug in this program, please report it"
                self._hand(Came(*codec.of_watch(data)))
        except grpc.RpcError as error:
            proven = opened or error.code() not in QUIET
            return opened, proven, f"{error.code().name}: {error.details()}"
        except Exception as error:  # promise 3: no thread dies in silence
            self.failures += 1
            return opened, opened, f"{type(error).__name__}: {error}"
        finally:
            self._streams.pop(group, None)
        return opened, True, "the parent ended the stream"

    def _note_failure(self) -> None:
        self.failures += 1

    def _hand(self, heard: Heard) -> bool:
        """Call `hear`; return whether it took the event. What it raises ends no thread."""
        try:
            self._hear(heard)
        except Exception:
            self.failures += 1
            return False
        return True
