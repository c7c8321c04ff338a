"""away_scope(): which channels a message ends, in which a device says that it is away.

Gateways and devices leave a last will with their broker, or publish what they know of others. The
topic's last level says what such a message is:

| topic | away | of |
|---|---|---|
| `.../availability` | `offline`, or `{"state": "offline"}` | Zigbee2MQTT, Home Assistant |
| `.../LWT` | `Offline` | Tasmota |
| `.../status` | `offline` | ESPHome |
| `.../online` | `false` | Shelly |
| `.../$state` | `lost`, `disconnected` | Homie |

It ends all channels of the device that the topic names. The opposite (`online`) says nothing: the
next reading brings a channel back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from submerge_client.sensors.mqtt.topics import TopicPlace

AWAY = {
    "availability": ("offline",),
    "LWT": ("offline",),
    "status": ("offline",),
    "online": ("false",),
    "$state": ("lost", "disconnected"),
}
"""The last level of a topic, and the words by which a device is away."""


class Departed(NamedTuple):
    """Devices that are away.

    scopes : how the names of their channels begin, each with the separator that follows
    """

    scopes: tuple[str, ...]

    def covers(self, name: str) -> bool:
        """Return whether a channel is one of theirs."""
        return any(f"{name}{scope[-1]}".startswith(scope) for scope in self.scopes)


def says_presence(topic: str) -> bool:
    """Return whether a topic is one of those that say where a device is."""
    return topic.rsplit("/", 1)[-1] in AWAY


def departed(topic: str, place: TopicPlace, content: Any) -> Departed:
    """Return what a message ends; without scopes if it ends nothing.

    topic, place : the message's topic, and what it stands for
    content : as `fields.content_of` returns it
    """
    last = topic.rsplit("/", 1)[-1]
    state = content.get("state") if isinstance(content, dict) else content
    if not isinstance(state, str) or state.lower() not in AWAY.get(last, ()):
        return Departed(())
    field = place.field.removesuffix(last).removesuffix(".")
    if not field:
        return Departed((f"{place.device}/",))
    return Departed((f"{place.device}/{field}.",))
