"""Following alarms: each start and each end once, however often one looks, and who restarts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

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
        self._reported: dict[tuple[str, str], tuple[Event, AlarmView]] = {}
        self._looked = False

    def news(self, views: Sequence[AlarmView]) -> list[tuple[Event, AlarmView]]:
        """Return what has happened since the last look; at the first, what is open."""
        events: list[tuple[Event, AlarmView]] = []
        seen = {(view.group, view.id): view for view in views}
        for key, view in seen.items():
            last, _ = self._reported.pop(key, (None, view))
            # What was over before anybody looked is no news.
            if last is None and (view.open or self._looked):
                events.append(("start", view))
            if not view.open and last != "end" and (last is not None or self._looked):
                events.append(("end", view))
            # As the newest, so that it is forgotten last. One that was gone goes on.
            self._reported[key] = "start" if view.open else "end", view
        for key, (last, view) in self._reported.items():
            if last == "start" and key not in seen:
                events.append(("gone", view))
                self._reported[key] = "gone", view
        while len(self._reported) > max(MOST, len(seen)):
            del self._reported[next(iter(self._reported))]
        self._looked = True
        return sorted(events, key=lambda each: _when(*each))


def follow(
    look: Callable[[], Sequence[AlarmView] | None],
    tell: Callable[[Event, AlarmView], None],
    complain: Callable[[str], None],
    *,
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Tell what happens until somebody presses Ctrl-C.

    look : asks the aggregator; None where no alarm has begun or is over since. One that is away
        is complained of once, and waited for

    Raises
    ------
    NoAnswer
        If it does not answer from the first.
    """
    followed, away, before = Followed(), False, False
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


def _when(event: Event, view: AlarmView) -> float:
    return view.began if event == "start" else view.ended or view.began
