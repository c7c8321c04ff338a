"""MQTT topics: which node publishes what, and where.

    submerge/v1/{fleet}/{parent}/up/{node}/join/{group}        a child asks to join
    submerge/v1/{fleet}/{parent}/up/{node}/report/{group}      its newest report, retained
    submerge/v1/{fleet}/{parent}/up/{node}/drill/{group}       its answer to a drill
    submerge/v1/{fleet}/{parent}/up/{node}/state               "online"; as last will "offline"
    submerge/v1/{fleet}/{parent}/down/{node}/joined            answers to that child
    submerge/v1/{fleet}/{parent}/down/{node}/answer
    submerge/v1/{fleet}/{parent}/up/{node}/reply/{group}       its reply to a question
    submerge/v1/{fleet}/{parent}/up/{node}/job/{group}         its part in a job
    submerge/v1/{fleet}/{parent}/down/{node}/drilled
    submerge/v1/{fleet}/{parent}/down/{node}/question
    submerge/v1/{fleet}/{parent}/down/{node}/replied
    submerge/v1/{fleet}/{parent}/down/{node}/job               what a job asks of that child
    submerge/v1/{fleet}/{parent}/hello                         the parent's hello, retained
    submerge/v1/{fleet}/{parent}/model/{group}                 the newest model, retained
    submerge/v1/{fleet}/score/{node}                           flat JSON, for dashboards
    submerge/v1/{fleet}/alarm/{node}                           flat JSON, retained: its alarms
    submerge/v1/{fleet}/alarm/{node}/state                     "online"; as last will "offline"
    {prefix}/{component}/{node}/{object}/config                discovery of that for Home Assistant

The parent is in the topic: several aggregators may share a broker. A client may write below its
own name, and read its `down/`, `hello` and `model`: that is one line of an ACL.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from submerge.protocol.names import NAME
from submerge_proto.wire.codec import Kind

VERSION = "v1"

_UP = re.compile(rf"submerge/v1/[^/]+/[^/]+/up/({NAME})/(join|report|drill|reply|job)/([^/]+)")

_KINDS: dict[str, Kind] = {
    "join": "join",
    "report": "report",
    "drill": "drill",
    "reply": "reply",
    "job": "job",
}


class Origin(NamedTuple):
    """The publisher on an upward topic, and the kind of message."""

    node: str
    kind: Kind
    group: str


def up(fleet: str, parent: str, node: str, kind: Kind, group: str) -> str:
    """Return the topic of a message of a child."""
    return f"submerge/{VERSION}/{fleet}/{parent}/up/{node}/{kind}/{group}"


def all_up(fleet: str, parent: str) -> tuple[str, ...]:
    below = f"submerge/{VERSION}/{fleet}/{parent}/up/+"
    return tuple(f"{below}/{kind}/+" for kind in _KINDS)


def origin(topic: str) -> Origin | None:
    """Return who published on a topic; None if children do not write to it."""
    found = _UP.fullmatch(topic)
    if found is None:
        return None
    node, kind, group = found.groups()
    return Origin(node, _KINDS[kind], group)


def state(fleet: str, parent: str, node: str) -> str:
    """Return the topic of whether a child is connected."""
    return f"submerge/{VERSION}/{fleet}/{parent}/up/{node}/state"


def down(fleet: str, parent: str, node: str, kind: Kind) -> str:
    """Return the topic of answers to a child."""
    return f"submerge/{VERSION}/{fleet}/{parent}/down/{node}/{kind}"


def hello(fleet: str, parent: str) -> str:
    return f"submerge/{VERSION}/{fleet}/{parent}/hello"


def model(fleet: str, parent: str, group: str) -> str:
    """Return the topic of a parent's newest model."""
    return f"submerge/{VERSION}/{fleet}/{parent}/model/{group}"


def score(fleet: str, node: str) -> str:
    """Return the topic of a node's scores."""
    return f"submerge/{VERSION}/{fleet}/score/{node}"


def alarm(fleet: str, node: str) -> str:
    return f"submerge/{VERSION}/{fleet}/alarm/{node}"


def alarm_state(fleet: str, node: str) -> str:
    """Return the topic of whether a node's alarms are being published."""
    return f"{alarm(fleet, node)}/state"


def discovery(prefix: str, component: str, node: str, thing: str) -> str:
    """Return Home Assistant's discovery topic for a `thing` of a node, of kind `component`."""
    return f"{prefix}/{component}/{node}/{thing}/config"
