"""patterns_of(): the patterns of topics that give good names, within those to listen to.

1. A pattern without `#` at its end is taken as it is.
2. With it, the forms of well-known systems that it covers come first: those that descriptions name
   (Zigbee2MQTT, Tasmota), then those that are the same everywhere. The pattern itself is last.
3. `#` alone would take all that a broker has, also later. `first_level` gives a pattern in its
   place for each first level that is heard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from submerge_client.sensors.mqtt.descriptions import DescribedField
from submerge_client.sensors.mqtt.sparkplug import NAMESPACE

ALL = "#"

MOST_NAMED = 16
"""Patterns that descriptions name: any device of the network can publish one."""

FORMS = (
    "tele/{device}/SENSOR",  # Tasmota
    "shellies/{device}/#",  # Shelly, first generation
    "{device}/events/rpc",  # Shelly, second generation
    "{device}/status/#",
    "{device}/sensor/{field}/state",  # ESPHome
    "homie/{device}/#",  # Homie
    "v3/+/devices/{device}/up",  # The Things Stack
    f"{NAMESPACE}/#",  # Sparkplug B, which names its metrics itself
)
"""Where well-known devices publish what they measure."""

ORDERS = ("set", "get", "cmnd", "command", "cmd")
"""Levels of topics that carry commands to devices."""

PLACED = frozenset("{}")
"""What places in patterns are written with. No well-known device has them in a topic."""

OTHERS = ("homeassistant/", "tasmota/discovery/", "submerge/v1/")
"""Topics that describe, and those of fleets of submerge itself."""


def is_reading(topic: str) -> bool:
    """Return whether a topic may carry readings that a pattern can be made for.

    Orders, descriptions and the notes of gateways carry none.
    """
    levels = topic.split("/")
    if set(topic) & PLACED:
        return False  # a pattern of it would have places, and stand for other topics as well
    if topic.startswith(OTHERS) or (len(levels) > 1 and levels[1] == "bridge"):
        return False
    return levels[0] not in ORDERS and levels[-1] not in ORDERS


def patterns_of(
    asked: Sequence[str], bridges: Iterable[str], described: Sequence[DescribedField]
) -> list[str]:
    """Return patterns, the more precise first.

    asked : Patterns to listen to.
    bridges : Base topics of Zigbee2MQTT that have a bridge.
    """
    named = chain(_of_bridges(bridges, described), _of_tasmota(described))
    forms = [*islice(_once(named), MOST_NAMED), *FORMS]
    patterns = list[str]()
    for pattern in asked:
        if pattern.split("/")[-1] == ALL:
            patterns += [form for form in forms if _covers(pattern, form)]
        if pattern != ALL:
            patterns.append(pattern)
    return list(dict.fromkeys(patterns))


def _once(patterns: Iterable[str]) -> Iterator[str]:
    """Yield each pattern when it comes first."""
    seen = set[str]()
    for pattern in patterns:
        if pattern not in seen:
            seen.add(pattern)
            yield pattern


def first_level(topic: str) -> str:
    """Return the pattern of a topic for which there is no other."""
    first, slash, _ = topic.partition("/")
    return f"{first}/{ALL}" if slash else first


def _of_bridges(bridges: Iterable[str], described: Sequence[DescribedField]) -> Iterator[str]:
    for base in dict.fromkeys(bridges):
        if not base or set(base) & PLACED:
            continue
        depth = base.count("/") + 1
        devices = [each.topic for each in described if each.topic.startswith(f"{base}/")]
        # Friendly names may have slashes: a room and a device.
        is_deep = any(topic.count("/") > depth for topic in devices)
        yield f"{base}/{ALL}" if is_deep else f"{base}/+"


def _of_tasmota(described: Sequence[DescribedField]) -> Iterator[str]:
    """Yield the patterns of topics that end in SENSOR, where they are not as usual."""
    for each in described:
        levels = each.topic.split("/")
        if set(each.topic) & {*PLACED, "+", "#"}:
            continue
        if levels[-1] == "SENSOR" and len(levels) == 3 and levels[0] != "tele":
            # %topic%/%prefix%/, or a prefix of one's own.
            swapped = levels[1] == "tele"
            yield "{device}/tele/SENSOR" if swapped else f"{levels[0]}/{{device}}/SENSOR"


def _covers(pattern: str, form: str) -> bool:
    """Return whether a pattern that ends in `#` hears all topics of a form."""
    *fixed, _ = pattern.split("/")
    levels = form.split("/")
    return len(levels) > len(fixed) and all(
        mine in ("+", other) for mine, other in zip(fixed, levels, strict=False)
    )
