"""Agent: one thread that drives a `ClientNode` and performs its effects.

Sensor and uplink have threads of their own and one queue to here. Rows wait outside while the node
is behind; messages never do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np

from submerge import Array, PeerError
from submerge.client.incarnation import RowAccount, advice
from submerge.client.node import ClientNode
from submerge.protocol.machine import (
    Alarmed,
    Answered,
    Consult,
    Event,
    Flush,
    Keep,
    Linked,
    NewCertificate,
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
from submerge_client.checkpoint import RecordStore
from submerge_client.jobs import ClientJobs
from submerge_client.logs import Notes, say
from submerge_client.replies import Replies, no_replies
from submerge_client.score_outputs.lines import ScoredBlock, ScoreOutput, ScoreOutputs
from submerge_client.sensors import Sensor
from submerge_client.sensors.gather import Lags, RowGatherer, RowsWaiting, SensorEnded
from submerge_client.uplink import Came, Heard, Opened, Uplink
from submerge_client.uplink.parent_link import ParentLink
from submerge_client.uplink.tls import Credentials
from submerge_client.watchdog import Watchdog
from submerge_proto.wire import codec


class NewestValues:
    """The newest row in which each channel had a value: `at` (width,), from 1, 0 for none."""

    def __init__(self, width: int) -> None:
        # Replaced as a whole, so any thread may read it.
        self.at = np.zeros(width, dtype=np.int64)

    def take(self, rows: Array, so_far: int) -> None:
        """Take rows, the last of which has the number `so_far`; NaN is no value."""
        present = ~np.isnan(rows[::-1])
        self.at = np.where(present.any(axis=0), so_far - present.argmax(axis=0), self.at)


def status_line(node: ClientNode, rows: int, delivered: int, away: str | None, problem: str) -> str:
    said = "" if away is None else f"; parent out of reach: {away}"
    # `delivered` includes declared losses, which are no rows.
    held = max(0, delivered - node.current.counts.lost)
    if not node.finals.waiting:
        held += earlier(node, rows)
    waits = unsettled(node)
    measured = f", {waits} wait for the fleet to settle its schema" if waits else ""
    said += f"; {problem}" if problem else ""
    return f"{rows} rows, {held} with the parent{measured}{said}"


def unsettled(node: ClientNode) -> int:
    """Return the readings of which a parent has moments only, until the schema is settled."""
    current = node.current
    return node.finals.measured + (0 if current.learns else current.counts.learnt)


def earlier(node: ClientNode, rows: int) -> int:
    """Return the rows of this process that were in incarnations before the running one."""
    counts = node.current.counts
    return max(0, rows - counts.learnt - counts.withheld)


def log_end(
    node: ClientNode, lags: Lags, more: Mapping[str, object], *, rows: int, written: bool
) -> None:
    before = node.finals.from_before
    account = node.finals.account(node.current, ends=True)
    account += RowAccount(lead_in=lags.counts["lead_in"])
    if not written:
        account = account.given_up
    todo = advice(account, has_parent=bool(node.current.pin), unsettled=unsettled(node))
    facts: dict[str, object] = {**account.shown, **({"from_before": before} if before else {})}
    facts |= {**more, **({"todo": todo} if todo else {})}
    say("ended", level="warning" if todo else "info", rows=rows, **facts)


LONGEST_WAIT_S = 3600.0  # a queue's wait has an upper limit; waking once an hour costs nothing

LAST_ROWS_S = 0.5
"""For a sensor to hand over what came while it waited for more; it looks for its end that often."""


class Stopped(NamedTuple):
    """A signal or a caller asked the program to end."""


Item = Heard | RowsWaiting | SensorEnded | Stopped  # what the loop waits for


class Agent:
    """Drives one node.

    linger_s : How long it may wait at its end for the parent to have everything.
    coarse : Reports have int8 columns where that does little harm.
    gather_s : Rows that come fast wait so long to share a step.
    delivered : Readings of the running incarnation that the parent holds.
    """

    def __init__(
        self,
        node: ClientNode,
        *,
        uplink: Uplink,
        sensor: Sensor,
        disk: RecordStore,
        lags: Lags,
        scores: ScoreOutput | None,
        sinks: Sinks | None = None,
        clock: Callable[[], Now],
        coarse: bool = False,
        credentials: Credentials | None = None,
        gather_s: float = 0.0,
        linger_s: float = 10.0,
        watchdog: Watchdog | None = None,
        replies: Replies = no_replies,
        jobs: ClientJobs | None = None,
    ) -> None:
        self.node = node
        self.rows = self.delivered = self.foreign = 0
        self.newest = NewestValues(lags.width)
        self.refusal: str | None = None
        self._uplink, self.sensor, self._disk, self._lags = uplink, sensor, disk, lags
        self._scores, self._clock, self._coarse = scores or ScoreOutputs(()), clock, coarse
        self._sinks = Sinks() if sinks is None else sinks
        self._credentials, self._linger_s, self._replies = credentials, linger_s, replies
        self._jobs = jobs
        self._watchdog = Watchdog() if watchdog is None else watchdog
        self._notes = Notes()
        self._inbox: SimpleQueue[Item] = SimpleQueue()
        self._gatherer = RowGatherer(gather_s, lambda: self._inbox.put(RowsWaiting()))
        self._stop = threading.Event()
        self._durable = 0  # the seq that the root is known to hold
        self._first = 0  # the sensor's rows before the block that is being read
        self._parent = ParentLink(uplink, clock)
        self._scoring = self._has_read_all = False

    def stop(self) -> None:
        """End the run; callable from any thread or signal handler."""
        self._inbox.put(Stopped())

    def run(self) -> int:
        """Run until stopped, or until the sensor ends; UsageError at another checkpoint."""
        self._uplink.open(self._inbox.put)
        self._step(Start(self._disk.load()))
        if not self._sinks.alarms:
            # A sink with an open alarm must learn that the node knows of none.
            self._sinks.update(())
        say("reading", incarnation=str(self.node.current.incarnation))
        reading = threading.Thread(target=self._read, name="sensor", daemon=True)
        reading.start()
        try:
            status = self._loop()
        finally:
            self._stop.set()
            self._gatherer.end()
            reading.join(LAST_ROWS_S)
            self._finish()
        reading.join(2.0)
        if self._disk.lost is not None:
            raise self._disk.lost
        return status

    def _loop(self) -> int:
        while True:
            self._watchdog.tick(self._status)
            if self._disk.lost is not None:
                return 2
            item = self._next(self.node.wakes_at)
            match item:
                case SensorEnded(None):
                    self._has_read_all = True
                    say("the sensor has no more rows", rows=self.rows)
                    return 0
                case SensorEnded(error):
                    say("the sensor failed", level="error", why=str(error))
                    return 1
                case Stopped():
                    say("stopping", rows=self.rows)
                    return 0
                case _:
                    self._take(item)

    def _next(self, until: float) -> Item | None:
        """Wait for the next item, at most until a time on the steady clock."""
        wait = min(until, self._gatherer.due_at) - self._clock().steady
        wait = min(wait, self._parent.reach.due_s, self._watchdog.due_s)
        try:
            # Items in the queue go first: a tick that is due can wait.
            return self._inbox.get_nowait()
        except Empty:
            pass
        try:
            return self._inbox.get(timeout=min(max(wait, 0.0), LONGEST_WAIT_S))
        except Empty:
            gathered = self._gatherer.due_at <= self._clock().steady
            return RowsWaiting() if gathered else None

    def _take(self, item: Item | None) -> None:
        self._parent.notice(item, self._credentials)
        match item:
            case None:
                self._step(Tick())
                self._parent.reach.remind()
            case Came():
                if item.kind == "job":
                    self.foreign += self._jobs is None or not self._jobs.take(item.data)
                    return
                try:
                    message = codec.decode(item.kind, item.data)
                except PeerError as error:
                    self.foreign += 1
                    say("message refused", level="warning", kind=item.kind, why=str(error))
                    return
                self._step(Received(message))
            case Opened():
                self._watchdog.start()
                self._step(Linked())
            case RowsWaiting():
                self._take_rows()

    def _take_rows(self) -> bool:
        """Let the node read rows that wait; return whether there were any."""
        gathered = self._gatherer.take(self._clock().steady)
        if gathered is None:
            return False
        rows, held = gathered
        self._watchdog.rows()
        self._first, self.rows = self.rows, self.rows + len(rows)
        self.newest.take(rows, self.rows)
        embedded = self._lags.embed(rows)
        self._first += len(rows) - len(embedded)  # rows that only began a window
        if len(embedded):
            held = None if held is None else held[len(rows) - len(embedded) :]
            self._step(Reading(embedded, held))
        return True

    def _step(self, event: Event) -> None:
        now = self._clock()
        effects = self.node.step(event, now)
        if isinstance(event, Reading) and self._jobs is not None:
            self._jobs.rows.see(event.rows, effects, self.node)
        alarms = self._sinks.alarms
        for effect in effects:
            if isinstance(effect, Alarmed):
                alarms = effect.alarms  # rows scored in the same step have its name, too
        for effect in effects:
            match effect:
                case Keep():
                    self._disk.keep(effect)
                case Send():
                    self._send(effect)
                case Consult(question):
                    self._step(Answered(question, *self._replies(self.node, question, now)))
                case Scored():
                    schema, first = self.node.current.schema, self._first
                    self._scores.write(ScoredBlock(effect, schema, first, now.wall, alarms))
                case Alarmed():
                    self._sinks.update(effect.alarms)
                case NewCertificate(certificate) if self._credentials is not None:
                    self._notes.write(self._credentials.renewed(certificate), now.steady)
                case Note():
                    self._notes.write(effect, now.steady)
                    if effect.what == "join refused":
                        self.refusal = "; ".join(effect.facts["lines"]) or effect.facts["meaning"]
        self._log_progress()

    def _send(self, effect: Send) -> None:
        message, group = effect.message, self.node.settings.group
        if isinstance(message, Report) and not message.final and message.alarm_status is not None:
            # Sinks get the same figures of an alarm as the aggregator.
            self._sinks.refresh(message.alarm_status.alarms)
        if self._credentials is not None:
            message = self._credentials.stamped(message)
        kind, data = codec.kind_of(message), codec.encode(message, coarse=self._coarse)
        final = isinstance(message, Report) and message.final
        self._parent.send(kind, group, data, final=final)

    def _log_progress(self) -> None:
        current, model = self.node.current, self.node.model
        if model is not None and model.summary is not None and not self._scoring:
            self._scoring = True
            say("scoring begins: a model is here", version=model.version)
        if (current.delivered, current.durable) != (self.delivered, self._durable):
            self.delivered, self._durable = current.delivered, current.durable
            facts = {"incarnation": str(current.incarnation), "seq": self.node.acknowledged}
            facts |= {"readings": current.delivered, "lost": current.counts.lost}
            facts |= {"durable": current.durable, **self._traffic}
            say("acknowledged", level="debug", **facts)

    def _status(self) -> str:
        why, problem = self._parent.reach.why, self._scores.problem
        return status_line(self.node, self.rows, self.delivered, why, problem)

    @property
    def _unsettled(self) -> int:
        return unsettled(self.node)

    @property
    def sent_bytes(self) -> int:
        """Bytes of messages to the parent, but for those of jobs."""
        return self._parent.sent_bytes

    @property
    def heard_bytes(self) -> int:
        return self._parent.heard_bytes

    @property
    def _traffic(self) -> dict[str, int]:
        of_jobs = 0 if self._jobs is None else self._jobs.sent_bytes
        return {"sent_bytes": self.sent_bytes + of_jobs, "heard_bytes": self.heard_bytes}

    @property
    def _awaits_parent(self) -> bool:
        """Whether the parent may take more. The end of a file also waits for a settled schema."""
        return not self.node.all_delivered or (self._has_read_all and self._unsettled > 0)

    def _finish(self) -> None:
        """Report and keep all readings, and wait a little for the parent to have them."""
        self._watchdog.stopping(self._linger_s)
        while not self._inbox.empty():
            self._take(left := self._inbox.get())
            # Who asks for the end, as well as a pipe, does not wait for a settled schema.
            self._has_read_all &= not isinstance(left, Stopped)
        while self._take_rows():
            pass  # what the sensor has handed over is learnt before the end
        self._step(Flush())
        self._scores.close()
        at_most_s = self._linger_s
        if self._has_read_all and self._unsettled:
            at_most_s += self.node.settings.patience_s  # until it joins again
        until = self._clock().steady + at_most_s
        if self._awaits_parent:
            say("waiting for the parent to have everything", at_most_s=at_most_s)
        while self._awaits_parent and self._clock().steady < until:
            item = self._next(min(until, self.node.wakes_at))
            if isinstance(item, Stopped):
                break  # the second request
            self._take(item)
            self._watchdog.tick(self._status)
        if self._jobs is not None:
            self._jobs.close()
        self._uplink.close()
        self._sinks.close()
        self._disk.close()
        sensor = {f"sensor_{what}": n for what, n in self.sensor.counts.items() if n}
        facts = sensor | self._traffic
        log_end(self.node, self._lags, facts, rows=self.rows, written=self._disk.is_written)

    # On the sensor's thread:
    def _read(self) -> None:
        try:
            self.sensor.read(self._gatherer.put, self._stop)
        except Exception as error:
            self._inbox.put(SensorEnded(error))
        else:
            self._inbox.put(SensorEnded(None))
