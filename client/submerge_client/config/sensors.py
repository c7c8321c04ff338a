"""The kinds of sensor, and the settings of each.

A sensor yields rows in the order of the schema's channels; the package `sensors` has the code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from submerge_client.config.links import Link
from submerge_client.config.sections import NotBelowZero, Seconds, Section, Text, refusal, shown


class NdjsonSensor(Section, frozen=True, kw_only=True, tag_field="kind", tag="ndjson"):
    """A line of JSON on standard input for each row: an object by channel, or a list."""


class FileSensor(Section, frozen=True, kw_only=True, tag_field="kind", tag="file"):
    """Files with a fleet's history, read as if they came in live.

    Attributes
    ----------
    paths : tuple of Path
        One table of numbers, or several with the same columns, one after the other.
    speed : float
        Rows a second; 0 is as fast as possible.
    loop : bool
        Begin again at the end. The readings then count again, as new ones.
    skip : tuple of str
        Columns to leave out.
    zero_is_missing : bool
        Take 0 for a gap, as some loggers write it.
    quantity : str
        What to take from an Intel Lab log; other files have one quantity only.
    """

    paths: tuple[Path, ...]
    speed: NotBelowZero = 0.0
    loop: bool = False
    skip: tuple[str, ...] = ()
    zero_is_missing: bool = False
    quantity: Literal["temperature", "humidity", "light", "voltage", "all"] = "temperature"

    def __post_init__(self) -> None:
        if not self.paths:
            raise refusal("paths", expected="at least one path", got="an empty list")


class MqttSensor(Link, frozen=True, kw_only=True, tag_field="kind", tag="mqtt"):
    """Readings that others publish, a topic for each channel, put on one grid of time.

    Attributes
    ----------
    topic : str
        With `{channel}` in place of a channel's name: "plant/{channel}/value".
    value : str
        The path of the number in a message's JSON: "value", "reading.celsius"; "" if the
        message is a bare number.
    time : str
        The path of its time, in seconds since 1970 or ISO 8601; "" takes the time of arrival.
    period_s : float
        Seconds between rows. Raising it gives fewer rows.
    lateness_s : float
        Seconds that a row waits for late values. Raising it catches more of them, and scores
        later.
    max_age_s : float
        Seconds for which a value is used. Raising it bridges longer silence, with staler values.
    missing : {"hold", "mean", "drop"}
        A channel's value in a row: the newest; the mean of all since the row before, or else
        the newest; the newest, but rows with a gap are left out.
    """

    topic: Text
    value: str = "value"
    time: str = ""
    period_s: Seconds = 10.0
    lateness_s: NotBelowZero = 2.0
    max_age_s: NotBelowZero = 30.0
    missing: Literal["hold", "mean", "drop"] = "hold"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.topic.count("{channel}") != 1 or set("+#\0") & set(self.topic):
            raise refusal(
                "topic",
                expected="a topic with {channel} in it once, and without + and #",
                got=shown(self.topic),
                hint='as in "plant/{channel}/value"',
            )


class HostSensor(Section, frozen=True, kw_only=True, tag_field="kind", tag="host"):
    """Figures of the machine itself: load, memory, disk, network, temperature.

    Attributes
    ----------
    period_s : float
        Seconds between rows. Raising it costs less, and sees less.
    """

    period_s: Seconds = 10.0


AnySensor = NdjsonSensor | FileSensor | MqttSensor | HostSensor
