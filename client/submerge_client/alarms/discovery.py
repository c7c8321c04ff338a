"""Discovery: the messages by which Home Assistant finds a node's alarms, without any YAML.

Each node is one device with three entities that read one retained message: a problem (on while
an alarm is open), the highest score of that alarm over its limit, and the channel with the
largest share. All other facts of the alarm are attributes of the problem.

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
"""Home Assistant's defaults for availability."""


def state(node: str, group: str, alarms: tuple[Alarm, ...]) -> dict[str, Any]:
    """Return the retained message: whether there is an alarm, and the facts of the newest one."""
    newest = alarms[0] if alarms else None
    is_open = newest is not None and newest.is_open
    message: dict[str, Any] = {
        "node": node,
        "group": group,
        "alarm": "ON" if is_open else "OFF",
        "score": rounded(newest.worst) if newest is not None and is_open else 0.0,
        "channel": newest.top[0][0] if newest is not None and is_open and newest.top else None,
    }
    if newest is not None:
        message |= facts(newest, group, over=not is_open)
    return message


def configs(prefix: str, fleet: str, node: str, group: str) -> dict[str, dict[str, Any]]:
    """Return the discovery messages by topic; they are published as retained."""
    state_topic = topics.alarm(fleet, node)
    device = f"submerge_{fleet}_{node}"
    shared: dict[str, Any] = {
        "state_topic": state_topic,
        "availability_topic": topics.alarm_state(fleet, node),
        "qos": 1,
        "device": {
            "identifiers": [device],
            "name": node,
            "manufacturer": "submerge",
            "model": group,
            "sw_version": __version__,
        },
        "origin": {"name": "submerge", "sw_version": __version__},
    }
    entities: dict[tuple[str, str], dict[str, Any]] = {
        ("binary_sensor", "alarm"): {
            "name": "Alarm",
            "device_class": "problem",
            "value_template": "{{ value_json.alarm }}",
            "json_attributes_topic": state_topic,
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
        topics.discovery(prefix, component, node, entity): {
            **shared,
            "unique_id": f"{device}_{entity}",
            **config,
        }
        for (component, entity), config in entities.items()
    }
