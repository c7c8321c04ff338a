"""Published: messages with one number each, of a topic for each channel.

No I/O. The subscription to `plant/{channel}/value` is `plant/+/value`. Where `{channel}` is a
part of a level, as in `plant/sensor-{channel}`, the whole level becomes `+`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from submerge import UsageError
from submerge_client.sensors.mqtt.decoder import LARGEST_PAYLOAD, LATEST_S, ChannelReading
from submerge_client.sensors.tally import ProblemTally

PLACE = "{channel}"


class PublishedValue(NamedTuple):
    """The reading in a message.

    value : None for a message that says that there is no value
    time : seconds since 1970; None without a time
    """

    value: float | None
    time: float | None


class Published:
    """Reads messages.

    channels : The schema's names, in its order.
    topic : With `{channel}` in it once.
    value : The path of the number in a message's JSON: "value", "reading.celsius"; "" if the
        message is a bare number.
    time : The path of its time, in seconds since 1970 or ISO 8601 (UTC without an offset); "" if
        messages have none.

    subscription : The topic filter for all channels.

    Raises UsageError if topic and channels do not fit, or `time` is set for bare numbers.
    """

    def __init__(self, channels: Sequence[str], *, topic: str, value: str, time: str) -> None:
        if topic.count(PLACE) != 1 or set("+#\0") & set(topic):
            raise UsageError(
                f"topic must have {PLACE} in it once, and no + or #, got {topic!r}:"
                f" write it as in 'plant/{PLACE}/value'"
            )
        for name in channels:
            if not name or set("/+#\0") & set(name):
                raise UsageError(
                    f"channels of an MQTT sensor are parts of a topic, got {name!r}:"
                    " rename it, without / + #"
                )
        if time and not value:
            raise UsageError(
                f"time must be left out where a message is a bare number, got {time!r}:"
                " or set value to the path of the number"
            )
        levels = topic.split("/")
        self.subscription = "/".join("+" if PLACE in level else level for level in levels)
        self._before, self._behind = topic.split(PLACE)
        self._places = {name: place for place, name in enumerate(channels)}
        self._value = value.split(".") if value else []
        self._time = time.split(".") if time else []

    def channel(self, topic: str) -> int | None:
        """Return the index of a topic's channel, or None."""
        if not (topic.startswith(self._before) and topic.endswith(self._behind)):
            return None
        return self._places.get(topic[len(self._before) : len(topic) - len(self._behind)])

    def read(self, payload: bytes | bytearray) -> PublishedValue:
        """Return the reading in a message; raises ValueError if the message has no such reading."""
        if len(payload) > LARGEST_PAYLOAD:
            raise ValueError(f"expected {LARGEST_PAYLOAD} bytes at most, got {len(payload)}")
        if not payload.strip():
            return PublishedValue(None, None)
        if not self._value:
            text = payload.decode()
            return PublishedValue(None if text.strip() == "null" else _number(text), None)
        content = msgspec.json.decode(payload)
        value = _at(self._value, content)
        time = _seconds(_at(self._time, content)) if self._time else None
        return PublishedValue(None if value is None else _number(value), time)


class SingleDecoder:
    """A `Decoder` of such messages.

    tally : With the kinds malformed, null, unknown and retained.
    timed : Whether messages have a time. Without, retained ones may be days old, and are left out.
    """

    def __init__(self, published: Published, tally: ProblemTally, *, timed: bool) -> None:
        self._published, self._tally, self._timed = published, tally, timed
        self.subscriptions = (published.subscription,)

    def readings(
        self, topic: str, payload: bytes | bytearray, *, retained: bool
    ) -> list[ChannelReading]:
        """Return the reading in a message, as in `Decoder`."""
        channel = self._published.channel(topic)
        if channel is None:
            self._tally.add("unknown", "no channel of the schema, ignored", topic=topic)
            return []
        if retained and not self._timed:
            self._tally.add("retained")
            return []
        try:
            value, time = self._published.read(payload)
        except (ValueError, OverflowError, RecursionError) as error:
            self._tally.add("malformed", "malformed message", topic=topic, error=str(error))
            return []
        if value is None:
            self._tally.add("null")
            return []
        return [ChannelReading(channel, value, time)]


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


def _seconds(value: object) -> float:
    try:
        seconds = _number(value)
    except ValueError:
        if not isinstance(value, str):
            raise
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    if not abs(seconds) <= LATEST_S:
        raise ValueError(f"expected seconds since 1970, got {seconds:g}; are they milliseconds?")
    return seconds
