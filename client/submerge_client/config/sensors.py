"""What is sensed: the kinds of sensor, and the settings of each.

A sensor yields rows in the order of the schema's channels; how, is `sensors/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from submerge_client.config.links import Link
from submerge_client.config.sections import NotBelowZero, Seconds, Section, Text, refusal, shown


class NdjsonSensor(Section, frozen=True, kw_only=True, tag_field="kind", tag="ndjson"):
    """A line of JSON on standard input for each row: an object by channel, or a list."""


class FileSensor(Section, frozen=True, kw_only=True, tag_field="kind", tag="file"):
    """Files of a fleet's history, as if they came in live.

    Attributes
    ----------
    paths : tuple of Path
        One table of numbers, or several of the same columns, one after the other.
    speed : float
        Rows a second; 0 is as fast as possible.
    loop : bool
        Begin again at the end. The readings are then counted again, as new ones.
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
        With `{channel}` where a channel's name stands: "plant/{channel}/value".
    value : str
        Where in the JSON of a message the number is: "value", "reading.celsius"; "" if the
        message is nothing but a number.
    time : str
        Where its time is, in seconds since 1970 or as ISO 8601; "" takes the time of arrival.
    period_s : float
        Seconds from row to row. Raising it gives fewer rows.
    lateness_s : float
        Seconds that a row waits for values that are still on their way. Raising it catches
        more of them, and scores later.
    max_age_s : float
        Seconds for which a value still stands for its channel. Raising it bridges longer
        silence, with staler values.
    missing : {"hold", "mean", "drop"}
        What a channel's value in a row is: the newest; the mean of all since the row before,
        or else the newest; the newest, but a row without one of each channel is left out.
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
    """What this machine says of itself: load, memory, disk, network, temperature.

    Attributes
    ----------
    period_s : float
        Seconds from row to row. Raising it costs less, and sees less.
    """

    period_s: Seconds = 10.0


AnySensor = NdjsonSensor | FileSensor | MqttSensor | HostSensor
