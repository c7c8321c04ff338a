"""MqttReadings: values that others publish, a topic for each channel, put on one grid.

1. What a message means is in `published.py`. One that means nothing is counted, and lost.
   Topics of names that are no channels are passed over.
2. With `time`, a reading has the time that its message states. Without, it has that of its
   arrival, by a clock that is never set back; a retained message is then passed over: it
   may be days old.
3. The grid makes rows of readings; its rules are in `grid.py`.
4. The connection comes back by itself, for ever. That it is away is said once a minute.

paho's thread calls us; what it brings waits in a bounded queue, and is dropped and counted
when that is full. An exception in a callback would end the thread in silence, so each is
caught, counted and noted; should paho itself fail, it is started anew.
"""

from __future__ import annotations

import math
import sys
import threading
import time as clocks
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any, NamedTuple

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from submerge import Array
from submerge_client.config.links import Link
from submerge_client.sensors.grid import Grid, Missing
from submerge_client.sensors.published import Published
from submerge_client.sensors.tally import ProblemTally, SensorLog, unheard
from submerge_client.uplink.factory import password_of
from submerge_client.uplink.tls import Tls

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
    """Rows from what others publish.

    Parameters
    ----------
    channels : sequence of str
        The schema's names, in its order.
    url, insecure, ca, cert, key, username, password_file
        The broker, as in `submerge_client.config.links.Link`.
    topic, value, time : str
        What messages look like, as in `Published`.
    period_s, max_age_s, lateness_s, missing
        How rows are made, as in `Grid`.
    note : Note
        Takes remarks for the log, from any thread.

    Raises
    ------
    UsageError
        If a setting cannot be, or a file cannot be read.
    """

    def __init__(
        self,
        channels: Sequence[str],
        *,
        url: str,
        topic: str,
        insecure: bool = False,
        ca: Path | None = None,
        cert: Path | None = None,
        key: Path | None = None,
        username: str | None = None,
        password_file: Path | None = None,
        value: str = "value",
        time: str = "",
        period_s: float = 10.0,
        max_age_s: float = 30.0,
        lateness_s: float = 2.0,
        missing: Missing = "hold",
        note: SensorLog = unheard,
    ) -> None:
        self._link = Link(
            url=url,
            insecure=insecure,
            ca=ca,
            cert=cert,
            key=key,
            username=username,
            password_file=password_file,
        )
        self._tls = Tls(ca, cert, key).context() if self._link.tls else None
        self._password = password_of(self._link)
        self._published = Published(channels, topic=topic, value=value, time=time)
        self._grid = Grid(
            len(channels),
            period_s=period_s,
            max_age_s=max_age_s,
            lateness_s=lateness_s,
            missing=missing,
        )
        self._nap_s = min(NAP_S, period_s)
        self._timed = bool(time)
        self._clock = clocks.time if time else clocks.monotonic
        self._note = note
        self._tally = ProblemTally(
            note,
            *("malformed", "null", "unknown", "retained", "dropped"),
            *("unreachable", "refused", "failed"),
        )
        self._say_at = -math.inf
        self._say_subscribed = True
        self._queue: Queue[_Reading] = Queue(WAITING)
        self._over = threading.Event()
        self._client = self._made()

    @property
    def counts(self) -> dict[str, int]:
        """Messages by what became of them, failures of the connection, and the grid's counts."""
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
            # It may be connecting, which takes five seconds to fail; it ends by itself then.
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
                # Bytes that paho did not expect: this client is in no known state.
                self._tally.add("failed", "MQTT client failed, starting anew", error=repr(error))
                self._say_subscribed = True
                self._over.wait(1.0)
                self._client = self._made()

    def _made(self) -> Client:
        client = Client(CallbackAPIVersion.VERSION2, clean_session=True)
        client.reconnect_delay_set(1, AGAIN_S)
        if self._link.username is not None:
            client.username_pw_set(self._link.username, self._password)
        if self._tls is not None:
            client.tls_set_context(self._tls)
        client.on_connect = self._guarded(self._on_connect)
        client.on_connect_fail = self._guarded(self._on_connect_fail)
        client.on_disconnect = self._guarded(self._on_disconnect)
        client.on_subscribe = self._guarded(self._on_subscribe)
        client.on_message = self._guarded(self._on_message)
        return client

    def _guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
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
            # paho keeps the reason to itself, but calls this while it handles it.
            self._away(str(sys.exception()))

    def _on_disconnect(
        self, _client: Client, _data: Any, _flags: Any, reason: Any, _more: Any
    ) -> None:
        if not self._over.is_set():
            self._away(str(reason))

    def _away(self, why: str) -> None:
        self._tally.add("unreachable")
        if clocks.monotonic() >= self._say_at:
            self._say_at = clocks.monotonic() + REMIND_S
            self._say_subscribed = True
            self._note("broker unreachable, trying on", url=self._link.url, why=why)

    def _on_subscribe(
        self, _client: Client, _data: Any, _mid: int, reasons: Sequence[Any], _more: Any
    ) -> None:
        topic = self._published.subscription
        for reason in reasons:
            if reason.is_failure:
                self._tally.add("refused", "subscription refused", topic=topic, why=str(reason))
            elif self._say_subscribed:
                self._say_subscribed = False
                self._note("subscribed", url=self._link.url, topic=topic)

    def _on_message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        channel = self._published.channel(message.topic)
        if channel is None:
            self._tally.add("unknown", "no channel of the schema, passed over", topic=message.topic)
            return
        if message.retain and not self._timed:
            self._tally.add("retained")
            return
        try:
            said = self._published.read(message.payload)
        except (ValueError, OverflowError, RecursionError) as error:
            self._tally.add("malformed", "malformed message", topic=message.topic, error=str(error))
            return
        if said.value is None:
            self._tally.add("null")
            return
        at = self._clock() if said.time is None else said.time
        try:
            self._queue.put_nowait(_Reading(channel, at, said.value))
        except Full:
            self._tally.add("dropped", "the node is behind, readings dropped")
