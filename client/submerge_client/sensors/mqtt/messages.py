"""MessageDecoder: messages of many devices, as they are, as readings of channels (docs/fleet.md).

Of two topics that give one name, it is the first pattern's, or else the first by letters; the
other's number has the name of all levels, and so has one whose channel is called so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from submerge import UsageError
from submerge_client.sensors.mqtt.decoder import (
    LARGEST_PAYLOAD,
    LONGEST_NAME,
    MOST_NAMES,
    ChannelReading,
    Departed,
    Heard,
    MalformedMessage,
    RebirthRequest,
    at,
    content_of,
    departed,
    fields_of,
    says_presence,
    seconds_of,
)
from submerge_client.sensors.mqtt.descriptions import Descriptions
from submerge_client.sensors.mqtt.sparkplug import (
    NAMESPACE,
    SparkplugDecoder,
    Unborn,
    rebirth_request,
)
from submerge_client.sensors.mqtt.topics import NamePatterns, TopicPattern, is_reading, name_of
from submerge_client.sensors.tally import ProblemTally

PLACE = "{channel}"


class SingleDecoder:
    """A `Decoder` of one number in each message; without times, retained ones may be days old.

    value, time : Paths in JSON; "" is a bare number, or no time. Seconds since 1970 or ISO 8601.
    """

    def __init__(
        self, channels: Sequence[str], tally: ProblemTally, *, topic: str, value: str, time: str
    ) -> None:
        if time and not value:
            raise UsageError(
                f"time must be left out where a message is a bare number, got {time!r}:"
                " or set value to the path of the number"
            )
        levels = topic.split("/")
        self.subscriptions = ("/".join("+" if PLACE in level else level for level in levels),)
        self._before, self._behind = topic.split(PLACE)
        self._places = {name: place for place, name in enumerate(channels)}
        self._value = value.split(".") if value else []
        self._time = time.split(".") if time else []
        self._tally = tally

    def readings(
        self, topic: str, payload: bytes | bytearray, *, retained: bool
    ) -> list[ChannelReading]:
        channel = self.channel(topic)
        if channel is None:
            self._tally.add("unknown", "no channel of the schema, ignored", topic=topic)
            return []
        if retained and not self._time:
            self._tally.add("retained")
            return []
        try:
            value, time = self.read(payload)
        except (ValueError, OverflowError, RecursionError) as error:
            self._tally.add("malformed", "malformed message", topic=topic, error=str(error))
            return []
        if value is None:
            self._tally.add("null")
            return []
        return [ChannelReading(channel, value, time)]

    def channel(self, topic: str) -> int | None:
        if not (topic.startswith(self._before) and topic.endswith(self._behind)):
            return None
        return self._places.get(topic[len(self._before) : len(topic) - len(self._behind)])

    def read(self, payload: bytes | bytearray) -> tuple[float | None, float | None]:
        """Return a message's number, None for no value, and its time, if any; or ValueError."""
        if len(payload) > LARGEST_PAYLOAD:
            raise ValueError(f"expected {LARGEST_PAYLOAD} bytes at most, got {len(payload)}")
        if not payload.strip():
            return None, None
        if not self._value:
            text = payload.decode()
            return None if text.strip() == "null" else _number(text), None
        content = msgspec.json.decode(payload)
        value = _at(self._value, content)
        said = _at(self._time, content) if self._time else None
        time = seconds_of(said)
        if self._time and time is None:
            raise ValueError(f"expected seconds since 1970 or ISO 8601, got {said!r:.40}")
        return None if value is None else _number(value), time


def _at(path: Sequence[str], content: Any) -> Any:
    for key in path:
        if not isinstance(content, dict) or key not in content:
            raise ValueError(f"expected something at {'.'.join(path)!r}, got nothing")
        content = content[key]
    return content


def _number(value: object) -> float:
    """Return a number, also from text: many devices write it so."""
    if type(value) in (int, float) or (isinstance(value, str) and "_" not in value):
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"expected a number, got {value!r:.40}")


KINDS = ("malformed", "unknown", "unremembered", "unborn", "retained", "alike")
"""The kinds of messages and numbers that it counts."""

