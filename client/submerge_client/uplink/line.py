"""Line: one connection to an MQTT broker, kept up by a thread of its own, for either end.

It reports when it opens and why it closes, hands over what arrives, and publishes at QoS 1.

1. Only the line's own thread touches paho. Other threads `put` and ring.
2. Each connection has a new paho client. A reused client sends what it still holds before
   anything newer, and a message that the broker refuses would end every later connection.
3. Only the newest publication of each key waits. At most `WINDOW` messages, one for each key,
   are unacknowledged; they are lost with their connection. What is put `later` goes when nothing
   else waits, at most `LATER` at a time, and is lost without a connection. A broker may hang up
   because its rules forbid such a message: after the second time none is put for `BARRED_S`.
4. Any exception, of paho, of the network or of a callback, ends the connection and is given as
   the reason; then it is tried again. paho's own thread would end in silence.
5. The wait is `Retry`'s, up to `LONGEST_WAIT_S`. It is short again only after a connection that
   held as long: paho takes any CONNACK for success, and two processes of one name would
   disconnect each other once a second. The next follows at once where a token ends.
6. The thread waits with `selectors`: paho's own loop uses `select`, which ends at file 1024,
   and an aggregator has more connections than that.

It speaks MQTT 5, in which a broker says its limits and why it refuses, and 3.1.1 to one that does
not answer that.
"""

from __future__ import annotations

import math
import selectors
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import MQTTErrorCode

from submerge import UsageError
from submerge.protocol.retry import Retry
from submerge_client.memory import SystemEntropy
from submerge_client.uplink import JobQueue
from submerge_client.uplink.broker import (
    Broker,
    BrokerLimits,
    Login,
    Parting,
    Publication,
    parts_of,
    reason,
    words,
)
from submerge_client.uplink.paho_client import RENEWED_AT, after, paho_client
from submerge_client.uplink.waker import Waker

WINDOW = 20
"""Most unacknowledged messages. Further ones wait here, where a newer one replaces them."""

LATER = 4  # most unacknowledged messages that were put `later`

HANGS_UP_S, BARRED_S = 2.0, 600.0
"""A broker that hangs up so soon after a message that was put `later`, twice, gets none for a
while: else messages that it forbids would cost all others their connection, again and again."""

KEEPALIVE_S = 60  # seconds of silence before a side pings; less detects a dead connection sooner
PATIENCE_S = 10.0  # how long a broker may take to accept the connection and grant all topics
SILENT_S = 3.0  # how long it may say nothing to MQTT 5, before it is asked in 3.1.1
UNACKNOWLEDGED_S = 30.0  # how long a message may stay unacknowledged before another try

LONGEST_WAIT_S = 60.0
"""Longest wait between two tries; also, how long a connection must hold to shorten the wait."""

UNSUPPORTED = 0x84  # the answer to a CONNECT of a version that a broker does not speak

GRACE_S = 1.0  # for messages that are on their way when the line is closed
LOOK_S = 5.0  # how long the thread sleeps at most: paho handles its keepalive when it is called


