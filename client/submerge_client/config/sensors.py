"""The kinds of sensor, and the settings of each; the package `sensors` has the code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Union

import msgspec

from submerge import UsageError
from submerge_client.config.links import Link
from submerge_client.config.plugins import plugins
from submerge_client.config.sections import (
    AnyText,
    Finite,
    NotBelowZero,
    Seconds,
    Secret,
    Text,
    refusal,
    shown,
)
from submerge_client.config.sensor_kind import SensorKind
from submerge_client.sensors.mqtt.topics import NamePatterns, wrong_with

FIELD, DEVICE, MEASUREMENT = "field", "device", "measurement"

PLACE = re.compile(r"\{([^{}]+)\}")  # a place in a template: one of the words above, or a tag's key


def wrong_with_series(template: str) -> str | None:
    """Return what was expected of a template; None if it is right."""
    if set("{}") & set(PLACE.sub("", template)):
        return "places in braces, as {device}"
    return None if PLACE.findall(template).count(FIELD) == 1 else "a text with {field} in it once"


HELD_S = 30.0  # seconds for which a value of the form with `topic` is used, if nothing else is set

DEVICES_SILENCE_S = 7200.0
"""Seconds without a row: devices on batteries may speak once an hour, and there may be one."""

LINES = 'is there a line as {"NAME": 21.5} with a channel for each row?'


class NdjsonSensor(SensorKind, frozen=True, kw_only=True, tag_field="kind", tag="ndjson"):
    """A line of JSON on standard input for each row: {"flow": 21.5, "current": null} or [21.5, 3].

    absent : What a channel is that an object does not name. "zero" is for sparse rows, such as
        counts of events: then only what is not zero has to be written.
    """

    reads_input: ClassVar[bool] = True

    absent: Literal["gap", "zero"] = "gap"

    @property
    def advice(self) -> str:
        return LINES


class InfluxSensor(SensorKind, frozen=True, kw_only=True, tag_field="kind", tag="influx"):
    """Metrics of Telegraf on standard input, in Influx line protocol.

    mode : "processor", for `processors.execd`: all metrics go on to standard output, with ours
        among them, and so scores go elsewhere. "output", for `outputs.execd`: nothing is printed.
    name : The name of a field's channel: `{field}`, `{measurement}`, the keys of tags in braces,
        and `{device}`, the measurement and all tags.
    ignored_tags : Tags that are no part of `{device}`.
    states : Numbers for words, and for `true` and `false`.
    precision : The unit of timestamps.
    """

    reads_input: ClassVar[bool] = True
    output_reader: ClassVar[str] = "Telegraf"

    mode: Literal["processor", "output"] = "processor"
    name: Text = "{device}/{field}"
    ignored_tags: tuple[Text, ...] = ("host",)
    states: dict[AnyText, Finite] = msgspec.field(
        default_factory=lambda: {"true": 1.0, "false": 0.0}
    )
    precision: Literal["ns", "us", "ms", "s"] = "ns"

    def __post_init__(self) -> None:
        wrong = wrong_with_series(self.name)
        if wrong:
            raise refusal(
                "name", expected=wrong, got=shown(self.name), hint='as "{device}/{field}"'
            )

    @property
    def passes_on(self) -> bool:
        return self.mode == "processor"

    @property
    def advice(self) -> str:
        return "does Telegraf write metrics, and are channels named as [sensor] name has it?"


class FileSensor(SensorKind, frozen=True, kw_only=True, tag_field="kind", tag="file"):
    """Files with a fleet's history, read as if they came in live.

    paths : One table of numbers, or several with the same columns, one after the other.
    speed : Rows a second; 0 is as fast as possible.
    loop : Begin again at the end. The readings then count again, as new ones.
    skip : Columns to leave out.
    zero_is_missing : Take 0 for a gap, as some loggers write it.
    """

    paths: tuple[Path, ...]
    speed: NotBelowZero = 0.0
    loop: bool = False
    skip: tuple[AnyText, ...] = ()
    zero_is_missing: bool = False

    def __post_init__(self) -> None:
        if not self.paths:
            raise refusal("paths", expected="at least one path", got="an empty list")

    @property
    def ends(self) -> bool:
        return not self.loop


class MqttSensor(Link, SensorKind, frozen=True, kw_only=True, tag_field="kind", tag="mqtt"):
    """Readings that others publish, put on one grid of time.

    Either `topics`, for messages of devices as they are, or `topic`, for one number in each
    message.

    topics : Where devices publish; `+` and `#` as in MQTT, and `{device}` and `{field}` in place of
        names: "zigbee2mqtt/+", "tele/{device}/SENSOR". A channel is called "device/field".
    include, exclude : Patterns of channels, with `*` and `?`: a name has to fit one that is
        included, and none that is excluded.
    states : Numbers for words in place of numbers: { ON = 1, OFF = 0, true = 1, false = 0 }.
    rebirth : Ask edge nodes of Sparkplug B for the names of their metrics, when these are not
        known. Without it the sensor publishes nothing.
    topic : With `{channel}` in place of a channel's name: "plant/{channel}/value".
    value : With `topic`, the path of the number in a message's JSON: "value", "reading.celsius"; ""
        if the message is a bare number.
    time : The path of a message's time, in seconds since 1970 or ISO 8601; "" takes the time of
        arrival.
    period_s : Seconds between rows. Raising it gives fewer rows.
    lateness_s : Seconds that a row waits for late values. Raising it catches more of them, and
        scores later.
    max_age_s : Seconds for which a value is used. Raising it bridges longer silence, with staler
        values. Left out, 30 with `topic`; with `topics`, three times the longest silence that is
        usual for the channel.
    missing : A channel's value in a row: "hold", the newest; "mean", of all since the row before,
        or else the newest; "drop", the newest, but rows with a gap are left out.
    """

    topics: tuple[Text, ...] = ()
    include: tuple[Text, ...] = ("*",)
    exclude: tuple[Text, ...] = ()
    states: dict[AnyText, Finite] = msgspec.field(default_factory=dict)
    rebirth: bool = False
    topic: AnyText = ""
    value: AnyText = "value"
    time: AnyText = ""
    period_s: Seconds = 10.0
    lateness_s: NotBelowZero = 2.0
    max_age_s: NotBelowZero | None = None
    missing: Literal["hold", "mean", "drop"] = "hold"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.topics:
            self._check_topics()
            return
        if not self.topic:
            raise refusal(
                "topics",
                expected="topics of devices, or topic with {channel} in it",
                got="neither",
                hint='add topics = ["zigbee2mqtt/+"], say',
            )
        for name in ("include", "exclude", "states", "rebirth"):
            if getattr(self, name) not in (("*",), (), {}, False):
                raise refusal(
                    name,
                    expected="topics beside it",
                    got="topic",
                    hint="write topics = [...], or leave it out",
                )
        if self.topic.count("{channel}") != 1 or set("+#\0") & set(self.topic):
            raise refusal(
                "topic",
                expected="a topic with {channel} in it once, and without + and #",
                got=shown(self.topic),
                hint='as in "plant/{channel}/value"',
            )

    def _check_topics(self) -> None:
        for name, default in (("topic", ""), ("value", "value")):
            if getattr(self, name) != default:
                raise refusal(
                    name,
                    expected="it without topics",
                    got=shown(getattr(self, name)),
                    hint="leave one of them out",
                )
        for i, topic in enumerate(self.topics):
            wrong = wrong_with(topic)
            if wrong:
                raise refusal("topics", i, expected=wrong, got=shown(topic))

    @property
    def held_s(self) -> float | None:
        """Seconds for which a value is used; None where the channel's habits say it."""
        return HELD_S if self.max_age_s is None and not self.topics else self.max_age_s

    @property
    def late_s(self) -> float:
        return self.lateness_s

    @property
    def silence_s(self) -> float:
        return DEVICES_SILENCE_S if self.topics else super().silence_s

    @property
    def link(self) -> Link:
        return self

    @property
    def hears_devices(self) -> bool:
        return bool(self.topics)

    @property
    def takes(self) -> Callable[[str], bool]:
        return NamePatterns(self.include, self.exclude).take

    def wrong_with(self, channel: str) -> str:
        if self.topic and set("/+#\0") & set(channel):
            return "a name without / + and #, as it stands in a topic"
        return ""

    @property
    def advice(self) -> str:
        if not self.topics:
            return super().advice
        who = "who gives no name" if self.username is None else shown(self.username)
        return (
            f"is the broker running, does a device publish on {self.topics[0]}, and do the broker's"
            f" rules let a user {who} read it?"
        )


