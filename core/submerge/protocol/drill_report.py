"""DrillReport: the answer of one client to a drill, on its way up.

It is no part of what is counted: it is sent once, changes no row and no store, and may be lost.
An aggregator holds the newest of each node in memory, and passes it on as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from submerge.protocol.messages import Reason, Stamp


class DrillReport(NamedTuple):
    """What a drill at a client found out.

    stamp : of the child that sends it: the client, or an aggregator that passes it on
    node : the client
    fingerprint : of the schema of its channels
    at : wall time of its end, by the client's clock
    number : of the desired state that asked for it
    rows, spans, within : rows at hand, spans that faults were tried on, their length in rows
    at_most_per_s : the rate of false alarms that limits were for
    channels : 16 bytes a channel (`submerge.drill.packed`)
    """

    stamp: Stamp
    node: str
    fingerprint: str
    at: float
    number: int
    rows: int
    spans: int
    within: int
    at_most_per_s: float
    channels: bytes


class DrillTaken(NamedTuple):
    """The answer to a `DrillReport`.

    stamp : the report's
    """

    stamp: Stamp
    reason: Reason