class BrokerConnection:
    """One connection to a broker, kept up, under a client id that replaces an older connection.

    will : Is published when it breaks.
    opened, parted : The line's thread calls these when every topic is granted, and with a reason
        after each connection and failed try; never after `close` has returned.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        name: str,
        opened: Callable[[], None],
        parted: Callable[[str], None],
        topics: Sequence[str] = (),
        came: Callable[[str, bytes], None] = lambda *_: None,
        will: Publication | None = None,
        first_wait_s: float = 1.0,
    ) -> None:
        if broker.tls is not None:
            broker.tls.context()  # an error is raised now; each connection reads the files again
        self._broker, self._name, self._topics, self._will = broker, name, tuple(topics), will
        self._on_opened, self._on_parted, self._on_came = opened, parted, came
        self._first_wait_s = first_wait_s
        self.is_open = False
        self.failures = 0
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, Publication] = {}
        self._later: JobQueue[Publication] = JobQueue()
        self._later_at, self._later_from, self._hang_ups = -math.inf, -math.inf, 0
        self._unacknowledged: dict[int, tuple[Hashable, float]] = {}
        self._login: Login | None = None  # of the next connection, if it is known already
        self._asked: dict[int | None, Sequence[str]] = {}  # subscriptions that are not granted yet
        self._protocol, self._answered = mqtt.MQTTv5, True
        self._limits = BrokerLimits()
        self._closing = threading.Event()
        self._ring: Callable[[], None] = _no_ring
        self._thread = threading.Thread(target=self._run, name=f"mqtt {name}", daemon=True)

    def open(self) -> None:
        """Begin to connect; returns at once."""
        self._thread.start()

    def put(self, key: Hashable, publication: Publication) -> None:
        """Publish as soon as possible; replaces what waits under the same key."""
        with self._lock:
            if self._closing.is_set():
                return
            self._waiting[key] = publication
        self._ring()

    def put_later(self, publication: Publication) -> None:
        """Publish when nothing else waits; it is lost if there is no connection, or no room."""
        with self._lock:
            barred = time.monotonic() < self._later_from
            if not self._closing.is_set() and self.is_open and not barred:
                self._later.put(publication, len(publication.data))
        self._ring()

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()
            self._later.clear()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def unacknowledged(self) -> int:
        return len(self._unacknowledged)

    def close(self, last: Publication | None = None) -> None:
        """Send what waits, and `last`, within `GRACE_S`; then end."""
        with self._lock:
            if last is not None:
                self._waiting[last.topic] = last
            self._closing.set()
        self._ring()
        if self._thread.is_alive():
            # A thread that waits for a silent name server ends by itself later.
            self._thread.join(2 * GRACE_S)

    # -- the thread --------------------------------------------------------------

    def _run(self) -> None:
        retry, rng = Retry(self._first_wait_s, LONGEST_WAIT_S), SystemEntropy()
        began = time.monotonic()
        while not self._closing.is_set():
            try:
                self._connect()
                continue  # with a new token, or to the end
            except Exception as error:  # rule 4
                self._part(error)
            ended = time.monotonic()
            self._note_hang_up(ended)
            if ended - began >= LONGEST_WAIT_S:
                retry.stop()
            retry.tried(ended, rng)
            self._closing.wait(retry.at - ended)
            began = time.monotonic()

    def _note_hang_up(self, ended: float) -> None:
        """Bar what is put `later`, if it seems to be what ends connections."""
        self._hang_ups = self._hang_ups + 1 if ended < self._later_at + HANGS_UP_S else 0
        self._later_at = -math.inf
        if self._hang_ups == 2:
            self._hang_ups, self._later_from = 0, ended + BARRED_S

    def _part(self, error: Exception) -> None:
        if not isinstance(error, Parting | UsageError | OSError):
            self.failures += 1
        if self._closing.is_set():
            return
        try:
            self._on_parted(reason(error, self._broker))
        except Exception:  # a failure of the callback itself
            self.failures += 1

    def _connect(self) -> None:
        """Hold one connection until it breaks, its token ends, or the line closes."""
        login, self._login = self._login or self._broker.login(), None
        try:
            self._hold(login)
        except Exception:
            # A broker that speaks 3.1.1 alone says so, or hangs up. What let us in stays in use.
            tried, self._answered = self._protocol, self._answered or self._closing.is_set()
            if not self._answered:
                self._protocol = mqtt.MQTTv311 if tried == mqtt.MQTTv5 else mqtt.MQTTv5
            if self._answered or tried == mqtt.MQTTv311:
                raise
            self._hold(login)

    def _hold(self, login: Login) -> None:
        self._answered = True
        client = self._client(login)
        client.connect(self._broker.host, self._broker.port, keepalive=KEEPALIVE_S)
        self._answered = False  # as yet
        connection = client.socket()
        if connection is None:
            raise self._hung_up()
        waker = Waker()
        self._ring = waker.ring
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(waker, selectors.EVENT_READ)
                selector.register(connection, selectors.EVENT_READ)
                self._serve(client, connection, selector, waker, login)
            client.disconnect()
        finally:
            # Closed without a DISCONNECT, the broker publishes our last will.
            connection.close()
            waker.close()
            self._ring = _no_ring
            with self._lock:
                self.is_open = False
                self._later.clear()
            self._unacknowledged.clear()

    def _serve(
        self,
        client: mqtt.Client,
        connection: Any,
        selector: selectors.BaseSelector,
        waker: Waker,
        login: Login,
    ) -> None:
        """Let paho read and write, until the line or the token ends and all is sent."""
        began = time.monotonic()
        ends_at, renewed_at = float("inf"), after(login, RENEWED_AT)
        while True:
            if self.is_open and self._login is None and time.monotonic() >= renewed_at:
                try:  # while this connection stands
                    self._login = self._broker.login()
                except Parting:  # it is good for a while yet
                    renewed_at = after(login, 0.25)
            hears = self._answered or self._protocol == mqtt.MQTTv311
            granted_by = began + (PATIENCE_S if hears else SILENT_S)
            renews = self._login is not None
            if self._closing.is_set() or renews:
                ends_at = min(ends_at, time.monotonic() + GRACE_S)
                unsent = self._unacknowledged if renews else self._has_unsent()
                if not unsent or time.monotonic() >= ends_at:
                    return
            if self.is_open:
                if not renews:
                    self._publish(client)
                self._check_acknowledged()
            elif time.monotonic() > granted_by:
                raise Parting(f"{self._broker} does not answer: is it an MQTT broker?")
            if client.socket() is None:
                raise self._hung_up()
            wants = selectors.EVENT_WRITE if client.want_write() else 0
            selector.modify(connection, selectors.EVENT_READ | wants)
            # TLS may hold bytes that have arrived while the socket looks empty.
            held = self._broker.tls is not None and connection.pending() > 0
            until = min(ends_at, renewed_at if renewed_at > time.monotonic() else math.inf)
            until = until if self.is_open else min(until, granted_by + 0.01)
            wait = 0.0 if held else max(0.0, min(LOOK_S, until - time.monotonic()))
            ready = {key.fileobj: events for key, events in selector.select(wait)}
            waker.hush()
            events = ready.get(connection, 0)
            if held or events & selectors.EVENT_READ:
                self._check(client.loop_read())
            if events & selectors.EVENT_WRITE:
                self._check(client.loop_write())
            client.loop_misc()
            if client.socket() is None:
                raise Parting(f"{self._broker} has fallen silent")

    def _has_unsent(self) -> bool:
        return self.is_open and bool(self._waiting or self._unacknowledged)

    def _publish(self, client: mqtt.Client) -> None:
        """Give paho the waiting messages that fit into the window."""
        while len(self._unacknowledged) < self._limits.window:
            busy = {key for key, _ in self._unacknowledged.values()}
            with self._lock:
                key = next((key for key in self._waiting if key not in busy), None)
                if key is not None:
                    topic, data, retain = self._waiting.pop(key)
                elif self._later and sum(isinstance(key, _Later) for key in busy) < LATER:
                    key, (topic, data, retain) = _Later(), self._later.take()
                    self._later_at = time.monotonic()
                else:
                    return
            if why := self._limits.refusal(Publication(topic, data, retain)):
                raise Parting(f"{self._broker} {why}")
            sent = client.publish(topic, data, qos=1, retain=retain)
            self._unacknowledged[sent.mid] = key, time.monotonic()

    def _check_acknowledged(self) -> None:
        """End a connection whose oldest message is overdue: its key would be blocked for ever."""
        for _, sent_at in self._unacknowledged.values():
            if time.monotonic() > sent_at + UNACKNOWLEDGED_S:
                raise Parting(f"{self._broker} no longer acknowledges messages")
            return

    def _check(self, code: MQTTErrorCode) -> None:
        if code == MQTTErrorCode.MQTT_ERR_PROTOCOL:
            raise Parting(f"the answer of {self._broker} is not MQTT")
        if code != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise self._hung_up()

    def _hung_up(self) -> Parting:
        if not self.is_open:
            how = "without" if self._broker.tls is None else "with"
            question = f"is it an MQTT broker, {how} TLS?"
            if self._broker.tls is not None:
                question += " Is this node's certificate valid there, and not revoked?"
            return Parting(f"{self._broker} hung up before it let us in: {question}")
        return Parting(
            f"{self._broker} hung up: it has stopped, another process is connected as"
            f" {self._name}, or its access rules forbid a message"
        )

    # -- paho --------------------------------------------------------------------

    def _client(self, login: Login) -> mqtt.Client:
        how = {"client_id": self._name, "protocol": self._protocol, "reconnect_on_failure": False}
        client = paho_client(self._broker, login, **how)
        client.max_inflight_messages_set(WINDOW)
        client.max_queued_messages_set(WINDOW)
        if self._will is not None:
            topic, data, retain = self._will
            client.will_set(topic, data, qos=1, retain=retain)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_publish = self._on_publish
        client.on_disconnect = self._on_disconnect
        return client

    def _on_connect(self, client: mqtt.Client, _: Any, flags: Any, code: Any, more: Any) -> None:
        self._answered = code.value != UNSUPPORTED
        if code.is_failure:
            raise Parting(f"{self._broker} does not let {self._name} in: {words(code, more)}")
        self._limits = BrokerLimits.of(more, WINDOW)
        self._asked = {
            client.subscribe([(each, 1) for each in part])[1]: part
            for part in parts_of(self._topics)
        }
        if not self._topics:
            self._granted()

    def _on_subscribe(self, client: Any, _: Any, mid: int, codes: Any, more: Any) -> None:
        for topic, code in zip(self._asked.pop(mid), codes, strict=True):
            if code.is_failure:
                why = words(code, more)
                raise Parting(f"{self._broker} does not let {self._name} read {topic}: {why}")
        if not self._asked:
            self._granted()

    def _granted(self) -> None:
        if not self._closing.is_set():
            self.is_open = True
            self._on_opened()

    def _on_publish(self, client: Any, _: Any, mid: int, code: Any, more: Any) -> None:
        key, _ = self._unacknowledged.pop(mid, (None, 0.0))
        if code.is_failure and isinstance(key, _Later):
            self._later_from = time.monotonic() + BARRED_S
        elif code.is_failure:
            raise Parting(f"{self._broker} refuses a message of {self._name}: {words(code, more)}")

    def _on_disconnect(self, client: Any, _: Any, flags: Any, code: Any, more: Any) -> None:
        if flags.is_disconnect_packet_from_server:
            raise Parting(f"{self._broker} hung up: {words(code, more)}")

    def _on_message(self, client: Any, _: Any, message: mqtt.MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""  # foreign, as any topic without a subscription
        if not self._closing.is_set():
            self._on_came(topic, bytes(message.payload))


class _Later:
    """Stands for a message that was put `later` while it is not acknowledged."""


def _no_ring() -> None:
    """Do nothing: without a connection no thread waits for sockets."""
