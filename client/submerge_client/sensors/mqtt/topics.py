"""TopicPattern: which device, and which part of a field's name, a topic stands for.

A pattern is an MQTT topic filter in which levels may have places: `tele/{device}/SENSOR`.

1. `{device}` and `{field}` are a level, or a part of one, as in `sensor-{device}`.
2. The device is what `{device}` stands for, with what `+` stands for before it in front:
   `+/{device}` gives `site.pump`. Without `{device}` it is the first level that a wildcard stands
   for; without wildcards, the last level that is fixed.
3. All that wildcards and `{field}` stand for besides begins the name of each field, joined by dots.
4. So two topics of a pattern never give the same name, as long as levels have no dots. Topics of
   two patterns may. They have another place each, of all levels (`whole_place_of`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from typing import NamedTuple

ORDERS = ("set", "get", "cmnd", "command", "cmd")  # levels of topics that carry commands to devices

PLACED = frozenset("{}")
"""What places in patterns are written with. No well-known device has them in a topic."""

OTHERS = ("homeassistant/", "tasmota/discovery/", "submerge/v1/")
"""Topics that describe, and those of fleets of submerge itself."""


def is_reading(topic: str) -> bool:
    """Return whether a topic may carry readings that a pattern can be made for."""
    # Orders, descriptions and the notes of gateways carry none.
    levels = topic.split("/")
    if set(topic) & PLACED:
        return False  # a pattern of it would have places, and stand for other topics as well
    if topic.startswith(OTHERS) or (len(levels) > 1 and levels[1] == "bridge"):
        return False
    return levels[0] not in ORDERS and levels[-1] not in ORDERS


class NamePatterns:
    """Names by patterns as of a shell: one of `include` has to fit, and none of `exclude`."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        self._include, self._exclude = _any_of(include), _any_of(exclude)

    def take(self, name: str) -> bool:
        return bool(self._include.match(name)) and not self._exclude.match(name)

    def leave_out(self, device: str) -> bool:
        return bool(self._exclude.match(f"{device}/"))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    joined = "|".join(map(translate, patterns))
    return re.compile(joined or r"(?!)")


class TopicPlace(NamedTuple):
    """The meaning of a topic: a device, and the beginning of its fields' names, or ""."""

    device: str
    field: str


class TopicPattern:
    def __init__(self, pattern: str) -> None:
        self._levels = pattern.split("/")
        self._has_device = DEVICE in pattern
        self._fixed = [level for level in self._levels if not _is_open(level)]
        self.subscription = "/".join(
            "+" if any(place in level for place in PLACES) else level for level in self._levels
        )

    def place_of(self, topic: str) -> TopicPlace | None:
        """Return what a topic stands for; None if it has another form."""
        levels, pattern, tail = topic.split("/"), self._levels, list[str]()
        if pattern[-1] == "#":
            # In MQTT a/# covers a itself as well; here it stands for no device.
            pattern, tail = pattern[:-1], levels[len(pattern) - 1 :]
            levels = levels[: len(pattern)]
            if not tail:
                return None
        if len(pattern) != len(levels):
            return None
        device, field, before = list[str](), list[str](), self._has_device
        for expected, level in zip(pattern, levels, strict=True):
            stands_for = _inside(expected, level)
            if stands_for is None:
                return None
            if DEVICE in expected:
                device.append(stands_for)
                before = False
            elif expected == "+" and (before or not device):
                device.append(stands_for)
            elif _is_open(expected):
                field.append(stands_for)
        if not device:
            device, tail = ([self._fixed[-1]], tail) if not tail else (tail[:1], tail[1:])
        return TopicPlace(".".join(device), ".".join(field + tail))

    def whole_place_of(self, topic: str) -> TopicPlace:
        """Return a topic that fits as the place that all of its levels make."""
        levels, pattern = topic.split("/"), self._levels
        wild = [i for i, each in enumerate(pattern) if each in ("+", "#") or DEVICE in each]
        own = [i for i in wild if DEVICE in pattern[i]] or wild
        at = own[0] if own else max(i for i, each in enumerate(pattern) if not _is_open(each))
        return TopicPlace(".".join(levels[: at + 1]), ".".join(levels[at + 1 :]))


def name_of(place: TopicPlace, path: str) -> str:
    """Return the name of a number: `device/field`."""
    field = ".".join(filter(None, (place.field, path)))
    return f"{place.device}/{field}" if field else place.device


def _is_open(level: str) -> bool:
    return level in ("+", "#") or DEVICE in level or FIELD in level


def _inside(expected: str, level: str) -> str | None:
    """Return what a level of a pattern stands for in a topic's level; None if it does not fit."""
    if expected == "+":
        return level
    for place in PLACES:
        if place in expected:
            before, behind = expected.split(place)
            inside = level[len(before) : len(level) - len(behind)]
            fits = level.startswith(before) and level.endswith(behind) and inside
            return inside if fits else None
    return level if expected == level else None


DEVICE, FIELD = "{device}", "{field}"
PLACES = (DEVICE, FIELD)


def wrong_with(pattern: str) -> str:
    """Return what a pattern should be instead; "" if it is one."""
    levels = pattern.split("/")
    if not pattern or "\0" in pattern:
        return "a topic"
    if "#" in "".join(levels[:-1]) or ("#" in levels[-1] and levels[-1] != "#"):
        return "# as the last level alone"
    if any("+" in level and level != "+" for level in levels):
        return "+ as a whole level"
    if any(pattern.count(place) > 1 for place in PLACES):
        return f"{DEVICE} and {FIELD} once each"
    if any(sum(place in level for place in PLACES) > 1 for level in levels):
        return f"{DEVICE} and {FIELD} in levels of their own"
    if all(FIELD in level for level in levels):
        return f"a level beside {FIELD}, which is the device"
    rest = pattern.replace(DEVICE, "").replace(FIELD, "")
    if "{" in rest or "}" in rest:
        return f"no other places than {DEVICE} and {FIELD}"
    return ""
