"""Host and SimulatedDisk: a simulated machine, and the storage that outlives its processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import Keep, Key, Now
from submerge.schema import Schema

COPIES = 12
"""Old copies kept of a disk, to which it may be rolled back."""


class SimulatedDisk:
    """A store of records, with old copies."""

    __slots__ = ("_copies", "records")

    def __init__(self) -> None:
        self.records: dict[Key, Any] = {}
        self._copies: list[dict[Key, Any]] = []

    def write(self, keep: Keep) -> None:
        """Perform one transaction."""
        records = {} if keep.new_store else self.records
        for key, record in keep.records.items():
            if record is None:
                records.pop(key, None)
            else:
                records[key] = record
        self.records = records

    def copy(self) -> None:
        """Keep a copy of the records."""
        self._copies.append(dict(self.records))
        del self._copies[:-COPIES]

    def roll_back(self, rng: np.random.Generator) -> None:
        """Go back to an old copy, or to an empty disk if there is none."""
        copies = self._copies or [{}]
        self.records = dict(copies[int(rng.integers(len(copies)))])

    def clone(self) -> SimulatedDisk:
        """Return another disk with the same records and copies."""
        twin = SimulatedDisk()
        twin.records, twin._copies = dict(self.records), list(self._copies)
        return twin


class Host:
    """One machine in the field: at most one process on one disk.

    name : The node's name; a clone has the same.
    level : 0 for clients, the depth of the fleet for the root.
    node : None while no process runs.
    process : Number of the process: events for an earlier one do not reach a later one.
    schema : Of the channels that it is configured with; None for the feed's.
    hostile : No process of ours runs on it: a malicious node sends from it (`malicious`).
    """

    __slots__ = (
        *("name", "level", "parent", "number", "disk", "node", "process", "began", "clock_error"),
        *("synced", "cut_until", "slow_until", "wake", "sent", "schema", "clone", "hostile"),
    )

    def __init__(self, name: str, level: int, parent: str | None, number: int) -> None:
        self.name, self.level, self.parent, self.number = name, level, parent, number
        self.disk = SimulatedDisk()
        self.node: ClientNode | AggregatorNode | None = None
        self.process = 0
        self.began = 1000.0 * number  # its steady clock at the beginning
        self.clock_error = 0.0
        self.synced = True
        self.cut_until = self.slow_until = self.wake = 0.0
        self.sent = (0, 0)  # a minute, and messages sent in it
        self.schema: Schema | None = None
        self.clone = self.hostile = False

    def now(self, time: float) -> Now:
        """Return both clocks; a process's steady clock begins anywhere."""
        return Now(time + self.began, EPOCH + time + self.clock_error, self.synced)

    @property
    def records(self) -> Mapping[Key, Any]:
        """Records on the disk."""
        return self.disk.records

    def __repr__(self) -> str:
        return f"{self.name}{'*' if self.clone else ''}"


EPOCH = 1_700_000_000.0
"""Unix time at which every simulation begins."""
