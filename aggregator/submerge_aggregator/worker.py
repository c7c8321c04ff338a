"""CommitWorker: the machine, its store and batches, on one thread beside the event loop.

A batch takes what has come in since the last one, steps the machine through it, and commits once;
only then does anything go out (docs/decisions/0009). A write that fails undoes the whole batch:
every sender gets "not now", and another machine starts from what the store holds.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from submerge import PeerError, SubmergeError
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.self_check import UNSENT
from submerge.protocol.machine import (
    Answered,
    Consult,
    Effect,
    Event,
    Keep,
    Key,
    Linked,
    NewCertificate,
    Note,
    Now,
    Publish,
    Received,
    Replied,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import (
    Answer,
    DrillReport,
    DrillTaken,
    FromBelow,
    Join,
    Joined,
    QuestionReply,
    Reason,
    ReplyTaken,
    Report,
)
from submerge_aggregator.admission.control import AdmissionControl, denial_of
from submerge_aggregator.audit import Record, record_nothing
from submerge_aggregator.batch import (
    All,
    Asked,
    BatchEntries,
    Down,
    Item,
    Out,
    Refuse,
    Reply,
    Tallies,
    Up,
    answer_to,
    group_of,
    reason_of,
    refusal_of,
)
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.history.answers import SCORES
from submerge_aggregator.history.file import entries_of, models_of
from submerge_aggregator.notify.notifier import AlarmNews
from submerge_aggregator.questions.survey import Settings, consulted, no_settings
from submerge_aggregator.refusals import REASONS, Refusals
from submerge_aggregator.store import Store, StoreDamaged, StoreGone
from submerge_client.logs import Notes, say
from submerge_client.uplink import Came, Opened
from submerge_client.uplink.tls import Credentials
from submerge_proto.kept import records
from submerge_proto.kept.records import ReceivedReports
from submerge_proto.wire import codec


def refuse_all(items: Sequence[Item], refusals: Refusals) -> list[Out]:
    """Answer "not now" to those items that want an answer."""
    return [out for item in items for out in _not_now(item, refusals)]


def _not_now(item: Item, refusals: Refusals) -> list[Out]:
    if isinstance(item, Asked):
        return [Reply(item, SubmergeError("the store cannot be written now"))]
    if not isinstance(item, Inbound):
        return []
    try:
        message = codec.decode(item.kind, item.data)
    except Exception as error:  # of any kind: this may be the bug itself
        return [Refuse(item, str(error))]
    if isinstance(message, Join | Report):
        refusals.count("unavailable", message.stamp.node)
    match message:
        case Join(stamp, fence):
            late = Joined(stamp, Reason.UNAVAILABLE, fence, None, False, 0, b"")
            return [answer_to(item, late)]
        case Report():
            answer = Answer(message.stamp, Reason.UNAVAILABLE, message.fence)
            return [answer_to(item, answer)]
        case DrillReport():
            return [answer_to(item, DrillTaken(message.stamp, Reason.UNAVAILABLE))]
        case QuestionReply():
            return [answer_to(item, ReplyTaken(message.stamp, Reason.UNAVAILABLE))]
    return []


AGAIN_S = 5.0  # the store is left alone for so long after a failed write


class CommitWorker:
    """The machine of one aggregator, at work.

    coarse : Reports upward go with int8 columns where that does little harm.
    credentials : Reports upward carry the end of their certificates.
    node : None while the store cannot be read.
    wakes_at : When a batch is due with nothing to take in, on the steady clock.
    """

    def __init__(
        self,
        make_node: Callable[[], AggregatorNode],
        store: Store,
        clock: Callable[[], Now],
        *,
        coarse: bool = False,
        credentials: Credentials | None = None,
        refusals: Refusals | None = None,
        admission: AdmissionControl | None = None,
        record: Record = record_nothing,
        settings: Settings = no_settings,
    ) -> None:
        self.node: AggregatorNode | None = None
        self.tallies = Tallies()
        self.wakes_at = 0.0
        self.credentials, self.settings = credentials, settings
        self.refusals = Refusals(lambda: clock().steady) if refusals is None else refusals
        self.admission = AdmissionControl() if admission is None else admission
        self._make_node, self._store, self._clock, self._coarse = make_node, store, clock, coarse
        self._fails_until = -1.0
        self._failing = False
        self._notes = Notes()
        self._alarms = AlarmNews()
        self._received = ReceivedReports()
        self._entries = BatchEntries(record, lambda: clock().steady)

    @property
    def store(self) -> Store:
        """The store; only for its own thread."""
        return self._store

    @property
    def certified_until(self) -> float:
        """When the first of its own certificates ends, Unix seconds; 0 without any."""
        return 0.0 if self.credentials is None else self.credentials.until

    def start(self) -> list[Out]:
        self._fails_until = -1.0
        return self._begin()

    def commit_batch(self, items: Sequence[Item]) -> list[Out]:
        """Take in items, in order; return what is to go out, all of it committed."""
        culprit: Item | None = None
        try:
            now, outs = self._clock(), list[Out]()
            if self.node is None and now.steady >= self._fails_until:
                outs += self._begin()
            node, keeps = self.node, list[Keep]()
            if node is None:
                return refuse_all(items, self.refusals)
            for culprit in items:
                outs += self._take(node, culprit, now, keeps)
            culprit = None
            if not items:
                outs += self._step(node, Tick(), now, None, keeps)
            changed = self._commit(keeps)
            if changed is None:
                return refuse_all(items, self.refusals)
            self.wakes_at = node.wakes_at
            self._take_over_bans(node)
            return [*outs, *(self._alarms.alarms_of(node, now, group) for group in sorted(changed))]
        except StoreDamaged:
            raise
        except Exception:
            return self._survive(items, culprit)
        finally:
            self._received.clear()

    def close(self) -> None:
        self._store.close()

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
        node, keeps, now = self._make_node(), list[Keep](), self._clock()
        outs = [*self._step(node, Start(kept), now, None, keeps), *models_of(node)]
        if self._commit(keeps) is None:
            return []
        self.node, self.wakes_at = node, node.wakes_at
        self._take_over_bans(node)
        # Also without any alarm: a notifier may hold open ones that are over.
        return [*outs, *(self._alarms.alarms_of(node, now, group) for group in node.groups)]

    def _take_over_bans(self, node: AggregatorNode) -> None:
        """Have the downlinks end what banned nodes watch."""
        self.admission.set_banned({group: node.excluded(group)[0] for group in node.groups})

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
                    say("acknowledged", level="debug", **facts, durable=message.durable)
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
                return []  # parted: the server logs it

    def _read(
        self, node: AggregatorNode, inbound: Inbound, now: Now, keeps: list[Keep]
    ) -> list[Out]:
        """Read a child's message; unreadable bytes change nothing but a counter."""
        try:
            message = codec.decode(inbound.kind, inbound.data)
        except codec.MessageRefused as refusal:
            if inbound.node not in (None, refusal.stamp.node):
                return [self._refuse_spoofed(inbound, refusal.stamp.node)]
            self.refusals.count(refusal.kind, refusal.stamp.node, why=str(refusal))
            return [answer_to(inbound, refusal_of(inbound.kind, refusal, node))]
        except PeerError as error:
            self.refusals.count(error.kind, inbound.who, why=str(error))
            return [Refuse(inbound, str(error))]
        if not isinstance(message, FromBelow):
            why = f"a child sends joins and reports, got a {inbound.kind}"
            self.refusals.count("malformed", inbound.who, why=why)
            return [Refuse(inbound, why)]
        stamp = message.stamp
        if inbound.node not in (None, stamp.node):
            return [self._refuse_spoofed(inbound, stamp.node)]
        if isinstance(message, Join):
            self.tallies.joins += 1
        elif isinstance(message, Report):
            self.tallies.reports += 1
            self._received.note(message, inbound.data)
        why_not = self.admission.objection(message, inbound.identity, node)
        if why_not is not None:
            self.refusals.count("denied", stamp.node, group=stamp.group, why=why_not)
            return [answer_to(inbound, denial_of(message, why_not, node))]
        outs = self._step(node, Received(message, inbound.shared), now, inbound, keeps)
        if not any(isinstance(out, Down) and out.inbound is inbound for out in outs):
            self.refusals.count("stranger", stamp.node, group=stamp.group)
            outs.append(Refuse(inbound, "for another aggregator"))
        return outs

    def _refuse_spoofed(self, inbound: Inbound, name: str) -> Refuse:
        why = f"it came as {inbound.node}, and names {name}"
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
            outs += entries_of(node, event, effect, now)
            if isinstance(effect, Consult) and effect.question.topic == SCORES:
                outs.append(effect)  # the history has a thread of its own
                continue
            if isinstance(effect, Consult):
                said = Answered(
                    effect.question, *consulted(node, now, effect.question, self.settings)
                )
                outs += self._step(node, said, now, None, keeps)
                continue
            if isinstance(effect, Send) and isinstance(effect.message, Joined | Answer):
                self._count_refusal(event, effect.message)
                if isinstance(event, Received) and isinstance(effect.message, Joined):
                    self._entries.add_join(event.message, effect.message, inbound)
            outs += self._out(node, effect, inbound)
        return outs

    def _out(self, node: AggregatorNode, effect: Effect, inbound: Inbound | None) -> list[Out]:
        match effect:
            case Send(to, message) if isinstance(message, FromBelow):
                if self.credentials is not None:
                    message = self.credentials.stamped(message)
                data = codec.encode(message, coarse=self._coarse)
                return [Up(message.stamp.group, codec.kind_of(message), data)]
            case Send(to, message):
                answers = isinstance(message, Joined | Answer | DrillTaken | ReplyTaken)
                group = group_of(message)
                data, kind = codec.encode(message), codec.kind_of(message)
                return [Down(inbound if answers else None, to, group, kind, data)]
            case Replied():
                return [effect]
            case Publish(message):
                return [All(group_of(message), codec.encode(message))]
            case NewCertificate(certificate) if self.credentials is not None:
                self._notes.write(self.credentials.renewed(certificate), self._clock().steady)
            case Note():
                self.tallies.model_rejected += effect.what in UNSENT.values()
                self._notes.write(effect, self._clock().steady)
                self._entries.add_note(effect)
        return []

    def _count_refusal(self, event: Event, answer: Joined | Answer) -> None:
        """Count a join or a report that was not taken."""
        message = event.message if isinstance(event, Received) else None
        reason, stamp = reason_of(message, answer), answer.stamp
        if reason is not None:
            facts: dict[str, Any] = {"group": stamp.group, "why": REASONS[reason]}
            if isinstance(answer, Joined) and answer.lines:
                facts["lines"] = answer.lines[:4]
            self.refusals.count(reason, stamp.node, **facts)

    def _commit(self, keeps: list[Keep]) -> set[str] | None:
        """Write what a batch keeps; return the groups whose alarms changed, None if not written."""
        reset = False
        changes: dict[Key, Any] = {}
        for keep in keeps:
            if keep.new_store:
                reset, changes = True, {}
            changes |= keep.records
        packed = {
            key: None if record is None else self._received.pack(key, record)
            for key, record in changes.items()
        }
        try:
            if not keeps:
                # An answer may rest on an earlier commit.
                self._store.check()
                self._entries.commit()
                return set()
            self._store.write(packed, reset=reset)
        except StoreGone:
            raise
        except SubmergeError as error:
            self._fail(error)
            return None
        self.tallies.commits += 1
        self._entries.commit()
        if self._failing:
            self._failing = False
            say("store written again")
        return self._alarms.groups(changes, reset=reset)

    def _fail(self, error: SubmergeError) -> None:
        """Throw the machine away: it holds what is not written."""
        self.node = None
        self._entries.drop()
        self.tallies.failed_writes += 1
        self._fails_until = self.wakes_at = self._clock().steady + AGAIN_S
        if not self._failing:
            self._failing = True
            say("store unavailable, trying on", level="error", why=str(error))

    def _survive(self, items: Sequence[Item], culprit: Item | None) -> list[Out]:
        """After a bug of ours: refuse the item that met it, and have the others sent again."""
        # The machine is in an unknown state; the store is whole.
        self.node = None
        self._entries.drop()
        self._fails_until = self.wakes_at = self._clock().steady + AGAIN_S / 5
        self.tallies.bugs += 1
        say("a bug, please report it", level="error", trace=traceback.format_exc())
        outs = refuse_all([item for item in items if item is not culprit], self.refusals)
        if isinstance(culprit, Inbound):
            outs.append(Refuse(culprit, "this aggregator cannot take it: see its log"))
        elif isinstance(culprit, Asked):
            outs.append(Reply(culprit, SubmergeError("a bug: see the aggregator's log")))
        return outs
