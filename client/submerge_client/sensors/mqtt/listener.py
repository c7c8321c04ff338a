"""BrokerListener: a connection to a broker that hands on every message of its subscriptions.

1. A lost connection is tried again without end, and logged once a minute.
2. Callbacks run on paho's thread. An exception in a callback would end the thread in silence, so
   each one is caught, counted and logged. If paho itself fails, a new client takes over.
3. It publishes what the handler returns, and nothing else.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from submerge_client.config.links import Link
from submerge_client.sensors.mqtt.decoder import RebirthRequest
from submerge_client.sensors.tally import ProblemTally, SensorLog
from submerge_client.uplink.tls import password_of, tls_of

KINDS = ("unreachable", "refused", "failed")
"""The kinds of problems that it counts."""

REMIND_S = 60.0
AGAIN_S = 30
"""The longest wait, in whole seconds, between two tries to connect."""

Handle = Callable[[MQTTMessage], Iterable[RebirthRequest]]
"""Takes a message, on paho's thread; returns what to publish."""


class BrokerListener:
    """A connection to a broker."""

    def __init__(
        self,
        link: Link,
        subscriptions: Sequence[str],
        handle: Handle,
        *,
        tally: ProblemTally,
        note: SensorLog,
    ) -> None:
        self._link, tls = link, tls_of(link)
        self._tls = None if tls is None else tls.context()
        self._password = password_of(link)
        self._subscriptions, self._handle = tuple(subscriptions), handle
        self._tally, self._note = tally, note
        self._remind_at = -math.inf
        self._log_subscribed = True
        self._over = threading.Event()
        self._client = self._make_client()

    def listen(self) -> None:
        """Connect, and hand on messages, until `end` is called."""
        while not self._over.is_set():
            try:
                self._client.connect_async(self._link.host, self._link.port)
                self._client.loop_forever(retry_first_connection=True)
            except Exception as error:
                # Bytes that paho did not expect: the client's state is unknown.
                self._tally.add("failed", "MQTT client failed, restarting it", error=repr(error))
                self._log_subscribed = True
                self._over.wait(1.0)
                self._client = self._make_client()

    def end(self) -> None:
        """Let `listen` return; callable from any thread."""
        self._over.set()
        self._client.disconnect()

    def _make_client(self) -> Client:
        client = Client(CallbackAPIVersion.VERSION2, clean_session=True)
        client.reconnect_delay_set(1, AGAIN_S)
        if self._link.username is not None:
            client.username_pw_set(self._link.username, self._password)
        if self._tls is not None:
            client.tls_set_context(self._tls)
        client.on_connect = self._guard(self._on_connect)
        client.on_connect_fail = self._guard(self._on_connect_fail)
        client.on_disconnect = self._guard(self._on_disconnect)
        client.on_subscribe = self._guard(self._on_subscribe)
        client.on_message = self._guard(self._on_message)
        return client

    def _guard(self, callback: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as error:
                self._tally.add("failed", "MQTT callback failed", error=repr(error))

        return call

    def _on_connect(self, client: Client, _data: Any, _flags: Any, reason: Any, _more: Any) -> None:
        if self._over.is_set():
            client.disconnect()
        elif reason.is_failure:
            self._away(str(reason))
        else:
            client.subscribe([(topic, 0) for topic in self._subscriptions])

    def _on_connect_fail(self, client: Client, _data: Any) -> None:
        if self._over.is_set():
            client.disconnect()
        else:
            # paho passes no reason, but calls this while it handles the exception.
            self._away(str(sys.exception()))

    def _on_disconnect(
        self, _client: Client, _data: Any, _flags: Any, reason: Any, _more: Any
    ) -> None:
        if not self._over.is_set():
            self._away(str(reason))

    def _away(self, why: str) -> None:
        self._tally.add("unreachable")
        if time.monotonic() >= self._remind_at:
            self._remind_at = time.monotonic() + REMIND_S
            self._log_subscribed = True
            self._note(
                "broker unreachable, trying on", level="warning", url=self._link.url, why=why
            )

    def _on_subscribe(
        self, _client: Client, _data: Any, _mid: int, reasons: Sequence[Any], _more: Any
    ) -> None:
        topics = ", ".join(self._subscriptions)
        for topic, reason in zip(self._subscriptions, reasons, strict=False):
            if reason.is_failure:
                self._tally.add("refused", "subscription refused", topic=topic, why=str(reason))
            elif self._log_subscribed:
                self._log_subscribed = False
                self._note("subscribed", url=self._link.url, topic=topics)

    def _on_message(self, client: Client, _data: Any, message: MQTTMessage) -> None:
        for topic, payload in self._handle(message):
            client.publish(topic, payload)
