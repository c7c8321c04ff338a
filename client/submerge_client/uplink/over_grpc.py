"""OverGrpc: the way up over gRPC, with synchronous stubs: two threads, no event loop.

A watch on the parent's stream says whether the way is open: its first message is a hello.
Joins and reports are unary calls, each with a deadline; a call that fails is not repeated
here, since the node says it again, or something newer in its place.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from submerge.messages import Incarnation, Stamp
from submerge_client.uplink import Came, Hear, Opened, Parted, check_size
from submerge_client.uplink.tls import Tls
from submerge_proto import parts
from submerge_proto.codec import Kind
from submerge_proto.v1 import aggregator_service_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["AggregatorService"].full_name

CALL_S = 10.0
"""Deadline of a call: the node's own patience."""

AGAIN_S, CAP_S = 1.0, 30.0
"""Between two tries of a watch that broke: at first, and at most, with full jitter below."""

QUIET = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
"""Failures that only mean "not now"."""

OPTIONS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 10_000),
    ("grpc.enable_retries", 0),  # one layer says things again, and it is the node
    ("grpc.use_local_subchannel_pool", 1),
)


class OverGrpc:
    """An `Uplink` over gRPC.

    Parameters
    ----------
    target : str
        host:port.
    node : str
    groups : sequence of str
        Whose models it wants to hear of.
    limit : int
        Most bytes of a message, either way.
    tls : Tls or None
        None: unprotected.
    """

    def __init__(
        self,
        target: str,
        *,
        node: str,
        groups: Sequence[str],
        limit: int,
        tls: Tls | None = None,
    ) -> None:
        self._target, self._node, self._groups, self._limit = target, node, tuple(groups), limit
        self._tls = tls
        self._hear: Hear = lambda _: None
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._streams: dict[str, Any] = {}
        self._waiting: set[Any] = set()
        self._lock = threading.Lock()
        self._parted = False

    def open(self, hear: Hear) -> None:
        """Begin to connect, one watch a group."""
        self._hear = hear
        options = (
            *OPTIONS,
            ("grpc.max_receive_message_length", self._limit),
            ("grpc.max_send_message_length", self._limit),
        )
        if self._tls is None:
            self._channel = grpc.insecure_channel(self._target, options)
        else:
            credentials = grpc.ssl_channel_credentials(
                *(_contents(path) for path in (self._tls.ca, self._tls.key, self._tls.cert))
            )
            self._channel = grpc.secure_channel(self._target, credentials, options)
        self._calls = {
            "join": self._channel.unary_unary(f"/{SERVICE}/Join"),
            "report": self._channel.unary_unary(f"/{SERVICE}/Report"),
        }
        self._watching = self._channel.unary_stream(f"/{SERVICE}/Watch")
        for group in self._groups:
            thread = threading.Thread(
                target=self._watch, args=(group,), name=f"watch {group}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def send(self, kind: Kind, group: str, data: bytes) -> None:
        """Make a call; its answer is heard."""
        check_size(kind, data, self._limit)
        if self._closing.is_set():
            return
        call = self._calls[kind].future(data, timeout=CALL_S)
        with self._lock:
            self._waiting.add(call)
        answer: Kind = "joined" if kind == "join" else "answer"
        call.add_done_callback(lambda done: self._answered(answer, done))

    def close(self) -> None:
        """Wait a moment for calls that are on their way; then end."""
        with self._lock:
            calls = list(self._waiting)
        done = threading.Event()
        closer = threading.Timer(2.0, done.set)
        closer.daemon = True
        closer.start()
        while not done.is_set():
            with self._lock:
                if not any(call in self._waiting for call in calls):
                    break
            done.wait(0.02)
        closer.cancel()
        self._closing.set()
        for stream in list(self._streams.values()):
            stream.cancel()
        self._channel.close()
        for thread in self._threads:
            thread.join(5.0)

    def _answered(self, kind: Kind, call: Any) -> None:
        """A call has ended; on one of gRPC's threads."""
        with self._lock:
            self._waiting.discard(call)
        if self._closing.is_set() or call.cancelled():
            return
        code = call.code()
        if code is grpc.StatusCode.OK:
            self._hear(Came(kind, call.result()))
        elif code not in QUIET:
            # It is open, and we are refused: nothing but a person can mend that.
            self._hear(Parted(f"refused: {code.name} {call.details()}"))

    def _watch(self, group: str) -> None:
        """Listen for hello and models, as long as the uplink is open."""
        header = parts.header(Stamp(self._node, group, Incarnation(0, 0), 0))
        request = pb.WatchRequest(header=header).SerializeToString()
        tries = 0
        while not self._closing.is_set():
            try:
                stream = self._streams[group] = self._watching(request)
                first = True
                for data in stream:
                    if first:
                        tries, first, self._parted = 0, False, False
                        self._hear(Opened())
                    self._hear(Came("watch", data))
                why = "the parent ended the stream"
            except grpc.RpcError as error:
                why = f"{error.code().name}: {error.details()}"
            if self._closing.is_set():
                return
            if not self._parted:
                self._parted = True
                self._hear(Parted(why))
            ceiling = min(CAP_S, AGAIN_S * 2.0**tries)
            tries = min(tries + 1, 16)
            self._closing.wait(random.uniform(0.1, ceiling))  # noqa: S311 (jitter is no secret)


def _contents(path: Path | None) -> bytes | None:
    """What a file of a certificate or a key holds."""
    return None if path is None else path.read_bytes()
