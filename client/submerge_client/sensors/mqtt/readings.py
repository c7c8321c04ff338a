"""MqttReadings: values that others publish, put on one grid of time.

1. A decoder defines the meaning of a message: `published` for one topic with one number in each
   message, `messages` for messages of devices as they are. A message that means nothing is counted,
   and changes nothing else.
2. With `time`, a reading has the time in its message. Without, it has the time of its arrival,
   by a steady clock; retained messages are then ignored, because they may be days old.
3. The grid makes rows of readings; its rules are in `grid.py`.
4. New names that the schema lacks are logged together, at most once in `NAMES_S`; devices that
   come and go as well (`comings`).
5. With a path, the usual silences of channels outlive the process (`kept_silences`).

Readings wait in a bounded queue between paho's thread and ours; when it is full they are dropped
and counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from queue import Empty, Full, Queue

from paho.mqtt.client import MQTTMessage

from submerge_client.config.sensors import MqttSensor
from submerge_client.sensors.gather import Hand
from submerge_client.sensors.grid import Grid
from submerge_client.sensors.kept_silences import KeptSilences
from submerge_client.sensors.mqtt import listener, messages
from submerge_client.sensors.mqtt.comings import Comings
from submerge_client.sensors.mqtt.decoder import RebirthRequest
from submerge_client.sensors.mqtt.descriptions import bridges_of, is_description
from submerge_client.sensors.mqtt.heard import HeardField
from submerge_client.sensors.mqtt.listener import BrokerListener
from submerge_client.sensors.mqtt.messages import MessageDecoder
from submerge_client.sensors.mqtt.published import Published, SingleDecoder
from submerge_client.sensors.tally import ProblemTally, SensorLog, no_log

WAITING = 8192
"""Most readings between paho's thread and ours."""

NAP_S = 0.25

FIRST_NAMES_S, NAMES_S = 5.0, 60.0
"""Seconds until the first log line with new names, and between two of them."""

MOST_NAMED = 20
"""Names in such a line."""


class MqttReadings:
    """A sensor that makes rows of published values.

    channels : The schema's names, in its order.
    config : The broker, the form of messages, and the grid as in `Grid`.
    note : Takes remarks for the log, from any thread.
    habits : The file that keeps how long channels are usually silent; None keeps nothing.

    Raises UsageError if a setting is impossible, or a file cannot be read.
    """

    def __init__(
        self,
        channels: Sequence[str],
        config: MqttSensor,
        *,
        note: SensorLog = no_log,
        habits: Path | None = None,
    ) -> None:
        self._note = note
        self._channels = frozenset(channels)
        self._comings = Comings(channels)
        self._hearing = threading.Lock()  # around all use of the decoder
        self._tally = ProblemTally(
            note,
            *("malformed", "null", "unknown", "retained", "dropped"),
            *(*listener.KINDS, *messages.KINDS),
        )
        timed = bool(config.time)
        self._clock = time.time if timed else time.monotonic
        self._messages: MessageDecoder | None = None
        if config.topics:
            self._messages = MessageDecoder(
                channels,
                topics=config.topics,
                tally=self._tally,
                time=config.time,
                include=config.include,
                exclude=config.exclude,
                states=config.states,
                rebirth=config.rebirth,
            )
        self._decoder = self._messages or SingleDecoder(
            Published(channels, topic=config.topic, value=config.value, time=config.time),
            self._tally,
            timed=timed,
        )
        self._grid = Grid(
            len(channels),
            period_s=config.period_s,
            max_age_s=config.held_s,
            lateness_s=config.lateness_s,
            missing=config.missing,
        )
        self._kept: KeptSilences | None = None
        if self._grid.silences is not None:
            self._kept = KeptSilences(
                habits, channels, self._grid.silences, note=note, now=time.monotonic()
            )
        self._nap_s = min(NAP_S, config.period_s)
        self._name_at = time.monotonic() + FIRST_NAMES_S
        self._queue: Queue[tuple[int, float, float | None]] = Queue(WAITING)
        # Units of what the schema lacks come with the descriptions.
        described = bridges_of(config.topics)
        self._listener = BrokerListener(
            config,
            (*self._decoder.subscriptions, *described),
            self._take,
            tally=self._tally,
            note=note,
        )

    @property
    def counts(self) -> dict[str, int]:
        """Messages by outcome, failures of the connection, and the grid's counts."""
        return {**self._tally.counts, **self._grid.counts}

    @property
    def newcomers(self) -> tuple[HeardField, ...]:
        """What is known of the fields that the schema lacks; read from any thread.

        Their times are of the clock `time.monotonic`.
        """
        if self._messages is None:
            return ()
        with self._hearing:
            return tuple(self._messages.heard.copies(lambda name: name not in self._channels))

    def read(self, hand: Hand, stop: threading.Event) -> None:
        """Hand over rows until `stop` is set."""
        listening = threading.Thread(target=self._listener.listen, name="sensor-mqtt", daemon=True)
        listening.start()
        try:
            while not stop.is_set():
                self._fill_grid()
                rows = self._grid.rows(self._clock())
                if len(rows):
                    hand(rows, held=self._grid.held)
                now = time.monotonic()
                self._name_unknown(now)
                if self._kept is not None:
                    self._kept.write(now)
        finally:
            if self._kept is not None:
                self._kept.write()
            self._listener.end()
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

    def _name_unknown(self, now: float) -> None:
        """Log the names that the schema lacks, and which devices come and go, if it is time to."""
        if self._messages is None or now < self._name_at:
            return
        self._name_at = now + NAMES_S
        with self._hearing:
            names = self._messages.take_unlisted()
            heard = self._messages.heard.fields
            remarks = self._comings.remarks(heard, self._grid.absent, now)
        for what, facts in remarks:
            self._note(what, **facts)
        if names:
            some = ", ".join(names[:MOST_NAMED]) + ", …" * (len(names) > MOST_NAMED)
            self._note("no channels of the schema, ignored", names=some)

    # -- paho's thread -----------------------------------------------------------

    def _take(self, message: MQTTMessage) -> Iterable[RebirthRequest]:
        now = self._clock()
        with self._hearing:
            if self._messages is not None and is_description(message.topic):
                self._messages.describe(message.topic, message.payload)
                return ()
            readings = self._decoder.readings(
                message.topic, message.payload, retained=message.retain
            )
        for reading in readings:
            at = now if reading.time is None else reading.time
            try:
                self._queue.put_nowait((reading.channel, at, reading.value))
            except Full:
                self._tally.add("dropped", "the node is behind, readings dropped")
        return () if self._messages is None else self._messages.take_requests()
