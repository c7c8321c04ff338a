"""Following alarms: each start and each end once, however often one looks, and who restarts."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.event import alarm_of
from submerge_fleet.console.admin_client import NoAnswer

if TYPE_CHECKING:
    from submerge_aggregator.questions.alarm_views import AlarmView

EVERY_S = 1.5

MOST = 10_000
"""Alarms that are remembered, so as not to be told again."""

Event = Literal["start", "end", "gone"]
"""It began; it is over; nobody tells of it any more, and it was not over: its node is forgotten."""


class Followed:
    """What has been told already."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Alarm, AlarmView]] | None = None
        self._gone: frozenset[str] = frozenset()

    def news(self, views: Sequence[AlarmView]) -> list[tuple[Event, AlarmView]]:
        """Return what has happened since the last look; at the first, what is open."""
        seen = {each[0].name: each for each in zip(map(_alarm, views), views, strict=True)}
        if self._known is None:
            # What was over before the first look is no news.
            self._known = {name: each for name, each in seen.items() if not each[1].open}
        known = self._known
        changes = diff((each for each, _ in known.values()), (each for each, _ in seen.values()))
        gone = frozenset(alarm.name for kind, alarm in changes if kind == "gone")
        events: list[tuple[Event, AlarmView]] = []
        for kind, alarm in changes:
            if kind == "start" or kind == "end":
                events.append((kind, seen[alarm.name][1]))
            elif kind == "gone" and alarm.is_open and alarm.name not in self._gone:
                events.append((kind, known[alarm.name][1]))
        self._gone = gone
        for name, each in seen.items():
            # As the newest, so that it is forgotten last; and what is over stays over.
            was = known.pop(name, each)
            known[name] = each if was[1].open else was
        while len(known) > max(MOST, len(seen)):
            del known[next(iter(known))]
        return sorted(events, key=lambda each: _when(*each))


def follow(
    look: Callable[[], Sequence[AlarmView] | None],
    tell: Callable[[Event, AlarmView], None],
    complain: Callable[[str], None],
    *,
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Tell what happens until Ctrl-C, also where SIGINT came down ignored, as a script's `&` does.

    For the main thread, as Python's signal handlers are.

    look : asks the aggregator; None where no alarm has begun or is over since. One that is away
        is complained of once, and waited for

    Raises
    ------
    NoAnswer
        If it does not answer from the first.
    """
    followed, away, before = Followed(), False, False
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while True:
            try:
                views = look()
            except NoAnswer as error:
                if not before:
                    raise
                if not away:
                    complain(f"{error} It is waited for")
                away = True
            else:
                away, before = False, True
                for event, view in [] if views is None else followed.news(views):
                    tell(event, view)
            wait(EVERY_S)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGINT, handler)


def _when(event: Event, view: AlarmView) -> float:
    return view.began if event == "start" else view.ended or view.began


def _alarm(view: AlarmView) -> Alarm:
    """The alarm that is seen: two groups may have nodes of one name."""
    facts = {name: getattr(view, name) for name in view.__slots__}
    return alarm_of(facts | {"node": f"{view.group}/{view.node}"})
