"""ClientLife: one instruction in the life of a client, as Flower runs it: a process that ends.

Flower runs a client app once for each instruction, perhaps each time in another process, and keeps
nothing but the context between. So each instruction is what a restart is elsewhere: a `ClientNode`
starts from what was kept, with a new incarnation, and what the one before had learnt is its final
report. Three rules make each row count once, whatever Flower loses, repeats or runs again:

1. **The join is answered here.** An incarnation has to join before its readings can be kept, and an
   instruction leaves no time to ask. So it brings the root's answer with it, made for this
   node at this round; it is given to whatever incarnation joins (`_standing`).
2. **Nothing is sent in the life that read it.** What leaves are final reports of earlier lives,
   which this one found in the context: they were stored before they are sent. Flower may send a
   reply before it stores the context, and a process may die between the two; the rows are then
   read again, and what was learnt of them the first time is nowhere. The price is one round.
3. **A client that is not heard stops reading**, once `FINALS` rounds wait: none is ever dropped.

A life waits for nothing: its steady clock is moved to the time at which the node would wake. It
does no I/O but to read the wall clock; the caller carries the messages and stores the records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from submerge import Array, PeerError, ShapeError, UsageError
from submerge._linalg import unmasked
from submerge.client.node import ClientNode
from submerge.protocol.machine import (
    Event,
    Flush,
    Keep,
    Note,
    Now,
    Reading,
    Received,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import (
    Answer,
    Incarnation,
    Join,
    Joined,
    Message,
    Reason,
    Report,
    Stamp,
)
from submerge_bridges.flower.carrying import Parcel, ParcelMessage
from submerge_bridges.flower.group import FINALS, FlowerGroup
from submerge_bridges.flower.keeping import StateRecords
from submerge_client import clock
from submerge_client.disk import RecordStore
from submerge_client.memory.entropy import SystemEntropy
from submerge_proto.wire import codec

BLOCK = 1024
"""Rows of one step: what they take beside themselves is bounded."""

TRIES = 3
"""Joins in one life; a second one takes another name, or the fleet's schema."""


class JoinRefused(UsageError):
    """The root takes nothing from this client: its channels differ, or it is banned."""


class ClientLife:
    """A client for the time of one instruction.

    Parameters
    ----------
    group : FlowerGroup
    node : str
        Its name.
    records : StateRecords
        From the context; changed as the life goes on. Who fails does not store them.
    now : callable
        The clocks.

    Attributes
    ----------
    refused : int
        Messages of the root that could not be read.
    """

    def __init__(
        self,
        group: FlowerGroup,
        node: str,
        records: StateRecords,
        now: Callable[[], Now] = clock.now,
    ) -> None:
        self.refused = 0
        self._group, self._records, self._clock = group, records, now
        self._disk = RecordStore(records)
        settings, plan = group.client_settings(node), group.plan
        self._node = ClientNode(settings, group.schema, plan.summaries, SystemEntropy())
        self._joined: Joined | None = None
        self._finals: dict[Incarnation, Report] = {}
        self._answered: set[Stamp] = set()
        self._why: tuple[str, ...] = ()
        self._steady = 0.0

    # -- a life, in order ------------------------------------------------------------

    def begin(self, parcel: Parcel) -> None:
        """Start, and take what the instruction brings.

        Raises
        ------
        JoinRefused
            If the root refuses this client, or the instruction brings no answer to a join.
        """
        messages = self._read(parcel)
        joined = [message for message in messages if isinstance(message, Joined)]
        self._joined = joined[-1] if joined else None
        self._step(Start(self._disk.load()))
        for _ in range(TRIES):
            if self._node.current.pin is not None:
                break
            # A join that was answered with "take another name" waits; here the clock is moved.
            self._steady = max(self._steady, self._node.wakes_at)
            self._step(Tick())
        if self._node.current.pin is None:
            raise JoinRefused(self._refusal)
        for message in messages:
            if not isinstance(message, Joined):
                if isinstance(message, Answer):
                    self._answered.add(message.stamp)
                self._step(Received(message))

    @property
    def is_behind(self) -> bool:
        """Whether so many rounds wait for an answer that no more rows may be read."""
        return self.waiting >= FINALS

    def read(self, rows: Any) -> int:
        """Learn rows (n, channels), in the group's units; NaN is a gap. Return how many.

        Raises
        ------
        ShapeError
            If they are no such array.
        """
        values = np.asarray(unmasked(rows), dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != self._group.width:
            expected = f"(n, {self._group.width})"
            what = f"rows of group {self._group.name}"
            raise ShapeError(what, expected=expected, got=values.shape)
        for first in range(0, len(values), BLOCK):
            block: Array = values[first : first + BLOCK]
            self._step(Reading(block))
        self._records.taken += len(values)
        return len(values)

    def end(self) -> Parcel:
        """Keep everything, and return what is to be sent: the reports of earlier lives."""
        if self.unsent:  # a life that has read nothing leaves nothing behind
            self._step(Flush())
        self._disk.flush()
        newest = max(self._finals, default=None)
        return tuple(
            ParcelMessage("report", codec.encode(_unended(report) if name == newest else report))
            for name, report in self._finals.items()
            if report.stamp not in self._answered
        )

    # -- what is known ---------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Earlier lives whose readings wait for an answer, or for a scaling."""
        return len(self._node.finals.past.finals)

    @property
    def unsent(self) -> int:
        """Readings of this life, and declared losses; they are sent in the next one."""
        return self._node.current.counts.generated

    # -- the node --------------------------------------------------------------------

    def _read(self, parcel: Parcel) -> list[Message]:
        """Return the messages of the root that can be read."""
        messages = list[Message]()
        for kind, data in parcel:
            try:
                messages.append(codec.decode(kind, data))
            except PeerError:
                self.refused += 1
        return messages

    def _step(self, first: Event) -> None:
        """Perform a step, and those that follow from it, at one moment."""
        events = deque([first])
        while events:
            event, now = events.popleft(), self._clock()
            at = Now(self._steady, now.wall, now.synced)
            for effect in self._node.step(event, at):
                match effect:
                    case Keep():
                        self._disk.keep(effect)
                    case Send(_, Join() as join) if self._joined is not None:
                        events.append(Received(_standing(self._joined, join)))
                    case Send(_, Report() as report) if report.final:
                        self._finals[report.stamp.incarnation] = report
                    case Note("join refused", facts):
                        self._why = tuple(facts["lines"]) or (str(facts["meaning"]),)
                    case Note("schema refused", facts):
                        self._why = tuple(facts.get("lines") or [facts["why"]])

    @property
    def _refusal(self) -> str:
        group = self._group.name
        if self._joined is None:
            return f"expected the root's answer to a join in the instruction of group {group}"
        return f"the root refuses this client of group {group}: {'; '.join(self._why)}"


def _unended(report: Report) -> Report:
    """Return a final report that does not say so, if it has scores.

    A row that has ended is folded into the node's other rows, and its scores go; limits are of the
    scores of rows that have not. The root seals it when later ones have taken its place.
    """
    return report if report.scores is None else replace(report, final=False)


def _standing(joined: Joined, join: Join) -> Joined:
    """Return the root's answer for the incarnation that joins.

    It holds for each that was created above the floor and is new: the root has no report of it.
    """
    stamp = join.stamp._replace(seq=0)
    if joined.reason is Reason.ACK and stamp.incarnation.created_ms < joined.floor:
        return joined._replace(stamp=stamp, reason=Reason.STALE)
    return joined._replace(stamp=stamp)
