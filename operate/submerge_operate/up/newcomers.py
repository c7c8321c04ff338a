"""Newcomers: fields that were heard and are no channels, and how they become channels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from submerge import UsageError
from submerge.stats.moments import FLAT
from submerge_client.config.schemas import ChannelConfig
from submerge_client.files import atomic_write
from submerge_client.logs import say
from submerge_client.sensors.mqtt.decoder import MOST_NAMES, HeardField
from submerge_files.console.units import in_words
from submerge_operate.init.proposal import MOST_CHANNELS, why_not
from submerge_operate.up.config import BoxConfig

READINGS, SPAN_S = 10, 1800.0
"""Readings and seconds after which a field's mean and deviation are known well enough."""

EARLY, CONSTANT = "not heard for long enough", "constant so far"

GUESS = 0.1  # the least scale of a field that was not heard for long enough, as a share of its mean


class Newcomer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    unit: str
    offset: float  # mean of what was heard, in its unit
    scale: float  # its standard deviation
    readings: int
    every_s: float
    why_not: str = ""  # be a channel, yet or ever; "" if it can

    @property
    def channel(self) -> ChannelConfig:
        return ChannelConfig(
            name=self.name, unit=self.unit, offset=self.offset, scale=self.scale or 1.0
        )


def newcomers_of(sensor: object) -> list[Newcomer]:
    """Return what a sensor has heard beside its channels; none from most kinds of sensors."""
    heard: Iterable[HeardField] = getattr(sensor, "newcomers", ())
    return [_newcomer(field) for field in heard]


def _newcomer(field: HeardField) -> Newcomer:
    if field.count < READINGS or field.last_s - field.first_s < SPAN_S:
        why = EARLY
    elif not field.deviation > FLAT * abs(field.mean):
        # As when a scale is measured: by what rounding leaves, the next change would be too large.
        why = CONSTANT
    else:
        why = why_not(field.name, field, None)
    return Newcomer(
        name=field.name,
        unit=field.unit,
        offset=field.mean,
        scale=field.deviation,
        readings=field.count,
        every_s=field.every_s or 0.0,
        why_not=why,
    )


HEARD, ACCEPTED = "newcomers.json", "channels.json"

FORM = 1


class _Content(msgspec.Struct, frozen=True):
    form: int
    channels: tuple[Newcomer, ...]


def read(path: Path) -> tuple[Newcomer, ...]:
    """Return the fields in a file; none if there is no file."""
    try:
        content = msgspec.json.decode(path.read_bytes(), type=_Content)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError) as error:
        raise _refusal(path, str(error)) from error
    if content.form != FORM:
        raise _refusal(path, f"form {content.form}")
    return content.channels


def write(path: Path, fields: Sequence[Newcomer]) -> None:
    """Replace a file. OSError if that fails: the file stays as it was."""
    content = msgspec.json.encode(_Content(FORM, tuple(fields)))
    atomic_write(path, msgspec.json.format(content, indent=1) + b"\n", mode=0o600)


def _refusal(path: Path, got: str) -> UsageError:
    return UsageError(
        f"{path}: expected JSON of channels, form {FORM}, as submerge up writes it, got: {got};"
        " restore it, or delete it: its channels are then new again"
    )


MOST_SHOWN = 10


