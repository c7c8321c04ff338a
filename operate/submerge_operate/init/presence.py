"""presence_pattern(): the pattern by which a device says that it is away, as it is described."""

from __future__ import annotations

from collections.abc import Sequence

from submerge_client.config.topic_patterns import DEVICE
from submerge_client.sensors.mqtt.away import departed, says_presence
from submerge_client.sensors.mqtt.topics import TopicPattern, TopicPlace, name_of

OPEN = frozenset("+#{}")
"""What a topic has that is none, but a pattern."""


def presence_pattern(
    topic: str, word: str, of: TopicPlace, patterns: Sequence[TopicPattern]
) -> str | None:
    """Return the pattern of a topic; None if the sensor would not follow it, or hears it already.

    topic : Where the device says it.
    word : What it says when it is away.
    of : What the topic of its readings stands for.
    patterns : By which the sensor listens.
    """
    levels = topic.split("/")
    if not says_presence(topic) or OPEN & set(topic) or levels[:-1].count(of.device) != 1:
        return None
    if any(each.place_of(topic) for each in patterns):
        return None  # the first pattern that fits names it
    found = "/".join(DEVICE if level == of.device else level for level in levels[:-1])
    found = f"{found}/{levels[-1]}"
    place = TopicPattern(found).place_of(topic)
    if place is None or not departed(topic, place, word).covers(name_of(of, "x")):
        return None
    return found
