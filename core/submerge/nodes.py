"""Nodes of a fleet as machines without I/O: `effects = node.step(event, now)`.

`examples/nodes_by_hand.py` drives two of them. ARCHITECTURE.md has the rules for a driver.
"""

from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import (
    Alarmed,
    Drop,
    Flush,
    Forget,
    Keep,
    Linked,
    Note,
    Now,
    Publish,
    Reading,
    Received,
    Scored,
    Send,
    SetDesired,
    SetQuarantine,
    Start,
    Tick,
)
from submerge.protocol.settings import AggregatorSettings, AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces

__all__ = [
    "AggregatorNode",
    "AggregatorSettings",
    "AlarmSettings",
    "Alarmed",
    "ClientNode",
    "ClientSettings",
    "Drop",
    "Flush",
    "Forget",
    "GroupPlan",
    "Keep",
    "Linked",
    "Note",
    "Now",
    "Publish",
    "Reading",
    "Received",
    "Scored",
    "Send",
    "SetDesired",
    "SetQuarantine",
    "Start",
    "Subspaces",
    "Tick",
]
