"""Decoder: what a message of a broker means: its fields, their numbers, and who is away.

Messages come from any device of the network: a decoder checks everything and keeps bounded state.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, Protocol

import msgspec

from submerge import PeerError
from submerge.pca.subspace import LARGEST
from submerge_client.sensors.mqtt.topics import TopicPlace

MOST_NAMES = 2048  # fields that are remembered: names come from any device of the network


@dataclass(slots=True)
class HeardField:
    """A field of a device, `device/field`, as heard, in seconds on the caller's clock."""

    name: str
    count: int
    changes: int  # readings other than the one before; `falls`, lower
    first_s: float
    last_s: float
    lowest: float
    highest: float
    last: float
    unit: str = ""
    falls: int = 0
    longest_s: float = 0.0  # the longest time between two
    mean: float = 0.0
    squares: float = 0.0  # sum of squared differences from the mean

    @property
    def deviation(self) -> float:
        """The standard deviation of its values; 0 after one reading."""
        return math.sqrt(self.squares / self.count)

    @property
    def every_s(self) -> float | None:
        """The mean time between readings; None before the second."""
        return (self.last_s - self.first_s) / (self.count - 1) if self.count > 1 else None


class Heard:
    """The fields that were heard, at most so many names; readings of others are `crowded` out."""

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._units: dict[str, str] = {}
        self.fields: dict[str, HeardField] = {}
        self.crowded = 0

    def add(self, name: str, value: float, now: float, *, unit: str = "") -> bool:
        """Take a reading that an engine can take; return whether it is the first of its name."""
        if not abs(value) <= LARGEST:
            return False
        known = self.fields.get(name)
        if known is None:
            if len(self.fields) >= self._most:
                self.crowded += 1
                return False
            unit = unit or self._units.get(name, "")
            self.fields[name] = HeardField(
                name, 1, 0, now, now, value, value, value, unit, mean=value
            )
            return True
        known.count += 1
        known.changes += value != known.last
        known.falls += value < known.last
        known.longest_s = max(known.longest_s, now - known.last_s)
        known.last_s, known.last = now, value
        known.lowest, known.highest = min(known.lowest, value), max(known.highest, value)
        known.unit = unit or known.unit
        off = value - known.mean
        known.mean += off / known.count
        known.squares += off * (value - known.mean)
        return False

    def copies(self, wanted: Callable[[str], bool]) -> list[HeardField]:
        """Return the fields whose names are wanted, as they are now."""
        return [replace(field) for name, field in self.fields.items() if wanted(name)]

    def set_unit(self, name: str, unit: str) -> None:
        """Take a unit from a description, which may come before the first reading."""
        if name in self.fields:
            self.fields[name].unit = unit
        elif len(self._units) < self._most or name in self._units:
            self._units[name] = unit


AWAY = {
    "availability": ("offline",),
    "LWT": ("offline",),
    "status": ("offline",),
    "online": ("false",),
    "$state": ("lost", "disconnected"),
}
"""The last level of a topic, and the words by which a device is away."""


class Departed(NamedTuple):
    """Devices that are away: how the names of their channels begin, with the separator."""

    scopes: tuple[str, ...]

    def covers(self, name: str) -> bool:
        return any(f"{name}{scope[-1]}".startswith(scope) for scope in self.scopes)


def says_presence(topic: str) -> bool:
    """Return whether a topic is one of those that say where a device is."""
    return topic.rsplit("/", 1)[-1] in AWAY


def departed(topic: str, place: TopicPlace, content: Any) -> Departed:
    """Return what a message ends; without scopes if it ends nothing."""
    last = topic.rsplit("/", 1)[-1]
    state = content.get("state") if isinstance(content, dict) else content
    if not isinstance(state, str) or state.lower() not in AWAY.get(last, ()):
        return Departed(())
    field = place.field.removesuffix(last).removesuffix(".")
    if not field:
        return Departed((f"{place.device}/",))
    return Departed((f"{place.device}/{field}.",))


LARGEST_PAYLOAD = 1 << 16  # bytes; longer messages are refused
LATEST_S = 1e11  # the year 5138; a time beyond it is in milliseconds

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class MalformedMessage(PeerError):
    """A message that nothing can be read from."""


class ChannelReading(NamedTuple):
    """A number of a channel, by index; None if the device has none. Time: None on arrival."""

    channel: int
    value: float | None
    time: float | None


