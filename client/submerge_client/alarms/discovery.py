"""Discovery: what Home Assistant is to make of a node's alarms, so that nobody writes YAML.

One device for each node, with three things that all read one retained message: a problem (on
while an alarm is open), the highest score of that alarm over its limit, and the channel that is
most to blame. All else that is known of the alarm comes as attributes of the problem.

    homeassistant/binary_sensor/pump-1/alarm/config
    homeassistant/sensor/pump-1/score/config
    homeassistant/sensor/pump-1/channel/config
"""

from __future__ import annotations

from typing import Any

from submerge import __version__
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.event import facts, rounded
from submerge_proto.wire import topics

ONLINE, OFFLINE = b"online", b"offline"
"""Home Assistant's own words for it, where nothing else is said."""


def state(node: str, group: str, alarms: tuple[Alarm, ...]) -> dict[str, Any]:
    """Return what the retained message says: how it is, and all of the newest alarm."""
    newest = alarms[0] if alarms else None
    is_open = newest is not None and newest.is_open
    reported: dict[str, Any] = {
        "node": node,
        "group": group,
        "alarm": "ON" if is_open else "OFF",
        "score": rounded(newest.worst) if newest is not None and is_open else 0.0,
        "channel": newest.top[0][0] if newest is not None and is_open and newest.top else None,
    }
    if newest is not None:
        reported |= facts(newest, group, over=not is_open)
    return reported


def configs(prefix: str, fleet: str, node: str, group: str) -> dict[str, dict[str, Any]]:
    """Return what is published, retained, and where."""
    reads = topics.alarm(fleet, node)
    known = f"submerge_{fleet}_{node}"
    shared: dict[str, Any] = {
        "state_topic": reads,
        "availability_topic": topics.alarm_state(fleet, node),
        "qos": 1,
        "device": {
            "identifiers": [known],
            "name": node,
            "manufacturer": "submerge",
            "model": group,
            "sw_version": __version__,
        },
        "origin": {"name": "submerge", "sw_version": __version__},
    }
    things: dict[tuple[str, str], dict[str, Any]] = {
        ("binary_sensor", "alarm"): {
            "name": "Alarm",
            "device_class": "problem",
            "value_template": "{{ value_json.alarm }}",
            "json_attributes_topic": reads,
        },
        ("sensor", "score"): {
            "name": "Score over limit",
            "state_class": "measurement",
            "suggested_display_precision": 2,
            "icon": "mdi:chart-bell-curve",
            "value_template": "{{ value_json.score }}",
        },
        ("sensor", "channel"): {
            "name": "Top channel",
            "icon": "mdi:magnify",
            "value_template": "{{ value_json.channel or 'none' }}",
        },
    }
    return {
        topics.discovery(prefix, component, node, thing): {
            **shared,
            "unique_id": f"{known}_{thing}",
            **each,
        }
        for (component, thing), each in things.items()
    }
