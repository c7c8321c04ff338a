"""MqttReadings: values that others publish, put on one grid of time (docs/fleet.md).

A decoder defines the meaning of a message (`messages`); the grid makes rows (`grid`). A lost
connection is tried again without end. Callbacks run on paho's thread: an exception in one would end
it in silence, so each is caught, counted and logged. If paho itself fails, a new client takes over.
Readings wait in a bounded queue between paho's thread and ours; when it is full they are dropped
and counted.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any, NamedTuple

from paho.mqtt.client import Client, MQTTMessage

from submerge.judge.decision import Mask
from submerge.protocol.machine import Note
from submerge_client.config.links import Link
from submerge_client.config.sensors import MqttSensor
from submerge_client.sensors.gather import Hand
from submerge_client.sensors.grid import Grid, KeptSilences
from submerge_client.sensors.mqtt import messages
from submerge_client.sensors.mqtt.decoder import HeardField, RebirthRequest
from submerge_client.sensors.mqtt.descriptions import bridges_of, is_description
from submerge_client.sensors.mqtt.messages import MessageDecoder, SingleDecoder
from submerge_client.sensors.tally import ProblemTally, SensorLog, UnlistedNames, no_log
from submerge_client.uplink.broker import Login, Parting, broker_of, parts_of
from submerge_client.uplink.paho_client import paho_client

KINDS = ("unreachable", "refused", "failed")  # the kinds of problems that it counts

REMIND_S = 60.0
AGAIN_S = 30  # the longest wait, in whole seconds, between two tries to connect

Handle = Callable[[MQTTMessage], Iterable[RebirthRequest]]
"""Takes a message, on paho's thread; returns what to publish."""


class BrokerListener:
    def __init__(
        self,
        link: Link,
        subscriptions: Sequence[str],
        handle: Handle,
        *,
        tally: ProblemTally,
        note: SensorLog,
    ) -> None:
        self._link, self._broker = link, broker_of(link)
        self._subscriptions, self._handle = tuple(subscriptions), handle
        self._tally, self._note = tally, note
        self._remind_at = -math.inf
        self._log_subscribed = True
        self._asked: dict[int | None, Sequence[str]] = {}  # subscriptions without an answer yet
        self._over = threading.Event()
        self._client = self._make_client()

    def listen(self) -> None:
        """Connect, and hand on messages, until `end` is called."""
        while not self._over.is_set():
            try:
                self._sign_in()
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

    def _sign_in(self) -> None:
        """Take the password for the next try to connect."""
        if not self._broker.command or self._over.is_set():
            return
        try:
            self._client.username_pw_set(*self._broker.login()[:2])
        except Parting as error:  # the broker refuses the one before, and it is tried again
            self._away(str(error))

    def _make_client(self) -> Client:
        client = paho_client(self._broker, Login(self._broker.username, self._broker.password))
        client.reconnect_delay_set(1, AGAIN_S)
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
            self._asked = {
                client.subscribe([(topic, 0) for topic in part])[1]: part
                for part in parts_of(self._subscriptions)
            }

    def _on_connect_fail(self, client: Client, _data: Any) -> None:
        if self._over.is_set():
            client.disconnect()
        # paho passes no reason, but calls this while it handles the exception.
        self._away(str(sys.exception()))
        self._sign_in()

    def _on_disconnect(self, _client: Client, _data: Any, _flags: Any, why: Any, _: Any) -> None:
        self._away(str(why))
        self._sign_in()

    def _away(self, why: str) -> None:
        if self._over.is_set():
            return
        self._tally.add("unreachable")
        if time.monotonic() >= self._remind_at:
            self._remind_at = time.monotonic() + REMIND_S
            self._log_subscribed = True
            self._note(
                "broker unreachable, trying on", level="warning", url=self._link.url, why=why
            )

    def _on_subscribe(
        self, _client: Client, _data: Any, mid: int, reasons: Sequence[Any], _more: Any
    ) -> None:
        topics = ", ".join(self._subscriptions)
        for topic, reason in zip(self._asked.pop(mid, ()), reasons, strict=False):
            if reason.is_failure:
                facts = {"topic": topic, "why": str(reason)}
                self._tally.add("refused", "subscription refused", level="warning", **facts)
            elif self._log_subscribed:
                self._log_subscribed = False
                self._note("subscribed", url=self._link.url, topic=topics)

    def _on_message(self, client: Client, _data: Any, message: MQTTMessage) -> None:
        for topic, payload in self._handle(message):
            client.publish(topic, payload)


TIMES, SETTLE_S = 3, 300.0
AT_ONCE = 5
MOST_FIELDS = 16
CERTAIN = 3.0

WAIT_S = 3600.0


NEW = "new device: none of its fields is a channel"
RENAMED = "device of the schema under a new name"
SILENT, SPEAKS = "device silent", "device speaks again"


class _KnownDevice(NamedTuple):
    """A device of the schema: when it was heard last, and whether it is gone by now."""

    device: str
    last_s: float
    is_gone: bool