class HostSensor(SensorKind, frozen=True, kw_only=True, tag_field="kind", tag="host"):
    """Figures of the machine itself: load, memory, disk, network, temperature.

    period_s : Seconds between rows. Raising it costs less, and sees less.
    """

    needs: ClassVar[tuple[str, str, str] | None] = ("psutil", "psutil", "host")

    period_s: Seconds = 10.0


class ProgramSensor(SensorKind, frozen=True, kw_only=True, tag_field="kind", tag="program"):
    """A program that prints a line of JSON for each row, as `ndjson` reads them.

    command : The program and its arguments, each a text of its own; no shell reads them. When it
        ends, it is started again.
    """

    runs_program: ClassVar[bool] = True

    command: tuple[Secret, ...]

    def __post_init__(self) -> None:
        if not self.command:
            raise refusal("command", expected="a program and its arguments", got="an empty list")
        for i, word in enumerate(self.command):
            if "\0" in word:
                raise refusal("command", i, expected="text without a null", got=shown(word))

    @property
    def advice(self) -> str:
        return LINES


KINDS: tuple[type[SensorKind], ...] = (
    *(NdjsonSensor, InfluxSensor, FileSensor, MqttSensor, HostSensor, ProgramSensor),
)


def _of_others() -> tuple[type[SensorKind], ...]:
    found, taken = [], {kind.__struct_config__.tag for kind in KINDS}
    for entry in plugins("submerge.sensors"):
        if entry.name in taken:
            raise UsageError(f"there are two sensors {entry.name}: remove {entry.value}")
        taken.add(entry.name)
        try:
            kind = entry.load()
        except Exception as error:
            raise UsageError(
                f"the sensor {entry.name} of {entry.value} cannot be loaded: {error}; repair or"
                " remove its package"
            ) from error
        found.append(kind)
    return tuple(found)


if TYPE_CHECKING:
    AnySensor = SensorKind
else:
    AnySensor = Union[(*KINDS, *_of_others())]
