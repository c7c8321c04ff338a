"""wrong_with(): whether a text is a pattern of topics, for the sensor of MQTT messages.

A pattern is an MQTT topic filter in which levels may have the places `{device}` and `{field}`;
`sensors.mqtt.topics` says what they stand for.
"""

from __future__ import annotations

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