class Decoder(Protocol):
    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The topic filters to subscribe to."""

    def readings(
        self, topic: str, payload: bytes | bytearray, *, retained: bool
    ) -> list[ChannelReading]:
        """Return the readings in a message; one without any is counted by its reason."""


class RebirthRequest(NamedTuple):
    """A message to publish, that asks for names."""

    topic: str
    payload: bytes


def check_size(payload: bytes | bytearray) -> None:
    if len(payload) > LARGEST_PAYLOAD:
        raise MalformedMessage(f"expected {LARGEST_PAYLOAD} bytes at most, got {len(payload)}")


def number_of(text: str) -> float | None:
    """Return the decimal number that a text is, as many devices write it; None if it is none."""
    text = text.strip()
    return float(text) if len(text) <= 64 and _NUMBER.fullmatch(text) else None


def seconds_of(value: Any) -> float | None:
    """Return seconds since 1970, of seconds, milliseconds or ISO 8601; None if it is no time."""
    if isinstance(value, str):
        number = number_of(value)
        if number is None:
            try:
                moment = datetime.fromisoformat(value.strip())
                return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
            except (ValueError, OverflowError):
                return None
        value = number
    if type(value) not in (int, float):
        return None
    if abs(value) > LATEST_S:
        value /= 1000
    return float(value) if abs(value) <= LATEST_S else None


DEEPEST = 8  # levels of objects and arrays in a message
MOST_FIELDS = 512  # values in a message, of any kind
LONGEST_NAME = 128  # characters of a field's path, and of a device


def content_of(payload: bytes | bytearray) -> Any:
    """Return a payload's content: of JSON, or else its text."""
    check_size(payload)
    try:
        text = bytes(payload).decode().strip()
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"expected text, got other bytes: {error}") from None
    if text[:1] not in ("{", "[", '"'):
        return text
    try:
        return msgspec.json.decode(text)
    except (ValueError, OverflowError, RecursionError) as error:
        raise MalformedMessage(f"expected JSON, got {text[:20]!r}...: {error}") from None


def fields_of(
    content: Any, states: Mapping[str, float], unusable: list[str] | None = None
) -> list[tuple[str, float]]:
    """Return the numbers in a content, with paths; `unusable` gets why others are left out."""
    found = list[tuple[str, float]]()
    for path, value in leaves_of(content, unusable):
        number = as_number(value, states)
        if number is not None:
            found.append((path, number))
    return found


def words_of(content: Any) -> list[tuple[str, str]]:
    """Return the booleans and texts in a content that are no numbers, each with its path."""
    words = list[tuple[str, str]]()
    for path, value in leaves_of(content):
        if isinstance(value, bool):
            words.append((path, "true" if value else "false"))
        elif isinstance(value, str) and value.strip() and number_of(value) is None:
            words.append((path, value.strip()))
    return words


def leaves_of(content: Any, unusable: list[str] | None = None) -> list[tuple[str, Any]]:
    """Return the values in a content that have no parts, each with its path."""
    bad = list[str]() if unusable is None else unusable
    found = list(islice(_leaves(content, "", 0, bad), MOST_FIELDS + 1))
    if len(found) > MOST_FIELDS:
        raise MalformedMessage(f"expected {MOST_FIELDS} fields at most, got more")
    return found


def at(path: Sequence[str], content: Any) -> Any:
    """Return what is at a path in a content; None if there is nothing."""
    for key in path:
        if isinstance(content, dict):
            content = content.get(key)
        elif isinstance(content, list) and key.isdecimal() and int(key[:4]) < len(content):
            content = content[int(key[:4])]
        else:
            return None
    return content


def as_number(value: Any, states: Mapping[str, float]) -> float | None:
    if isinstance(value, bool):
        return states.get("true" if value else "false")
    if isinstance(value, str):
        number = states.get(value.strip())
        return number_of(value) if number is None else number
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def is_usable(name: str) -> bool:
    """Return whether a foreign name is short, and of characters that can be seen."""
    return len(name) <= LONGEST_NAME and name.isprintable()


def unusable_name(name: str) -> str:
    return f"expected names of {LONGEST_NAME} printable characters at most, got {name[:40]!r}"


def _leaves(content: Any, path: str, depth: int, unusable: list[str]) -> Iterator[tuple[str, Any]]:
    if not isinstance(content, dict | list):
        yield path, content
        return
    if depth == DEEPEST:
        unusable.append(f"expected {DEEPEST} levels of objects at most, got more at {path!r}")
        return
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        inner = f"{path}.{key}" if path else str(key)
        if is_usable(inner):
            yield from _leaves(value, inner, depth + 1, unusable)
        else:
            unusable.append(unusable_name(inner))
