"""MQTT topics: who says what, where.

    submerge/v1/{fleet}/{parent}/up/{node}/join/{group}        a child asks to speak
    submerge/v1/{fleet}/{parent}/up/{node}/report/{group}      its newest report, retained
    submerge/v1/{fleet}/{parent}/up/{node}/state               "online"; as last will "offline"
    submerge/v1/{fleet}/{parent}/down/{node}/joined            answers, to that child alone
    submerge/v1/{fleet}/{parent}/down/{node}/answer
    submerge/v1/{fleet}/{parent}/hello                         the parent is there, retained
    submerge/v1/{fleet}/{parent}/model/{group}                 the newest model, retained
    submerge/v1/{fleet}/score/{node}                           flat JSON, for dashboards
    submerge/v1/{fleet}/alarm/{node}                           flat JSON, retained: is it well?
    submerge/v1/{fleet}/alarm/{node}/state                     "online"; as last will "offline"
    {prefix}/{component}/{node}/{object}/config                what Home Assistant makes of that

The parent is in the topic: several aggregators may share a broker. A client may write below
its own name and read below `down/` it, `hello` and `model`: that is one line of an ACL.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from submerge.protocol.names import NAME
from submerge_proto.wire.codec import Kind

VERSION = "v1"

_UP = re.compile(rf"submerge/v1/[^/]+/[^/]+/up/({NAME})/(join|report)/([^/]+)")


class Origin(NamedTuple):
    """Who published on an upward topic, and what."""

    node: str
    kind: Kind
    group: str


def up(fleet: str, parent: str, node: str, kind: Kind, group: str) -> str:
    """Return where a child's join or report goes."""
    return f"submerge/{VERSION}/{fleet}/{parent}/up/{node}/{kind}/{group}"


def all_up(fleet: str, parent: str) -> tuple[str, str]:
    """Return what a parent listens on."""
    below = f"submerge/{VERSION}/{fleet}/{parent}/up/+"
    return f"{below}/join/+", f"{below}/report/+"


def origin(topic: str) -> Origin | None:
    """Return who published on a topic; None if it is none that a child writes to."""
    found = _UP.fullmatch(topic)
    if found is None:
        return None
    node, kind, group = found.groups()
    return Origin(node, "join" if kind == "join" else "report", group)


def state(fleet: str, parent: str, node: str) -> str:
    """Return where it is said whether a child is connected."""
    return f"submerge/{VERSION}/{fleet}/{parent}/up/{node}/state"


def down(fleet: str, parent: str, node: str, kind: Kind) -> str:
    """Return where a child hears answers."""
    return f"submerge/{VERSION}/{fleet}/{parent}/down/{node}/{kind}"


def hello(fleet: str, parent: str) -> str:
    """Return where a parent says that it is there."""
    return f"submerge/{VERSION}/{fleet}/{parent}/hello"


def model(fleet: str, parent: str, group: str) -> str:
    """Return where a parent keeps the newest model."""
    return f"submerge/{VERSION}/{fleet}/{parent}/model/{group}"


def score(fleet: str, node: str) -> str:
    """Return where a node says how odd its readings are."""
    return f"submerge/{VERSION}/{fleet}/score/{node}"


def alarm(fleet: str, node: str) -> str:
    """Return where a node says whether something is wrong."""
    return f"submerge/{VERSION}/{fleet}/alarm/{node}"


def alarm_state(fleet: str, node: str) -> str:
    """Return where it is said whether somebody watches over a node."""
    return f"{alarm(fleet, node)}/state"


def discovery(prefix: str, component: str, node: str, thing: str) -> str:
    """Return where Home Assistant looks for what a node has; `component`: what kind of thing."""
    return f"{prefix}/{component}/{node}/{thing}/config"
