"""Webhook: tells one server of each start and each end, for as long as that takes.

1. One event at a time, in order: an end never overtakes its start. What is to be told follows
   from the newest state (`told`), so that whatever happens nothing piles up.
2. An event is told when the server has answered yes; then it is noted, and not told again. A
   process that is killed between the two tells it once more: at least once. Alertmanager and
   ntfy know it again; whoever takes plain JSON knows it by `id` and `event`.
3. Whatever a server answers but yes, and silence, is tried again, with full jitter below a
   ceiling that doubles to five minutes: an unwilling server may be mended, and so may its token.
4. Times are told on the server's clock, if it says how late it is: that of a device may lie.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.retry import Retry
from submerge_client.alarms.delivered import Delivered, undelivered
from submerge_client.alarms.journal import Journal
from submerge_client.alarms.payloads import Payload
from submerge_client.alarms.post import HttpAnswer
from submerge_client.logs import say

PATIENCE_S = 2.0
CAP_S = 300.0
SLACK_S = 60.0
"""What two clocks may differ by, and be the same."""

LONGEST_WAIT_S = 3600.0

Requested = TypeVar("Requested")


class WebhookDelivery(Generic[Requested]):
    """Decides what is posted next, and when.

    Parameters
    ----------
    shape : Shape
    post : callable
        Posts a request, and waits for the answer.
    journal : Journal
    name : str
        Of this sink, in the journal.
    where : str
        The server, for the log: nothing that is secret.
    kind : str
        What it is, for the log.
    clock, wall : callable
        Seconds, never set back; and Unix seconds.
    rng : numpy.random.Generator, optional
    """

    def __init__(
        self,
        shape: Payload[Requested],
        post: Callable[[Requested], HttpAnswer],
        journal: Journal,
        *,
        name: str,
        where: str,
        kind: str = "webhook",
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        rng: np.random.Generator | None = None,
    ) -> None:
        self._shape, self._post, self._journal = shape, post, journal
        self._name, self._clock, self._wall = name, clock, wall
        self._kind = kind
        self._where: dict[str, Any] = {kind: where}
        self._rng = np.random.default_rng() if rng is None else rng
        self._retry = Retry(PATIENCE_S, CAP_S)
        self._said_at: dict[str, float] = {}
        self._skew = 0.0
        self._is_second = False
        self._why: str | None = None

    def meet(self, alarms: tuple[Alarm, ...]) -> None:
        """Begin with a state, if this sink is new: what comes after it is news."""
        if self._journal.delivered(self._name) is None:
            self._journal.note(self._name, Delivered.since(alarms))

    def turn(self, alarms: tuple[Alarm, ...]) -> float:
        """Post what is due, if anything is; return the seconds until there may be more."""
        if self._retry.tries and self._clock() < self._retry.at:
            return self._retry.at - self._clock()
        delivered = self._journal.delivered(self._name) or Delivered.since(alarms)
        new = undelivered(delivered, alarms)
        if new:
            return self._say(new[0], delivered)
        repeated = self._repetition(alarms, delivered)
        if repeated is None or self._shape.repeats_s is None:
            return LONGEST_WAIT_S
        wait = self._said(repeated) + self._shape.repeats_s - self._clock()
        return wait if wait > 0 else self._say(AlarmEvent("start", repeated), delivered, again=True)

    def _repetition(self, alarms: tuple[Alarm, ...], delivered: Delivered) -> Alarm | None:
        """The open alarm that was said longest ago: servers may want to hear of it again."""
        begun = {each.name for each in delivered.open}
        self._said_at = {name: at for name, at in self._said_at.items() if name in begun}
        open_ = (each for each in alarms if each.is_open and each.name in begun)
        return min(open_, key=self._said, default=None)

    def _said(self, alarm: Alarm) -> float:
        # A process that has just begun does not know for how long nothing was said.
        return self._said_at.get(alarm.name, -math.inf)

    def _say(self, each: AlarmEvent, delivered: Delivered, *, again: bool = False) -> float:
        """Post an event; return the seconds until there may be more to say."""
        first = delivered.started(each.alarm) or each.alarm
        request = self._shape.request(each, first, now=self._wall(), skew=self._skew)
        answer = self._post(request)
        moved = self._set_clock(answer)
        if answer.why:
            return self._failed(answer)
        self._retry.stop()
        if self._why is not None:
            self._why = None
            say(f"alarms told to the {self._kind} again", **self._where)
        if moved and not self._is_second:
            # What it took was said in times that it does not have.
            self._is_second = True
            return 0.0
        self._is_second = False
        self._said_at[each.alarm.name] = self._clock()
        if not again:
            self._journal.note(self._name, delivered.after(each))
        return 0.0

    def _set_clock(self, answer: HttpAnswer) -> bool:
        """Hear how late it is at the server; return whether that was news."""
        if answer.at is None or not self._shape.timed:
            return False
        skew = answer.at - self._wall()
        skew = skew if abs(skew) > SLACK_S else 0.0
        moved = abs(skew - self._skew) > SLACK_S
        self._skew = skew
        return moved

    def _failed(self, answer: HttpAnswer) -> float:
        if answer.why != self._why:
            self._why = answer.why
            what = f"alarms not told to the {self._kind}, trying on"
            say(what, level=logging.WARNING, **self._where, why=answer.why)
        now = self._clock()
        self._retry.tried(now, self._rng)
        self._retry.at = max(self._retry.at, now + answer.pause_s)
        return self._retry.at - now


class Webhook:
    """A courier, in a thread of its own.

    Parameters
    ----------
    courier : Courier
    name : str
        Of the thread.
    """

    def __init__(self, delivery: WebhookDelivery[Any], name: str) -> None:
        self._delivery = delivery
        self._heard: tuple[Alarm, ...] | None = None
        self._news = threading.Condition()
        self._closing = self._idle = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def tell(self, alarms: tuple[Alarm, ...]) -> None:
        """Have the newest state told; returns at once."""
        # Here, and not when the thread comes to it: there may be news by then.
        self._delivery.meet(alarms)
        with self._news:
            self._heard, self._idle = alarms, False
            self._news.notify_all()

    def close(self, patience_s: float) -> None:
        """Wait a moment for what is on its way; the next start tells the rest."""
        with self._news:
            self._news.wait_for(lambda: self._idle or self._heard is None, patience_s)
            self._closing = True
            self._news.notify_all()

    def _run(self) -> None:
        while True:
            with self._news:
                if self._closing:
                    return
                heard, self._idle = self._heard, False
            wait = LONGEST_WAIT_S
            if heard is not None:
                try:
                    wait = self._delivery.turn(heard)
                except Exception as error:  # no thread dies in silence
                    wait = CAP_S
                    why = f"{type(error).__name__}: {error}"
                    say("alarms not told to the webhook", level=logging.ERROR, why=why)
            if wait <= 0:
                continue
            with self._news:
                if heard is self._heard and not self._closing:
                    self._idle = True
                    self._news.notify_all()
                    self._news.wait(min(wait, LONGEST_WAIT_S))
