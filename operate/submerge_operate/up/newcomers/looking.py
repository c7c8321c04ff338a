"""Looking: when a machine begins again with more channels.

It looks at what its sensor hears once a minute, and keeps it. It begins again when a person has
accepted channels. With `discover = true` it accepts by itself what can be a channel, after
`FIRST_S`, and then in twice the time again and again, at most once a day: each change makes limits
provisional again. A `Pace` outlives a new beginning, or there would be one each half hour. Names
come from any device of the network: their number is bounded, in the files too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from submerge import UsageError
from submerge_client.logs import say
from submerge_client.sensors.mqtt.heard import MOST_NAMES
from submerge_operate.init.choosing import MOST_CHANNELS
from submerge_operate.up.newcomers import files
from submerge_operate.up.newcomers.newcomer import Newcomer

EVERY_S = 60.0
FIRST_S, LONGEST_S = 1800.0, 86400.0
KEEP_S = 600.0
"""Seconds between two writes of what was heard: cards wear. What is new is written sooner."""


class Pace:
    """How long a machine waits until it accepts channels by itself, all its beginnings together."""

    def __init__(self) -> None:
        self.wait_s = FIRST_S

    def slow_down(self) -> None:
        """Wait for twice as long."""
        self.wait_s = min(2 * self.wait_s, LONGEST_S)


class Looking:
    """Looks at what a machine hears beside its channels.

    folder : Of the machine's files.
    heard : Returns what is known of fields that are no channels.
    discover : Whether they are accepted without a person.
    now : Seconds on any steady clock.
    pace : Of the process; by default it begins here.

    grows : Whether the machine is to begin again, with other channels.
    """

    def __init__(
        self,
        folder: Path,
        heard: Callable[[], list[Newcomer]],
        *,
        discover: bool,
        now: float,
        pace: Pace | None = None,
    ) -> None:
        self._folder, self._heard, self._discover = folder, heard, discover
        self._accepted = files.read(folder / files.ACCEPTED)
        self._written = files.read(folder / files.HEARD)
        self.grows, self._pace = False, Pace() if pace is None else pace
        self._keep_at, self._accept_at = now + EVERY_S, now + self._pace.wait_s

    def look(self, now: float) -> None:
        """Look at what is heard, and at what was accepted."""
        heard = self._heard()
        if heard and (now >= self._keep_at or self._has_news(heard)):
            self._keep(heard, now)
        if self._discover and now >= self._accept_at:
            self._pace.slow_down()
            self._accept_at = now + self._pace.wait_s
            self._accept([each for each in heard if not each.why_not])
        try:
            self.grows = files.read(self._folder / files.ACCEPTED) != self._accepted
        except UsageError as error:
            say("channels not read", level=logging.WARNING, why=str(error))

    def _has_news(self, heard: list[Newcomer]) -> bool:
        """Return whether a field is new, or can be a channel by now."""
        known = {each.name: each.why_not for each in self._written}
        return any(
            each.name not in known or (known[each.name] and not each.why_not) for each in heard
        )

    def _keep(self, heard: list[Newcomer], now: float) -> None:
        self._keep_at = now + KEEP_S
        # What an earlier process heard is not forgotten before this one has heard as much.
        known = {each.name: each for each in self._written}
        for each in heard:
            before = known.pop(each.name, each)
            known[each.name] = each if each.readings >= before.readings else before
        # What is heard now stands last.
        fields = tuple(known.values())[-MOST_NAMES:]
        if fields != self._written:
            self._write(files.HEARD, fields)
            self._written = fields

    def _accept(self, ready: list[Newcomer]) -> None:
        known = {each.name for each in self._accepted}
        room = max(0, MOST_CHANNELS - len(known))
        new = [each for each in ready if each.name not in known][:room]
        if new:
            say("new channels, learnt from now on", names=", ".join(each.name for each in new))
            self._write(files.ACCEPTED, (*self._accepted, *new))

    def _write(self, name: str, fields: tuple[Newcomer, ...]) -> None:
        try:
            files.write(self._folder / name, fields)
        except OSError as error:
            say(f"{name} not written", level=logging.WARNING, why=str(error))
