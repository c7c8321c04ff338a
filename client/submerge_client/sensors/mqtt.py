"""MqttReadings: values that others publish, a topic for each channel, put on one grid.

1. `published.py` defines the meaning of a message. A malformed one is counted and lost. Topics
   of names that are no channels are ignored.
2. With `time`, a reading has the time in its message. Without, it has the time of its arrival,
   by a steady clock; retained messages are then ignored, because they may be days old.
3. The grid makes rows of readings; its rules are in `grid.py`.
4. A lost connection is tried again without end, and logged once a minute.

Callbacks run on paho's thread. Readings wait in a bounded queue; when it is full they are
dropped and counted. An exception in a callback would end the thread in silence, so each one is
caught, counted and logged. If paho itself fails, a new client takes over.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, Full, Queue
from typing import Any, NamedTuple

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from submerge import Array
from submerge_client.config.sensors import MqttSensor
from submerge_client.sensors.grid import Grid
from submerge_client.sensors.published import Published
from submerge_client.sensors.tally import ProblemTally, SensorLog, no_log
from submerge_client.uplink.factory import password_of, tls_of

WAITING = 8192
"""Most readings between paho's thread and ours."""

NAP_S = 0.25
REMIND_S = 60.0
AGAIN_S = 30
"""The longest wait, in whole seconds, between two tries to connect."""


class _Reading(NamedTuple):
    channel: int
    time: float
    value: float


class MqttReadings:
    """A sensor that makes rows of published values.

    Parameters
    ----------
    channels : sequence of str
        The schema's names, in its order.
    config : MqttSensor
        The broker, the form of messages as in `Published`, and the grid as in `Grid`.
    note : SensorLog
        Takes remarks for the log, from any thread.

    Raises
    ------
    UsageError
        If a setting is impossible, or a file cannot be read.
    """

    def __init__(
        self, channels: Sequence[str], config: MqttSensor, *, note: SensorLog = no_log
    ) -> None:
        self._link, tls = config, tls_of(config)
        self._tls = None if tls is None else tls.context()
        self._password = password_of(config)
        self._published = Published(
            channels, topic=config.topic, value=config.value, time=config.time
        )
        self._grid = Grid(
            len(channels),
            period_s=config.period_s,
            max_age_s=config.max_age_s,
            lateness_s=config.lateness_s,
            missing=config.missing,
        )
        self._nap_s = min(NAP_S, config.period_s)
        self._timed = bool(config.time)
        self._clock = time.time if self._timed else time.monotonic
        self._note = note
        self._tally = ProblemTally(
            note,
            *("malformed", "null", "unknown", "retained", "dropped"),
            *("unreachable", "refused", "failed"),
        )
        self._remind_at = -math.inf
        self._log_subscribed = True
        self._queue: Queue[_Reading] = Queue(WAITING)
        self._over = threading.Event()
        self._client = self._make_client()

    @property
    def counts(self) -> dict[str, int]:
        """Messages by outcome, failures of the connection, and the grid's counts."""
        return {**self._tally.counts, **self._grid.counts}

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over rows until `stop` is set."""
        listening = threading.Thread(target=self._listen, name="sensor-mqtt", daemon=True)
        listening.start()
        try:
            while not stop.is_set():
                self._fill_grid()
                rows = self._grid.rows(self._clock())
                if len(rows):
                    hand(rows)
        finally:
            self._over.set()
            self._client.disconnect()
            # A try to connect takes five seconds to fail; the thread ends by itself after it.
            listening.join(NAP_S)

    def _fill_grid(self) -> None:
        """Wait a little for a reading, and take all that are there."""
        try:
            self._grid.put(*self._queue.get(timeout=self._nap_s))
            for _ in range(WAITING):
                self._grid.put(*self._queue.get_nowait())
        except Empty:
            return

    # -- paho's thread -----------------------------------------------------------

    def _listen(self) -> None:
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
            client.subscribe(self._published.subscription)

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
            self._note("broker unreachable, trying on", url=self._link.url, why=why)

    def _on_subscribe(
        self, _client: Client, _data: Any, _mid: int, reasons: Sequence[Any], _more: Any
    ) -> None:
        topic = self._published.subscription
        for reason in reasons:
            if reason.is_failure:
                self._tally.add("refused", "subscription refused", topic=topic, why=str(reason))
            elif self._log_subscribed:
                self._log_subscribed = False
                self._note("subscribed", url=self._link.url, topic=topic)

    def _on_message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        channel = self._published.channel(message.topic)
        if channel is None:
            self._tally.add("unknown", "no channel of the schema, ignored", topic=message.topic)
            return
        if message.retain and not self._timed:
            self._tally.add("retained")
            return
        try:
            reading = self._published.read(message.payload)
        except (ValueError, OverflowError, RecursionError) as error:
            self._tally.add("malformed", "malformed message", topic=message.topic, error=str(error))
            return
        if reading.value is None:
            self._tally.add("null")
            return
        at = self._clock() if reading.time is None else reading.time
        try:
            self._queue.put_nowait(_Reading(channel, at, reading.value))
        except Full:
            self._tally.add("dropped", "the node is behind, readings dropped")
