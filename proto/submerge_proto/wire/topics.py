"""MQTT topics: which node publishes what, and where (docs/wire.md, docs/alarm-messages.md).

    submerge/v1/{fleet}/{parent}/up/{node}/...      a child writes, of each group
    submerge/v1/{fleet}/{parent}/down/{node}/...    its parent answers and asks
    submerge/v1/{fleet}/{parent}/hello, model/{group}    for all children, retained
    submerge/v1/{fleet}/score/{node}, alarm/{node}    flat JSON, for dashboards
    {prefix}/{component}/{node}/{object}/config       discovery of alarms for Home Assistant

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
    return f"submerge/{VERSION}/{fleet}/{parent}/up/{node}/state"


def down(fleet: str, parent: str, node: str, kind: Kind) -> str:
    return f"submerge/{VERSION}/{fleet}/{parent}/down/{node}/{kind}"


def trial(fleet: str, parent: str) -> str:
    """Return where an aggregator tries what its broker can do."""
    return f"submerge/{VERSION}/{fleet}/{parent}/trial"


def hello(fleet: str, parent: str) -> str:
    return f"submerge/{VERSION}/{fleet}/{parent}/hello"


def model(fleet: str, parent: str, group: str) -> str:
    return f"submerge/{VERSION}/{fleet}/{parent}/model/{group}"


def score(fleet: str, node: str) -> str:
    return f"submerge/{VERSION}/{fleet}/score/{node}"


def alarm(fleet: str, node: str) -> str:
    return f"submerge/{VERSION}/{fleet}/alarm/{node}"


def alarm_state(fleet: str, node: str) -> str:
    return f"{alarm(fleet, node)}/state"


def discovery(prefix: str, component: str, node: str, thing: str) -> str:
    """Return Home Assistant's discovery topic for a `thing` of a node, of kind `component`."""
    return f"{prefix}/{component}/{node}/{thing}/config"
