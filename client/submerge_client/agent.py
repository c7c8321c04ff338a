"""Agent: one thread that drives a `ClientNode`, and everything around it.

The sensor has a thread, the uplink has its own; both put what they have into one queue, and
this loop alone touches the node: it steps it, and performs its effects in order. Rows wait
outside while the node is behind; messages never do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NamedTuple

from submerge import Array, PeerError
from submerge.client.node import ClientNode
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import (
    Alarmed,
    Event,
    Flush,
    Keep,
    Linked,
    Note,
    Now,
    Reading,
    Received,
    Scored,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import Report
from submerge_client.alarms import Sinks
from submerge_client.disk import RecordStore
from submerge_client.logs import Notes, say
from submerge_client.reach import Reach
from submerge_client.scores import ScoreLines
from submerge_client.sensors import Sensor
from submerge_client.sensors.lags import Lags
from submerge_client.uplink import (
    Came,
    Heard,
    Opened,
    Parted,
    SendRefused,
    Slowed,
    TooLarge,
    Uplink,
)
from submerge_client.uplink.identity import Credentials
from submerge_client.watchdog import Watchdog
from submerge_proto.wire import codec

AHEAD = 4
"""Blocks that a sensor may be ahead of the node."""

LONGEST_WAIT_S = 3600.0
"""A queue's wait has an upper limit; waking once an hour for nothing costs nothing."""


class SensorEnded(NamedTuple):
    """The sensor has no more; `error` if it failed."""

    error: Exception | None


class Stopped(NamedTuple):
    """Somebody wants the program to end."""


