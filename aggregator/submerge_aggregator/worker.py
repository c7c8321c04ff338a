"""Desk: the machine, its store, and turns, on one thread that is not the event loop's.

A turn takes what has come in since the last one, steps the machine through it, and commits
once; only then does anything go out. So many messages share one commit, the more of them
the busier it is, and neither a merge nor a disk holds up the network.

A write that fails takes back the whole turn: everybody hears "not now", the machine is thrown
away, and another is started from what the store holds.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from submerge import PeerError, SubmergeError
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import (
    Effect,
    Event,
    Keep,
    Key,
    Linked,
    Note,
    Now,
    Publish,
    Received,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import Answer, Join, Joined, Reason, Report
from submerge_aggregator.batch import (
    All,
    Asked,
    Down,
    Item,
    Out,
    Refuse,
    Reply,
    Tallies,
    Up,
    answered,
    group_of,
    reason_of,
    refusal_of,
)
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.notify.changes import AlarmNews, alarms_of
from submerge_aggregator.refusals import REASONS, Refusals
from submerge_aggregator.store import Store, StoreDamaged
from submerge_client.logs import Notes, say
from submerge_client.uplink import Came, Opened
from submerge_client.uplink.identity import Credentials
from submerge_proto.kept import records
from submerge_proto.wire import codec

AGAIN_S = 5.0
"""After a write that failed, the store is left alone for so long."""


class CommitWorker:
    """One aggregator's machine at work.

    Parameters
    ----------
    made : callable
        Returns a new machine, not started.
    store : Store
    clock : callable
    coarse : bool
        Reports upward go with int8 columns where that does little harm.
    papers : Papers or None
        Until when its certificates hold, which reports upward tell.
    refusals : Refusals or None
        Hears of every message that is not taken.

    Attributes
    ----------
    node : AggregatorNode or None
        None while the store cannot be read.
    wakes_at : float
        When a turn is due with nothing to take in, on the steady clock.
    """

    def __init__(
        self,
        made: Callable[[], AggregatorNode],
        store: Store,
        clock: Callable[[], Now],
        *,
        coarse: bool = False,
        credentials: Credentials | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        self.node: AggregatorNode | None = None
        self.tallies = Tallies()
        self.wakes_at = 0.0
        self.credentials = credentials
        self.refusals = Refusals(lambda: clock().steady) if refusals is None else refusals
        self._made, self._store, self._clock, self._coarse = made, store, clock, coarse
        self._fails_until = -1.0
        self._failing = False
        self._notes = Notes()
        self._alarms = AlarmNews()

    @property
    def store(self) -> Store:
        """What it writes to; to be read on its own thread only."""
        return self._store

    def start(self) -> list[Out]:
        """Start the machine from what the store holds.

        Raises
        ------
        StoreDamaged
            If that cannot be read as what it was.
        """
        self._fails_until = -1.0
        return self._begin()

    def commit_batch(self, items: Sequence[Item]) -> list[Out]:
        """Take in what has come, in order; return what is to go out, all of it committed."""
        culprit: Item | None = None
        try:
            now, outs = self._clock(), list[Out]()
            if self.node is None and now.steady >= self._fails_until:
                outs += self._begin()
            node, keeps = self.node, list[Keep]()
            if node is None:
                return self._nothing_now(items)
            for culprit in items:
                outs += self._take(node, culprit, now, keeps)
            culprit = None
            if not items:
                outs += self._step(node, Tick(), now, None, keeps)
            changed = self._commit(keeps)
            if changed is None:
                return self._nothing_now(items)
            self.wakes_at = node.wakes_at
            return [*outs, *(alarms_of(node, now, group) for group in sorted(changed))]
        except StoreDamaged:
            raise
        except Exception:
            return self._survive(items, culprit)

    def close(self) -> None:
        """Let the store go."""
        self._store.close()

    # -- a turn ----------------------------------------------------------------

    def _begin(self) -> list[Out]:
        try:
            kept = records.unpack_all(self._store.load())
        except PeerError as error:
            raise StoreDamaged(self._store.path, str(error)) from error
        except SubmergeError as error:
            if isinstance(error, StoreDamaged):
                raise
            self._fail(error)
            return []
        node, keeps, now = self._made(), list[Keep](), self._clock()
        outs = self._step(node, Start(kept), now, None, keeps)
        if self._commit(keeps) is None:
            return []
        self.node, self.wakes_at = node, node.wakes_at
        # Also where nobody tells of any: who was told of an alarm has to hear that it is over.
        return [*outs, *(alarms_of(node, now, group) for group in node.groups)]

    def _take(self, node: AggregatorNode, item: Item, now: Now, keeps: list[Keep]) -> list[Out]:
        match item:
            case Inbound():
                return self._read(node, item, now, keeps)
            case Came():
                try:
                    message = codec.decode(item.kind, item.data)
                except PeerError as error:
                    what, why = "message of the parent refused", str(error)
                    self.refusals.count(error.kind, what=what, why=why)
                    return []
                if isinstance(message, Answer) and message.reason is Reason.ACK:
                    facts = {"group": message.stamp.group, "seq": message.newest}
                    say("acknowledged", level=logging.DEBUG, **facts, durable=message.durable)
                return self._step(node, Received(message), now, None, keeps)
            case Opened():
                return self._step(node, Linked(), now, None, keeps)
            case Asked():
                outs = [] if item.event is None else self._step(node, item.event, now, None, keeps)
                try:
                    value = item.question(node, now)
                except SubmergeError as error:
                    value = error
                return [*outs, Reply(item, value)]
            case _:
                return []  # parted: the server says so

    def _read(
        self, node: AggregatorNode, inbound: Inbound, now: Now, keeps: list[Keep]
    ) -> list[Out]:
        """Read a child's letter; foreign bytes change nothing but a counter."""
        try:
            message = codec.decode(inbound.kind, inbound.data)
        except codec.MessageRefused as refusal:
            if inbound.node not in (None, refusal.stamp.node):
                return [self._spoofed(inbound, refusal.stamp.node)]
            self.refusals.count(refusal.kind, refusal.stamp.node, why=str(refusal))
            return [answered(inbound, refusal_of(inbound.kind, refusal, node))]
        except PeerError as error:
            self.refusals.count(error.kind, inbound.who, why=str(error))
            return [Refuse(inbound, str(error))]
        if not isinstance(message, Join | Report):
            why = f"a child sends joins and reports, got a {inbound.kind}"
            self.refusals.count("malformed", inbound.who, why=why)
            return [Refuse(inbound, why)]
        stamp = message.stamp
        if inbound.node not in (None, stamp.node):
            return [self._spoofed(inbound, stamp.node)]
        if isinstance(message, Join):
            self.tallies.joins += 1
        else:
            self.tallies.reports += 1
        outs = self._step(node, Received(message, inbound.shared), now, inbound, keeps)
        if not any(isinstance(out, Down) and out.inbound is inbound for out in outs):
            self.refusals.count("stranger", stamp.node, group=stamp.group)
            outs.append(Refuse(inbound, "not for this aggregator"))
        return outs

    def _spoofed(self, inbound: Inbound, name: str) -> Refuse:
        why = f"this is the way of {inbound.node}, not of {name}"
        self.refusals.count("spoofed", inbound.who, why=why)
        return Refuse(inbound, why, "denied")

    def _step(
        self,
        node: AggregatorNode,
        event: Event,
        now: Now,
        inbound: Inbound | None,
        keeps: list[Keep],
    ) -> list[Out]:
        outs: list[Out] = []
        for effect in node.step(event, now):
            if isinstance(effect, Keep):
                keeps.append(effect)
                continue
            if isinstance(effect, Send) and isinstance(effect.message, Joined | Answer):
                self._judged(event, effect.message)
            outs += self._out(node, effect, inbound)
        return outs

    def _out(self, node: AggregatorNode, effect: Effect, inbound: Inbound | None) -> list[Out]:
        match effect:
            case Send(to, message) if isinstance(message, Join | Report):
                if self.credentials is not None:
                    message = self.credentials.stamped(message)
                data = codec.encode(message, coarse=self._coarse)
                return [Up(message.stamp.group, codec.kind_of(message), data)]
            case Send(to, message):
                answers = isinstance(message, Joined | Answer)
                group = group_of(message)
                data, kind = codec.encode(message), codec.kind_of(message)
                return [Down(inbound if answers else None, to, group, kind, data)]
            case Publish(message):
                return [All(group_of(message), codec.encode(message))]
            case Note():
                self._notes.tell(effect, self._clock().steady)
        return []

    def _judged(self, event: Event, answer: Joined | Answer) -> None:
        """Count a join or a report that was not taken."""
        said = event.message if isinstance(event, Received) else None
        reason, stamp = reason_of(said, answer), answer.stamp
        if reason is not None:
            facts: dict[str, Any] = {"group": stamp.group, "why": REASONS[reason]}
            if isinstance(answer, Joined) and answer.lines:
                facts["lines"] = answer.lines[:4]
            self.refusals.count(reason, stamp.node, **facts)

    def _commit(self, keeps: list[Keep]) -> set[str] | None:
        """Write what a turn keeps, in one transaction; None if it is not written.

        Returns
        -------
        The groups whose rows tell of other alarms than before.
        """
        if not keeps:
            return set()
        anew = False
        changes: dict[Key, Any] = {}
        for keep in keeps:
            if keep.anew:
                anew, changes = True, {}
            changes |= keep.records
        packed = {
            key: None if record is None else records.pack(key, record)
            for key, record in changes.items()
        }
        try:
            self._store.write(packed, anew=anew)
        except SubmergeError as error:
            self._fail(error)
            return None
        self.tallies.commits += 1
        if self._failing:
            self._failing = False
            say("store written again")
        return self._alarms.groups(changes, anew=anew)

    def _fail(self, error: SubmergeError) -> None:
        """Throw the machine away: it believes what is not written."""
        self.node = None
        self.tallies.failed_writes += 1
        self._fails_until = self.wakes_at = self._clock().steady + AGAIN_S
        if not self._failing:
            self._failing = True
            say("store unavailable, trying on", level=logging.ERROR, why=str(error))

    def _survive(self, items: Sequence[Item], culprit: Item | None) -> list[Out]:
        """A bug of ours: it costs the item that met it, if one did, and the others a moment.

        What the machine has half done is unknown, so it is thrown away like one that could not
        write; what is on disk is whole.
        """
        self.node = None
        self._fails_until = self.wakes_at = self._clock().steady + AGAIN_S / 5
        self.tallies.bugs += 1
        say("a bug, please report it", level=logging.ERROR, trace=traceback.format_exc())
        outs = self._nothing_now([item for item in items if item is not culprit])
        if isinstance(culprit, Inbound):
            outs.append(Refuse(culprit, "this aggregator cannot take it: see its log"))
        elif isinstance(culprit, Asked):
            outs.append(Reply(culprit, SubmergeError("a bug: see the aggregator's log")))
        return outs

    def _nothing_now(self, items: Sequence[Item]) -> list[Out]:
        return [out for item in items for out in self._not_now(item)]

    def _not_now(self, item: Item) -> list[Out]:
        """Tell whoever waits for an answer that there is none now."""
        if isinstance(item, Asked):
            return [Reply(item, SubmergeError("the store cannot be written now"))]
        if not isinstance(item, Inbound):
            return []
        try:
            message = codec.decode(item.kind, item.data)
        except Exception as error:  # not the time to be choosy: it may be the bug
            return [Refuse(item, str(error))]
        if isinstance(message, Join | Report):
            self.refusals.count("unavailable", message.stamp.node)
        if isinstance(message, Join):
            late = Joined(message.stamp, Reason.UNAVAILABLE, message.fence, None, False, 0, b"")
            return [answered(item, late)]
        if isinstance(message, Report):
            return [answered(item, Answer(message.stamp, Reason.UNAVAILABLE, message.fence))]
        return []
