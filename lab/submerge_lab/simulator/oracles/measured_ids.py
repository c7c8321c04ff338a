"""MeasuredIds: where the ids are that clients have measured while the fleet's scaling was open.

No parent has them before the scaling is settled: they are in a client's memory and on its card, and
then in the final report of a successor.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from hashlib import sha256

from submerge.client.incarnation import Checkpoint
from submerge.client.measurement import MeasuredRows
from submerge.client.node import ClientNode
from submerge.protocol.machine import Event, Now, Reading, Records
from submerge.protocol.messages import Incarnation, Report
from submerge.schema import Schema
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.samples import bits_of


class MeasuredIds:
    """The ids that each incarnation has measured."""

    def __init__(self) -> None:
        self._bits: dict[Incarnation, int] = defaultdict(int)

    def note(self, node: ClientNode, event: Event) -> None:
        """Take a reading that a client has measured."""
        if isinstance(event, Reading) and not node.current.learns:
            for row in event.rows:
                self._bits[node.current.incarnation] |= 1 << round(float(row[0]))

    def of(self, report: Report) -> int:
        """Return the ids in a report, and those that were measured by then."""
        bits, measured = bits_of(report.summary), self._bits[report.stamp.incarnation]
        # Ids rise with time: a report has the first that its incarnation has measured.
        for _ in range(report.counts.learnt if measured else 0):
            bits |= measured & -measured
            measured &= measured - 1
        return bits


def ids_of(measured: MeasuredRows | None) -> int:
    """Return the ids among readings that were measured, as bits."""
    bits = 0
    for row in () if measured is None else measured.rows:
        bits |= 1 << round(float(row[0]))
    return bits


def kept_by(checkpoint: Checkpoint) -> int:
    """Return the ids in a checkpoint."""
    return bits_of(checkpoint.report.summary) | ids_of(checkpoint.measured)


def held_by(node: ClientNode, now: Now) -> int:
    """Return the ids in a client's memory: of its incarnation, and of finals that measured."""
    bits = bits_of(node.current.summary(now)) | ids_of(node.current.measured(now))
    for final in node.finals.past.finals:
        bits |= ids_of(final.measured)
    return bits


def fingerprint_in(records: Records) -> str:
    """Return the fingerprint of the schema in an aggregator's store; empty if there is none."""
    canonical: bytes = records.get(("schema", GROUP), b"")
    return sha256(canonical).hexdigest() if canonical else ""


def family_in(records: Records) -> str:
    """Return the family of the schema in an aggregator's store; empty if there is none."""
    return _family(records.get(("schema", GROUP), b""))


@lru_cache
def _family(canonical: bytes) -> str:
    return Schema.parse(canonical).family if canonical else ""