class Agent:
    """Drives one node.

    Parameters
    ----------
    node : ClientNode
        Not started yet.
    uplink, sensor, disk, lags
        The world.
    scores : ScoreLines or None
    sinks : Sinks or None
        Where alarms go.
    clock : callable
    coarse : bool
        Reports go with int8 columns where that does little harm.
    papers : Papers or None
        Until when its certificate holds, which reports tell.
    linger_s : float
        How long it waits at its end for the parent to have everything.
    watchdog : Watchdog or None
        Hears that the loop turns.

    Attributes
    ----------
    rows : int
        Rows that the sensor handed over.
    delivered : int
        Readings of the running life that the parent is known to hold.
    foreign : int
        Messages that were none.
    refusal : str or None
        Why the parent did not let it join, if it did not.
    sent_bytes, heard_bytes : int
        Of messages, without what the transport adds.
    """

    def __init__(
        self,
        node: ClientNode,
        *,
        uplink: Uplink,
        sensor: Sensor,
        disk: RecordStore,
        lags: Lags,
        scores: ScoreLines | None,
        sinks: Sinks | None = None,
        clock: Callable[[], Now],
        coarse: bool = False,
        credentials: Credentials | None = None,
        linger_s: float = 10.0,
        watchdog: Watchdog | None = None,
    ) -> None:
        self.node = node
        self.rows = self.delivered = self.foreign = 0
        self.sent_bytes = self.heard_bytes = 0
        self.refusal: str | None = None
        self._uplink, self._sensor, self._disk, self._lags = uplink, sensor, disk, lags
        self._scores, self._clock, self._coarse = scores, clock, coarse
        self._sinks = Sinks() if sinks is None else sinks
        self._credentials, self._linger_s = credentials, linger_s
        self._watchdog = Watchdog() if watchdog is None else watchdog
        self._notes = Notes()
        self._inbox: SimpleQueue[Array | Heard | SensorEnded | Stopped] = SimpleQueue()
        self._room = threading.BoundedSemaphore(AHEAD)
        self._stop = threading.Event()
        self._durable = 0  # the seq that the root is known to hold
        self._first = 0  # of the sensor's rows in the block that is being read
        self._reach = Reach()
        self._scoring = False

    def stop(self) -> None:
        """Ask it to end; from any thread, or a signal handler."""
        self._inbox.put(Stopped())

    def run(self) -> int:
        """Run until stopped, or the sensor has no more; return the exit status."""
        self._uplink.open(self._inbox.put)
        self._step(Start(self._disk.load()))
        if not self._sinks.alarms:
            # Who was told of an alarm has to hear, too, that none is known any more.
            self._sinks.tell(())
        say("reading", incarnation=str(self.node.current.incarnation))
        reading = threading.Thread(target=self._read, name="sensor", daemon=True)
        reading.start()
        try:
            status = self._loop()
        finally:
            self._stop.set()
            self._finish()
        reading.join(2.0)
        return status

    # -- the loop --------------------------------------------------------------

    def _loop(self) -> int:
        while True:
            self._watchdog.turned(self._status)
            item = self._next(self.node.wakes_at)
            match item:
                case SensorEnded(None):
                    say("the sensor has no more", rows=self.rows)
                    return 0
                case SensorEnded(error):
                    say("the sensor failed", level=logging.ERROR, why=str(error))
                    return 1
                case Stopped():
                    say("stopping", rows=self.rows)
                    return 0
                case _:
                    self._take(item)

    def _next(self, until: float) -> Array | Heard | SensorEnded | Stopped | None:
        """Wait for what comes in, at most until a time on the steady clock."""
        wait = until - self._clock().steady
        wait = min(wait, self._reach.due_s, self._watchdog.due_s)
        try:
            # What has come goes first: a tick that is due is in no hurry.
            return self._inbox.get_nowait()
        except Empty:
            pass
        try:
            return self._inbox.get(timeout=min(max(wait, 0.0), LONGEST_WAIT_S))
        except Empty:
            return None

    def _take(self, item: Array | Heard | SensorEnded | Stopped | None) -> None:
        match item:
            case None:
                self._step(Tick())
                self._reach.remind()
            case Came():
                self.heard_bytes += len(item.data)
                self._reach.heard()
                try:
                    message = codec.decode(item.kind, item.data)
                except PeerError as error:
                    self.foreign += 1
                    say("message refused", level=logging.WARNING, kind=item.kind, why=str(error))
                    return
                self._step(Received(message))
            case Opened():
                self._reach.opened()
                self._watchdog.begun()
                self._step(Linked())
            case Parted():
                why, credentials = item.why, self._credentials
                if credentials is not None:
                    why = credentials.blamed(why, self._clock().wall)
                self._reach.parted(why)
            case SendRefused():
                self._reach.refused(item.why)
            case Slowed():
                self._reach.slowed(item.why)
            case SensorEnded() | Stopped():
                pass
            case _:
                self._hear_rows(item)

    def _hear_rows(self, rows: Array) -> None:
        self._watchdog.rows()
        self._first, self.rows = self.rows, self.rows + len(rows)
        embedded = self._lags.embed(rows)
        self._first += len(rows) - len(embedded)  # rows that only began a window
        if len(embedded):
            self._step(Reading(embedded))
        self._room.release()

    # -- the node --------------------------------------------------------------

    def _step(self, event: Event) -> None:
        now = self._clock()
        effects = self.node.step(event, now)
        alarms = self._sinks.alarms
        for effect in effects:
            if isinstance(effect, Alarmed):
                alarms = effect.alarms  # of the rows that were scored before it is told, too
        for effect in effects:
            match effect:
                case Keep():
                    self._disk.keep(effect)
                case Send():
                    self._send(effect)
                case Scored():
                    self._tell_scores(effect, alarms, now)
                case Alarmed():
                    self._sinks.tell(effect.alarms)
                case Note():
                    self._notes.tell(effect, now.steady)
                    if effect.what == "join refused":
                        self.refusal = "; ".join(effect.facts["lines"]) or effect.facts["meaning"]
        self._tell_progress()

    def _tell_scores(self, scored: Scored, alarms: tuple[Alarm, ...], now: Now) -> None:
        if self._scores is not None:
            schema = self.node.current.schema
            self._scores.tell(scored, schema, first=self._first, at=now.wall, alarms=alarms)

    def _send(self, effect: Send) -> None:
        message, group = effect.message, self.node.settings.group
        if isinstance(message, Report) and not message.final and message.alarm_status is not None:
            # What an aggregator hears of an alarm, others hear as well.
            self._sinks.refresh(message.alarm_status.alarms)
        if self._credentials is not None:
            message = self._credentials.stamped(message)
        kind, data = codec.kind_of(message), codec.encode(message, coarse=self._coarse)
        try:
            final = isinstance(message, Report) and message.final
            self._uplink.send(kind, group, data, final=final)
            self.sent_bytes += len(data)
        except TooLarge as error:
            # Its configuration was judged by the same formula: this is a bug, or a final of an
            # earlier configuration. Neither ends a node.
            say("message too large", level=logging.ERROR, why=str(error))

    def _tell_progress(self) -> None:
        current, model = self.node.current, self.node.model
        if model is not None and model.summary is not None and not self._scoring:
            self._scoring = True
            say("scoring begins: a model is here", version=model.version)
        if (current.delivered, current.durable) != (self.delivered, self._durable):
            self.delivered, self._durable = current.delivered, current.durable
            facts = {"incarnation": str(current.incarnation), "seq": self.node.acknowledged}
            facts |= {"readings": current.delivered, "lost": current.counts.lost}
            facts |= {"durable": current.durable, **self._traffic}
            say("acknowledged", level=logging.DEBUG, **facts)

    def _status(self) -> str:
        """Return how things are, in a line for people."""
        away = "" if self._reach.why is None else f"; parent out of reach: {self._reach.why}"
        # A loss that was declared is delivered as well, and no row.
        all_delivered = max(0, self.delivered - self.node.current.counts.lost)
        return f"{self.rows} rows, {all_delivered} with the parent{away}"

    @property
    def _traffic(self) -> dict[str, int]:
        return {"sent_bytes": self.sent_bytes, "heard_bytes": self.heard_bytes}

    def _finish(self) -> None:
        """Report and keep what there is, and wait a little for it to arrive."""
        self._watchdog.stopping(self._linger_s)
        while not self._inbox.empty():
            self._take(self._inbox.get())
        self._step(Flush())
        until = self._clock().steady + self._linger_s
        if not self.node.all_delivered:
            say("waiting for the parent to have everything", at_most_s=self._linger_s)
        while not self.node.all_delivered and self._clock().steady < until:
            item = self._next(min(until, self.node.wakes_at))
            if isinstance(item, Stopped):
                break  # asked twice
            self._take(item)
            self._watchdog.turned(self._status)
        self._uplink.close()
        self._sinks.close()
        self._disk.close()
        current = self.node.current
        unreported = current.counts.generated - current.delivered
        # What the parent does not know of is in the checkpoint, and the next start tells it, if
        # this life has ever joined.
        level = logging.WARNING if unreported else logging.INFO
        # A loss that was declared is delivered as well, and no row.
        facts = {
            "delivered": max(0, current.delivered - current.counts.lost),
            "unreported": unreported,
        }
        facts |= {"withheld": current.counts.withheld, "lost": current.counts.lost}
        facts |= {f"sensor_{what}": n for what, n in self._sensor.counts.items() if n}
        say("ended", level=level, rows=self.rows, **facts, **self._traffic)

    # -- the sensor's thread ---------------------------------------------------

    def _read(self) -> None:
        try:
            self._sensor.read(self._hand, self._stop)
        except Exception as error:
            self._inbox.put(SensorEnded(error))
        else:
            self._inbox.put(SensorEnded(None))

    def _hand(self, rows: Array) -> None:
        """Take rows from the sensor; wait while the node is behind."""
        while not self._room.acquire(timeout=0.5):
            if self._stop.is_set():
                return
        self._inbox.put(rows)
