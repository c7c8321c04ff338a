"""Following alarms: each start and each end once, also when nodes or aggregators restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.event import alarm_of
from submerge_files.console.ways import NoAnswer
from submerge_operate.fleet.watching import looks, until_interrupted

if TYPE_CHECKING:
    from submerge_aggregator.questions.alarm_views import AlarmView

EVERY_S = 1.5

MOST = 10_000
"""Alarms that are remembered, so that none is shown twice."""

Event = Literal["start", "end", "gone"]
"""It began; it is over; no node reports it any more while it was open: its node was forgotten."""


class Followed:
    """The alarms that were shown already."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Alarm, AlarmView]] | None = None
        self._gone: frozenset[str] = frozenset()

    def news(self, views: Sequence[AlarmView]) -> list[tuple[Event, AlarmView]]:
        """Return what happened since the last look; at the first, the open alarms."""
        seen = {each[0].name: each for each in zip(map(_alarm, views), views, strict=True)}
        if self._known is None:
            # What ended before the first look is not shown.
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
            # As the newest, so that it is dropped last. An alarm that is over stays over.
            was = known.pop(name, each)
            known[name] = each if was[1].open else was
        while len(known) > max(MOST, len(seen)):
            del known[next(iter(known))]
        return sorted(events, key=lambda each: _when(*each))


def follow(
    look: Callable[[], Sequence[AlarmView] | None],
    show: Callable[[Event, AlarmView], None],
    complain: Callable[[str], None],
    *,
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Show events until Ctrl-C, also where a script's `&` has set SIGINT to be ignored.

    For the main thread, as Python's signal handlers are.

    look : asks the aggregator; None where no alarm changed since. An aggregator that stops
        answering is complained of once, and asked again

    Raises
    ------
    NoAnswer
        If the first question gets no answer.
    """
    followed, away = Followed(), False
    with until_interrupted():
        for found in looks(look, EVERY_S, wait):
            if isinstance(found, NoAnswer):
                if not away:
                    complain(f"{found} Asking again until it answers")
                away = True
                continue
            away = False
            for event, view in [] if found is None else followed.news(found):
                show(event, view)


def _when(event: Event, view: AlarmView) -> float:
    return view.began if event == "start" else view.ended or view.began


def _alarm(view: AlarmView) -> Alarm:
    """Return the alarm of a view; its node has the group's name too, as names may recur."""
    facts = {name: getattr(view, name) for name in view.__slots__}
    return alarm_of(facts | {"node": f"{view.group}/{view.node}", "deviations": {}})