ASK_AGAIN_S = 60.0
MOST_ASKED = 64  # edge nodes that are asked for a birth, each once in `ASK_AGAIN_S`
TIMESTAMP = "timestamp"  # the value of `time` that reads the times of Sparkplug B


class NamedReading(NamedTuple):
    """A number `device/field`, None if the device has none; seconds since 1970, or None."""

    name: str
    value: float | None
    time: float | None
    unit: str = ""

    @property
    def is_of_now(self) -> bool:
        """Whether it counts in a retained message: it has a time, or says that a device is away."""
        return self.time is not None or self.value is None


class MessageDecoder:
    """Reads the messages of devices; `heard` has all numbers that pass the patterns.

    rebirth : Publishes: edge nodes of Sparkplug B are asked for births.
    whole : Names have all levels.
    """

    def __init__(
        self,
        channels: Sequence[str],
        *,
        topics: Sequence[str],
        tally: ProblemTally,
        time: str = "",
        include: Sequence[str] = ("*",),
        exclude: Sequence[str] = (),
        states: Mapping[str, float] | None = None,
        rebirth: bool = False,
        whole: bool = False,
        steady: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._patterns, self._states = NamePatterns(include, exclude), dict(states or {})
        for name in channels:
            if not self._patterns.take(name):
                raise UsageError(
                    f"channels must be left by include and exclude, got {name!r}:"
                    " change the patterns, or take it out of the schema"
                )
        self._topics = [TopicPattern(topic) for topic in topics]
        self.subscriptions = tuple(dict.fromkeys(topic.subscription for topic in self._topics))
        self._places = {name: place for place, name in enumerate(channels)}
        self._time_path, self._tally = time.split(".") if time else [], tally
        self._sparkplug, self._descriptions = SparkplugDecoder(self._states), Descriptions()
        self._rebirth, self._steady, self._wall, self._whole = rebirth, steady, wall, whole
        self._topic_of: dict[str, tuple[int, str]] = {}  # by name, with its pattern's number
        self._asked: dict[Unborn, float] = {}
        self._requests: list[RebirthRequest] = []
        self._unlisted: list[str] = []
        self._kept_out: dict[str, bool] = {}  # by name, whether it was taken
        self.heard = Heard()

    def readings(
        self, topic: str, payload: bytes | bytearray, *, retained: bool
    ) -> list[ChannelReading]:
        if retained and not self._time_path and not says_presence(topic):
            self._tally.add("retained")
            return []
        try:
            found = self._found(topic, payload)
        except MalformedMessage as error:
            self._tally.add("malformed", "malformed message", topic=topic[:256], error=str(error))
            return []
        # What a pattern of all topics hears of orders and descriptions is no new field.
        measures = is_reading(topic) or not {"#", "+/#"} & set(self.subscriptions)
        if retained:
            found, of_all = [each for each in found if each.is_of_now], len(found)
            self._tally.counts["retained"] += len(found) < of_all
        readings = list[ChannelReading]()
        for name, value, seconds, unit in found:
            channel = self._places.get(name)
            if channel is not None:
                readings.append(ChannelReading(channel, value, seconds))
            elif not self._patterns.take(name):
                self._keep_out(name)
                continue
            elif not measures:
                continue
            elif value is not None:
                self._tally.add("unknown")
            if value is None:
                continue
            if self.heard.add(name, value, self._steady(), unit=unit) and channel is None:
                self._unlisted.append(name)
        self._tally.counts["unremembered"] = self.heard.crowded
        return readings

    def describe(self, topic: str, payload: bytes | bytearray) -> None:
        """Take a description, as in `descriptions`, for the units of fields."""
        try:
            fields = self._descriptions.take(topic, payload)
        except MalformedMessage as error:
            self._tally.add("malformed", "malformed message", topic=topic[:256], error=str(error))
            return
        for field in fields:
            place = next(filter(None, (each.place_of(field.topic) for each in self._topics)), None)
            name = "" if place is None else name_of(place, field.path)
            if name and field.unit and self._patterns.take(name):
                self.heard.set_unit(name, field.unit)

    def take_requests(self) -> list[RebirthRequest]:
        requests, self._requests = self._requests, []
        return requests

    def take_unlisted(self) -> list[str]:
        """Return the names without a channel that were heard first since the last call."""
        names, self._unlisted = self._unlisted, []
        return names

    def take_kept_out(self) -> list[str]:
        """Return the names that the patterns keep out, heard first since the last call."""
        names = [name for name, is_taken in self._kept_out.items() if not is_taken]
        self._kept_out |= dict.fromkeys(names, True)
        return names

    def _keep_out(self, name: str) -> None:
        if len(self._kept_out) < MOST_NAMES and name.isprintable():
            self._kept_out.setdefault(name, False)

    def _name(self, mine: tuple[int, str], name: str, whole: str) -> str:
        """Return the name of a topic's number; "" if another has it, and there is no other name."""
        if self._whole:
            return whole
        name = whole if whole in self._places else name
        known = self._topic_of.get(name)
        if known == mine or (known is None and len(self._topic_of) >= MOST_NAMES):
            return name
        if known is None or mine < known:
            self._topic_of[name] = mine
        if known is None:
            return name
        facts = {"name": name, "topic": min(mine, known)[1], "other": max(mine, known)[1]}
        what = "two topics give one name, the other is not read as it"
        self._tally.add("alike", what, level="warning", **facts)
        return name if mine < known else whole if whole != name else ""

    def _found(self, topic: str, payload: bytes | bytearray) -> list[NamedReading]:
        if topic.startswith(f"{NAMESPACE}/"):
            return self._found_in_sparkplug(topic, payload)
        places = enumerate(each.place_of(topic) for each in self._topics)
        rank, place = next((each for each in places if each[1]), (0, None))
        if place is None:
            return []
        if self._patterns.leave_out(place.device):
            self._keep_out(f"{place.device}/*"[:LONGEST_NAME])
            return []
        if len(place.device) + len(place.field) > LONGEST_NAME:
            raise MalformedMessage(f"expected a topic of {LONGEST_NAME} characters, got more")
        if not topic.isprintable():
            raise MalformedMessage("expected a topic of printable characters, got others")
        content = content_of(payload)
        seconds = seconds_of(at(self._time_path, content)) if self._time_path else None
        whole, mine = self._topics[rank].whole_place_of(topic), (rank, topic)
        unusable = list[str]()
        found = {
            self._name(mine, name_of(place, path), name_of(whole, path)): value
            for path, value in fields_of(content, self._states, unusable)
        }
        self._leave_out(topic, unusable)
        ended = [
            self._ended(departed(topic, each, content), besides=found) for each in (whole, place)
        ]
        return [
            *(ended[0] or ended[1]),
            *(NamedReading(name, value, seconds) for name, value in found.items() if name),
        ]

    def _found_in_sparkplug(self, topic: str, payload: bytes | bytearray) -> list[NamedReading]:
        unusable = list[str]()
        metrics = self._sparkplug.read(topic, payload, unusable)
        self._leave_out(topic, unusable)
        if isinstance(metrics, Unborn):
            self._ask(metrics)
            return []
        if isinstance(metrics, Departed):
            return self._ended(metrics)
        timed = self._time_path == [TIMESTAMP]
        return [
            NamedReading(f"{device}/{field}", value, seconds if timed else None, unit)
            for device, field, value, seconds, unit in metrics
        ]

    def _leave_out(self, topic: str, unusable: Sequence[str]) -> None:
        if unusable:
            error = unusable[0]
            self._tally.add("malformed", "fields left out", topic=topic[:256], error=error)

    def _ended(self, ends: Departed, *, besides: Container[str] = ()) -> list[NamedReading]:
        """Return that channels have no value, besides those that the same message gives one."""
        return [
            NamedReading(name, None, None)
            for name in self._places
            if name not in besides and ends.covers(name)
        ]

    def _ask(self, unborn: Unborn) -> None:
        """Ask an edge node for its births, or say how to."""
        if not self._rebirth:
            hint = "its names come with its next birth, or set rebirth = true"
            node = f"{unborn.group}/{unborn.node}"
            self._tally.add("unborn", "data without names", node=node, hint=hint)
            return
        self._tally.add("unborn")
        now = self._steady()
        self._asked = {each: at for each, at in self._asked.items() if now - at < ASK_AGAIN_S}
        if unborn not in self._asked and len(self._asked) < MOST_ASKED:
            self._asked[unborn] = now
            self._requests.append(rebirth_request(unborn, int(self._wall() * 1000)))