def accept(config: BoxConfig, patterns: Sequence[str], say: Callable[[str], None]) -> None:
    folder = config.folder
    heard, accepted = read(folder / HEARD), read(folder / ACCEPTED)
    known = {*config.schema.names, *(each.name for each in accepted)}
    new = [each for each in heard if each.name not in known]
    chosen = [each for each in new if any(fnmatchcase(each.name, one) for one in patterns)]
    excluded = [one for one in patterns if not chosen and not config.sensor.takes(one)]
    if excluded:
        raise UsageError(
            f"--accept: expected a name that include and exclude in [sensor] let through, got"
            f" {excluded[0]}: change them in the configuration, and start again"
        )
    if not chosen:
        names = ", ".join(each.name for each in new[:MOST_SHOWN]) or "nothing new"
        more = ", ..." if len(new) > MOST_SHOWN else ""
        raise UsageError(
            f"--accept: expected a name or pattern of a field that was heard, got"
            f" {' '.join(patterns)}; heard: {names}{more}"
        )
    # Few readings may make a scale far too small.
    ready = [each for each in chosen if each.why_not != CONSTANT]
    for i, each in enumerate(ready):
        if each.why_not == EARLY:
            least = GUESS * abs(each.offset)
            ready[i] = msgspec.structs.replace(each, scale=max(each.scale, least))
    for each in (each for each in chosen if each.why_not == CONSTANT):
        say(f"{each.name}: {each.why_not}; try again when it has changed")
    if not ready:
        raise UsageError(
            f"--accept: expected a field that has changed, got {chosen[0].name} ({CONSTANT}):"
            " try again when it has changed"
        )
    # A wrong name is refused before it is written.
    config.with_channels(each.channel for each in (*accepted, *ready))
    write(folder / ACCEPTED, (*accepted, *ready))
    for each in ready:
        by_unit = config.schema.scaling == "units" and each.channel.step
        guess = f", with {each.channel.scale:.2g} for its scale, a first guess"
        say(f"{each.name}: accepted{guess if each.why_not == EARLY and not by_unit else ''}")
    say("submerge up takes them within a minute, or at its next start")


# A `Pace` outlives a new beginning, or there would be one each half hour.

EVERY_S = 60.0
FIRST_S, LONGEST_S = SPAN_S + 2 * EVERY_S, 86400.0  # what spoke at once is known by then
KEEP_S = 600.0
"""Seconds between two writes of what was heard: cards wear. What is new is written sooner."""


class Pace:
    """How long a machine waits until it accepts channels by itself, all its beginnings together."""

    def __init__(self) -> None:
        self.wait_s = FIRST_S


class Looking:
    """Looks at what a machine hears beside its channels.

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
        self._accepted = read(folder / ACCEPTED)
        self._written = read(folder / HEARD)
        self._announced = dict.fromkeys(each.name for each in (*self._accepted, *self._written))
        self.grows, self._pace = False, Pace() if pace is None else pace
        self._keep_at, self._accept_at = now + EVERY_S, now + self._pace.wait_s

    def look(self, now: float) -> None:
        """Look at what is heard, and at what was accepted."""
        heard = self._heard()
        self._announce([each.name for each in heard if not why_not(each.name, None, None)], now)
        if heard and (now >= self._keep_at or self._has_news(heard)):
            self._keep(heard, now)
        if self._discover and now >= self._accept_at:
            self._pace.wait_s = min(2 * self._pace.wait_s, LONGEST_S)
            self._accept_at = now + self._pace.wait_s
            self._accept([each for each in heard if not each.why_not])
        try:
            self.grows = read(self._folder / ACCEPTED) != self._accepted
        except UsageError as error:
            say("channels not read", level="warning", why=str(error))

    def _announce(self, names: Sequence[str], now: float) -> None:
        """Say when fields that are heard first join."""
        new = [name for name in names if name not in self._announced][:MOST_NAMES]
        if not new:
            return
        self._announced |= dict.fromkeys(new)
        at, wait_s = self._accept_at, self._pace.wait_s
        while at < now + SPAN_S:
            at += (wait_s := min(2 * wait_s, LONGEST_S))
        itself = f"in {in_words(at - now)} by itself, if it changes; "
        joins = f"{itself * self._discover}at once by submerge up --accept NAME"
        more = ", …" * (len(new) > MOST_SHOWN)
        say("new fields", level="warning", names=", ".join(new[:MOST_SHOWN]) + more, joins=joins)

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
            self._write(HEARD, fields)
            self._written = fields

    def _accept(self, ready: list[Newcomer]) -> None:
        known = {each.name for each in self._accepted}
        room = max(0, MOST_CHANNELS - len(known))
        new = [each for each in ready if each.name not in known][:room]
        if new:
            say("new channels, learnt from now on", names=", ".join(each.name for each in new))
            self._write(ACCEPTED, (*self._accepted, *new))

    def _write(self, name: str, fields: tuple[Newcomer, ...]) -> None:
        try:
            write(self._folder / name, fields)
        except OSError as error:
            say(f"{name} not written", level="warning", why=str(error))
