"""Webhook: posts each start and each end to one server, and retries until it succeeds.

1. One event at a time, in order: an end never overtakes its start. What is due follows from the
   newest state (`undelivered`), so nothing piles up.
2. An event is delivered once the server has answered with success; then the journal notes it. A
   process that is killed between the two posts it again: at least once. Alertmanager and ntfy
   recognise the copy; a server that takes plain JSON recognises it by `id` and `event`.
3. Any other answer, and silence, is retried with full jitter below a ceiling that doubles to
   five minutes: the server or its token may be repaired meanwhile.
4. Times are sent on the server's clock, if its answers have a date: a device's clock may be wrong.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.names import RandomSource
from submerge.protocol.retry import Retry
from submerge_client.alarms.delivered import Delivered, undelivered
from submerge_client.alarms.journal import Journal
from submerge_client.alarms.payloads import Payload
from submerge_client.alarms.post import HttpAnswer
from submerge_client.logs import say
from submerge_client.memory.entropy import SystemEntropy

PATIENCE_S = 2.0
CAP_S = 300.0
SLACK_S = 60.0
"""Clocks that differ by less count as equal."""

LONGEST_WAIT_S = 3600.0

Requested = TypeVar("Requested")


class WebhookDelivery(Generic[Requested]):
    """Decides what is posted next, and when.

    post : Posts a request and waits for the answer.
    name : The name of this sink in the journal.
    where : The server, for the log, without secrets.
    kind : The kind of server, for the log.
    clock, wall : A steady clock in seconds, and Unix seconds.
    """

    def __init__(
        self,
        payload: Payload[Requested],
        post: Callable[[Requested], HttpAnswer],
        journal: Journal,
        *,
        name: str,
        where: str,
        kind: str = "webhook",
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        rng: RandomSource | None = None,
    ) -> None:
        self._payload, self._post, self._journal = payload, post, journal
        self._name, self._clock, self._wall = name, clock, wall
        self._kind = kind
        self._where: dict[str, Any] = {kind: where}
        self._rng = SystemEntropy() if rng is None else rng
        self._retry = Retry(PATIENCE_S, CAP_S)
        self._posted_at: dict[str, float] = {}
        self._skew = 0.0
        self._is_second = False
        self._why: str | None = None

    def begin(self, alarms: tuple[Alarm, ...]) -> None:
        """Begin with a state, if this sink is new: only what comes after it is delivered."""
        if self._journal.delivered(self._name) is None:
            self._journal.note(self._name, Delivered.since(alarms))

    def post_due(self, alarms: tuple[Alarm, ...]) -> float:
        """Post the next event that is due; return the seconds until there may be more."""
        if self._retry.tries and self._clock() < self._retry.at:
            return self._retry.at - self._clock()
        delivered = self._journal.delivered(self._name) or Delivered.since(alarms)
        new = undelivered(delivered, alarms)
        if new:
            return self._send(new[0], delivered)
        repeated = self._oldest_open(alarms, delivered)
        if repeated is None or self._payload.repeats_s is None:
            return LONGEST_WAIT_S
        wait = self._last_post(repeated) + self._payload.repeats_s - self._clock()
        if wait > 0:
            return wait
        return self._send(AlarmEvent("start", repeated), delivered, again=True)

    def _oldest_open(self, alarms: tuple[Alarm, ...], delivered: Delivered) -> Alarm | None:
        """Return the open alarm whose last post is the oldest: some servers want repetitions."""
        begun = {each.name for each in delivered.open}
        self._posted_at = {name: at for name, at in self._posted_at.items() if name in begun}
        open_ = (each for each in alarms if each.is_open and each.name in begun)
        return min(open_, key=self._last_post, default=None)

    def _last_post(self, alarm: Alarm) -> float:
        # A new process does not know when the last one posted: it posts at once.
        return self._posted_at.get(alarm.name, -math.inf)

    def _send(self, each: AlarmEvent, delivered: Delivered, *, again: bool = False) -> float:
        """Post an event; return the seconds until there may be more to post."""
        first = delivered.started(each.alarm) or each.alarm
        request = self._payload.request(each, first, now=self._wall(), skew=self._skew)
        answer = self._post(request)
        moved = self._set_clock(answer)
        if answer.why:
            return self._retry_later(answer)
        self._retry.stop()
        if self._why is not None:
            self._why = None
            say(f"alarms reach the {self._kind} again", **self._where)
        if moved and not self._is_second:
            # The server took times that were not on its clock: post once more.
            self._is_second = True
            return 0.0
        self._is_second = False
        self._posted_at[each.alarm.name] = self._clock()
        if not again:
            self._journal.note(self._name, delivered.after(each))
        return 0.0

    def _set_clock(self, answer: HttpAnswer) -> bool:
        """Take over the server's clock; return whether it differs from what was known."""
        if answer.at is None or not self._payload.timed:
            return False
        skew = answer.at - self._wall()
        skew = skew if abs(skew) > SLACK_S else 0.0
        moved = abs(skew - self._skew) > SLACK_S
        self._skew = skew
        return moved

    def _retry_later(self, answer: HttpAnswer) -> float:
        if answer.why != self._why:
            self._why = answer.why
            what = f"alarms do not reach the {self._kind}, trying on"
            say(what, level=logging.WARNING, **self._where, why=answer.why)
        now = self._clock()
        self._retry.tried(now, self._rng)
        self._retry.at = max(self._retry.at, now + answer.pause_s)
        return self._retry.at - now


class Webhook:
    """A sink that runs a `WebhookDelivery` in a thread of its own.

    name : The name of the thread.
    """

    def __init__(self, delivery: WebhookDelivery[Any], name: str) -> None:
        self._delivery = delivery
        self._alarms: tuple[Alarm, ...] | None = None
        self._changed = threading.Condition()
        self._closing = self._idle = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def update(self, alarms: tuple[Alarm, ...]) -> None:
        """Have the newest state delivered; returns at once."""
        # Here, and not in the thread: the state may have changed by the time that it runs.
        self._delivery.begin(alarms)
        with self._changed:
            self._alarms, self._idle = alarms, False
            self._changed.notify_all()

    def close(self, patience_s: float) -> None:
        """Wait at most `patience_s` for what is on its way; the next start sends the rest."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or self._alarms is None, patience_s)
            self._closing = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closing:
                    return
                alarms, self._idle = self._alarms, False
            wait = LONGEST_WAIT_S
            if alarms is not None:
                try:
                    wait = self._delivery.post_due(alarms)
                except Exception as error:  # no thread dies in silence
                    wait = CAP_S
                    why = f"{type(error).__name__}: {error}"
                    say("a bug in the webhook, please report it", level=logging.ERROR, why=why)
            if wait <= 0:
                continue
            with self._changed:
                if alarms is self._alarms and not self._closing:
                    self._idle = True
                    self._changed.notify_all()
                    self._changed.wait(min(wait, LONGEST_WAIT_S))