class Comings:
    def __init__(self, channels: Sequence[str]) -> None:
        self._listed = defaultdict[str, list[int]](list)
        for place, name in enumerate(channels):
            self._listed[_device(name)].append(place)
        self._announced = set[str]()
        self._present, self._silent = set[str](), set[str]()
        self._taken = set[str]()  # devices of the schema that have another name now

    def remarks(self, heard: Mapping[str, HeardField], absent: Mask, now: float) -> list[Note]:
        devices = defaultdict[str, list[HeardField]](list)
        for name, field in heard.items():
            devices[_device(name)].append(field)
        remarks = list(self._silences(devices, absent, now))
        unknown = devices.keys() - self._listed.keys() - self._announced
        known = self._known(devices, now) if unknown else {}
        for device, fields in devices.items():
            if len(remarks) >= AT_ONCE:
                break
            first_s = min(each.first_s for each in fields)
            enough = max(each.count for each in fields) >= TIMES and now - first_s >= SETTLE_S
            if device not in unknown or not enough:
                continue
            alike = [
                each
                for each in known.get(frozenset(_field(each.name) for each in fields), ())
                if each.last_s < first_s and each.device not in self._taken
            ]
            gone = [each for each in alike if each.is_gone]
            if len(gone) < len(alike) and now - first_s < WAIT_S:
                continue
            self._announced.add(device)
            facts: dict[str, object] = {"device": device, "fields": _listing(fields)}
            if not gone:
                remarks.append(Note(NEW, facts, "warning"))
                continue
            before = max(gone, key=lambda each: each.last_s).device
            self._taken.add(before)
            todo = f"call it {before} again, or write {device} for {before} in [schema] and topics"
            facts = {"device": device, "looks_like": before} | facts | {"todo": todo}
            remarks.append(Note(RENAMED, facts, "warning"))
        return remarks

    def _silences(
        self, devices: Mapping[str, list[HeardField]], absent: Mask, now: float
    ) -> Iterator[Note]:
        for device, places in self._listed.items():
            if not absent[places].all():
                self._present.add(device)
                if device in self._silent:
                    self._silent.discard(device)
                    yield Note(SPEAKS, {"device": device})
            elif device in self._present:
                self._present.discard(device)
                self._silent.add(device)
                known = devices.get(device)
                last = {} if known is None else {"for": _span(now - _last_s(known))}
                yield Note(SILENT, {"device": device, **last}, "warning")

    def _known(
        self, devices: Mapping[str, list[HeardField]], now: float
    ) -> dict[frozenset[str], list[_KnownDevice]]:
        """Return the schema's devices that were heard, by their fields; once in a call."""
        known = defaultdict[frozenset[str], list[_KnownDevice]](list)
        for device in self._listed:
            fields = devices.get(device)
            if fields is not None and device not in self._taken:
                names = frozenset(_field(each.name) for each in fields)
                known[names].append(_KnownDevice(device, _last_s(fields), _is_gone(fields, now)))
        return known


def _device(name: str) -> str:
    return name.partition("/")[0]


def _field(name: str) -> str:
    return name.partition("/")[2]


def _is_gone(fields: list[HeardField], now: float) -> bool:
    """Whether a device has been silent for so long that another name is the likely reason."""
    usual_s = min(each.every_s or WAIT_S for each in fields)
    longest_s = min(each.longest_s for each in fields)
    return now - _last_s(fields) > max(CERTAIN * usual_s, longest_s)


def _last_s(fields: list[HeardField]) -> float:
    return max(each.last_s for each in fields)


def _listing(fields: list[HeardField]) -> list[str]:
    """Return each field with its unit, its range and its rate, as a person reads it."""
    texts = [
        f"{_field(each.name) or each.name}{f' [{each.unit}]' if each.unit else ''}"
        f" {each.lowest:.4g} to {each.highest:.4g}, every {_span(each.every_s or 0.0)}"
        for each in fields[:MOST_FIELDS]
    ]
    return texts + ["…"] * (len(fields) > MOST_FIELDS)


def _span(seconds: float) -> str:
    """Return a time as "40 s", "5 min" or "2.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


WAITING = 8192  # most readings between paho's thread and ours

NAP_S = 0.25


class MqttReadings:
    """A sensor that makes rows of published values; `habits` keeps usual silences, None nothing."""

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
            *(*KINDS, *messages.KINDS),
        )
        self._clock = time.time if config.time else time.monotonic
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
            channels, self._tally, topic=config.topic, value=config.value, time=config.time
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
        self._unlisted = UnlistedNames(note, time.monotonic())
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
        """What is known of fields that the schema lacks, for any thread; times are monotonic."""
        if self._messages is None:
            return ()
        with self._hearing:
            return tuple(self._messages.heard.copies(lambda name: name not in self._channels))

    def read(self, hand: Hand, stop: threading.Event) -> None:
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
        if self._messages is None or not self._unlisted.is_due(now):
            return
        with self._hearing:
            names, kept_out = self._messages.take_unlisted(), self._messages.take_kept_out()
            heard = self._messages.heard.fields
            remarks = self._comings.remarks(heard, self._grid.absent, now)
        for what, facts, level in remarks:
            self._note(what, level=level, **facts)
        self._unlisted.write(names)
        self._unlisted.write(kept_out, "kept out by include and exclude")

    # On paho's thread:
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
