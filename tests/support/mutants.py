"""Nodes with one rule of docs/protocol.md broken each: the simulator must notice.

A mutant is a list of (class, method, replacement). What it breaks is its name.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from submerge.aggregator.group import Group
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.operators import histories
from submerge.aggregator.operators.quarantine import Quarantine
from submerge.aggregator.rows import pool
from submerge.aggregator.rows.former_schemas import FormerSchemas
from submerge.aggregator.rows.histories import Histories
from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.pool import Pool
from submerge.aggregator.rows.refusals import RowVerdict
from submerge.aggregator.upward import Upward
from submerge.client import measurement, pending_finals
from submerge.client.incarnation import ClientIncarnation
from submerge.client.node import ClientNode
from submerge.client.pending_finals import CHECKPOINT, PendingFinal, PendingFinals
from submerge.protocol.machine import Keep, Note, Now, Send
from submerge.protocol.messages import Counts, Incarnation, Left, Reason, successor
from submerge_lab.simulator import Plan

LINE = ("line", "room")

Patch = tuple[Any, str, Any]
"""A class or a module, a name in it, and what takes its place."""

_names = itertools.count(1)
_close, _meet = PendingFinals.close, PendingFinals.meet
_checkpoint = ClientIncarnation.checkpoint
_client_start = ClientNode._start
_renew = AggregatorNode.renew
_committed = AggregatorNode._committed
_start = AggregatorNode._start
_admit = Ledger.admit
_refusal = Ledger._refusal
_judge_refused = Quarantine.judge_refused
_judge_report = Group.judge_report
_place_histories = Pool._place_histories
_leave = FormerSchemas.leave
_learnt_in = pool.learnt_in
_successors_report = measurement.successors_report


def resumes(self, kept, now, effects):
    """The process goes on where the checkpoint ends."""
    last = kept.get(CHECKPOINT)
    if last is None or last.pin is None:
        return _client_start(self, kept, now, effects)
    _client_start(self, {}, now, effects)
    current, report = self.current, last.report
    current.incarnation, current.seq, current.pin = (
        report.stamp.incarnation,
        report.stamp.seq,
        last.pin,
    )
    current.counts, current.delivered = report.counts, last.delivered
    if report.summary is not None:
        current._learner._bits = report.summary.bits
    return None


def named_for_good(self, why, now, effects, *, floor=0):
    """A store that was lost comes back under its old name."""
    _renew(self, why, now, effects, floor=floor)
    self.incarnation = Incarnation(1, int.from_bytes(self.settings.node.encode(), "little"))


def lets_everyone_speak(self, node, incarnation, fence, past):
    """Whoever says that it is the store is the store."""
    everyone = (Left(held, 2**62) for held in self.member(node).fences.values())
    _admit(self, node, incarnation, fence, (*past, *everyone))
    return True


def asks_no_seq(self, node, incarnation, fence, past):
    """Whoever remembers the fence that is held is the store, whatever it has forgotten."""
    return _admit(self, node, incarnation, fence, tuple(Left(f, 2**62) for f, _ in past))


def ignores_fences(self, report, row):
    """A report is taken under whatever fence."""
    fences = self.member(report.stamp.node).fences
    return _refusal(
        self, replace(report, fence=fences.get(report.stamp.incarnation, report.fence)), row
    )


def takes_any_number(self, report, row):
    """Of a closed store, whatever has a number that was taken is thought to be folded in."""
    verdict = _refusal(self, report, row)
    if verdict is None or report.stamp.seq > verdict.newest:
        return verdict
    return verdict._replace(reason=Reason.ACK) if verdict.reason is Reason.STALE else verdict


def forgets_seq(self, effects):
    """The number of the newest report is in memory only."""
    return [
        Keep({**effect.records, LINE: replace(effect.records[LINE], seq=0)}, effect.new_store)
        if isinstance(effect, Keep) and LINE in effect.records
        else effect
        for effect in _committed(self, effects)
    ]


def seq_after(self, effects):
    """The number is kept after the report has gone, in a transaction of its own."""
    effects = _committed(self, effects)
    keep = effects[0] if effects else None
    sent = any(isinstance(effect, Send) and hasattr(effect.message, "fence") for effect in effects)
    if not isinstance(keep, Keep) or LINE not in keep.records or not sent:
        return effects
    if ("store",) in keep.records:
        return effects
    line = {LINE: keep.records.pop(LINE)}
    return [*effects, Keep(line)]


def drops_the_dead(self, node, incarnation, fence, past):
    """An aggregator that comes back as another is thought to replace what it was."""
    for other in self.live(node):
        if other != incarnation:
            self.drop(node, other, Now(0.0, 0.0, synced=False))
    return _admit(self, node, incarnation, fence, past)


def acknowledges_first(self, effects):
    """The answer goes out before the write."""
    effects = _committed(self, effects)
    return sorted(effects, key=lambda effect: isinstance(effect, Keep))


def closes_nothing(self, node, incarnation, seq):
    """What is sealed may speak again."""


def claims_too_much(self, child):
    """What is here is said to be at the root."""
    marks = self._marks.get(child, [])
    return marks[-1][0] if marks else self._held.get(child, 0)


def suspects_nobody(self, report, why, said, now):
    """Whoever contradicts itself goes on counting."""


def forgets_the_first(self, report, why, said, now):
    """Each equivocation is thought to be the first."""
    self.release(report.stamp.node)
    return _judge_refused(self, report, why, said, now)


def suspects_the_refused(self, report, me, now, *, top):
    """Whoever is refused anything is set apart."""
    answer = _judge_report(self, report, me, now, top=top)
    if answer.reason not in (Reason.ACK, Reason.UNAVAILABLE):
        self.put_in_quarantine(report.stamp.node, "shrunk", now)
    return answer


def draws_a_name(measured, _fingerprint):
    """Each copy of the readings goes over under a name of its own."""
    return Incarnation(measured.created_ms, next(_names))


def names_the_parent_only(measured, _fingerprint):
    """What was measured goes over under the name that measured."""
    return measured


def loses_what_was_measured(self, current, last, why, effects):
    """An incarnation that measured ends as any other: what the parent has confirmed is not lost."""
    return _close(self, current, replace(last, measured=None), why, effects)


def keeps_no_readings(self, report, now):
    """A checkpoint holds moments only."""
    return replace(_checkpoint(self, report, now), measured=None)


def meets_any_parent(self, pin, current, summaries, effects):
    """What was measured for one parent goes to another."""
    for final in self._waiting:
        if final.kept.measured is not None:
            final.kept = replace(final.kept, pin=pin)
    return _meet(self, pin, current, summaries, effects)


def holds_nothing(*_):
    """A chunk that is held is taken for a new one."""
    return {}


def keeps_what_is_replaced(self, history):
    """A history of more files stands beside the one that it covers."""
    self._by_name[history.name] = self.changes["history", self._group, history.name] = history
    return ()


def places_only(self):
    """What is forgotten stays in the merge."""
    before = dict(self._placed)
    self._placed.clear()
    _place_histories(self)
    self._placed = {**before, **self._placed}


def removes_in_memory(self, name):
    """What is forgotten stays in the store."""
    return self._by_name.pop(name, None) is not None


def loads_nothing(self, records):
    """After a restart there are no histories."""


def answers_first(self, effects):
    """A push is answered before the write."""
    effects = _committed(self, effects)
    if all(not isinstance(each, Note) or each.what != "history taken" for each in effects):
        return effects
    return sorted(effects, key=lambda effect: isinstance(effect, Keep))


def takes_its_own(group, history, root):
    """A model that was saved from a fleet goes into that fleet."""


def counts_rows_only(*_):
    """The rows of histories are in the model, and not in its counts."""
    return Counts()


def reads_no_other(*_):
    """Rows of the channels before leave the model."""
    return {}


def reads_its_own_too(self, schema):
    """A group that has its old channels again reads their rows as they are, and as restated."""
    return {each.fingerprint: each for each in self.schemas if each.family == schema.family}


def acknowledges_the_past(self, report, row):
    """The final report of the channels before is acknowledged, and not kept."""
    if report.final and report.fingerprint != self.fingerprint:
        return RowVerdict(Reason.ACK, report.stamp.seq)
    return _refusal(self, report, row)


def remembers_rows_only(self, schema, *, used, **_):
    """Channels of which no row has come yet are forgotten with their schema."""
    _leave(self, schema, used=used, learns=False)


def loads_no_schemas(self, records):
    """After a restart there are no channels before."""


def reports_moments_only(*_):
    """While a scale is measured, nothing goes up of the rows before."""


def counts_sums_twice(report):
    """What a row had before a scale was measured stands beside what it has since."""
    yield from _learnt_in(report)
    if report.earlier is not None:
        yield from _learnt_in(report)


def names_by_schema(report, measured, settled, summaries):
    """What was measured goes over under another name with each change of channels."""
    found = _successors_report(report, measured, settled, summaries)
    name = successor(report.stamp.incarnation, settled.fingerprint)
    return found and replace(found, stamp=found.stamp._replace(incarnation=name))


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


PRESET = {
    "A3' no fence": "copies",
    "fence' none on reports": "fences",
    "closed' any process of a store": "fences",
    "suspect' nobody": "twins",
    "suspect' nobody the second time": "twins",
}
"""Faults that tell, where swarm-1 does not, or the other checks of a copy hide it in most runs."""

SEED = {
    "fence' none on reports": 78,
    "A2' keep the name after loss": 2,
    "closed' any process of a store": 19,
    "A1' an aggregator keeps its store on a new parent": 35,
    "C2'' send an unpinned checkpoint": 41,
    "moved' to any parent": 18,
    "A3' no rollback check": 12,
    "channels' forgotten before a row has come": 60,
}
"""Where the search begins, if not at 0: the first seed that has shown the broken rule."""

MEASURES = ("moved'", "channels' measured")
"""Mutants that break what becomes of readings that were measured: the fleet's scaling is open."""

CHANNELS = "channels'"
"""Mutants that break what becomes of rows when channels come and go."""


def plan_of(mutant: str) -> Plan:
    """Return the plan whose seeds show a broken rule."""
    other = "channels-1" if mutant.startswith(CHANNELS) else "swarm-1"
    faults = PRESET.get(mutant, other)
    return Plan(faults=faults, learns_scaling=mutant.startswith(MEASURES))


MUTANTS: dict[str, list[Patch]] = {
    "C1' resume the incarnation from the checkpoint": [(ClientNode, "_start", resumes)],
    "C2' never send the checkpoint again": [(PendingFinals, "may_send", never)],
    "C2'' send an unpinned checkpoint": [(PendingFinals, "may_send", always)],
    "A1' a client keeps its incarnation on a new parent": [
        (ClientNode, "keeps_incarnation", always)
    ],
    "A1' an aggregator keeps its store on a new parent": [
        (AggregatorNode, "keeps_store", always),
        (AggregatorNode, "_ours", always),
    ],
    "A2' keep the name after loss": [(AggregatorNode, "renew", named_for_good)],
    "A3' no fence": [
        (Ledger, "admit", lets_everyone_speak),
        (Ledger, "_refusal", ignores_fences),
    ],
    "A3' no rollback check": [
        (AggregatorNode, "is_behind", never),
        (Ledger, "admit", asks_no_seq),
    ],
    "A4' the upward seq is lost": [(AggregatorNode, "_committed", forgets_seq)],
    "A4' the upward seq outside the transaction": [(AggregatorNode, "_committed", seq_after)],
    "A5' drop a dead aggregator's row": [(Ledger, "admit", drops_the_dead)],
    "A6' rebind any store": [
        (ClientNode, "keeps_incarnation", always),
        (AggregatorNode, "keeps_store", always),
    ],
    "seal' close nothing": [(Ledger, "close", closes_nothing)],
    "ack' acknowledge before the commit": [(AggregatorNode, "_committed", acknowledges_first)],
    "durable' say that the root holds what is here": [(Upward, "held", claims_too_much)],
    "fence' none on reports": [(Ledger, "_refusal", ignores_fences)],
    "closed' any process of a store": [(Ledger, "_refusal", takes_any_number)],
    "suspect' nobody": [(Quarantine, "judge_refused", suspects_nobody)],
    "suspect' nobody the second time": [(Quarantine, "judge_refused", forgets_the_first)],
    "suspect' whoever is refused": [(Group, "judge_report", suspects_the_refused)],
    "moved' each copy has a name of its own": [(measurement, "successor", draws_a_name)],
    "moved' under the name that measured": [(measurement, "successor", names_the_parent_only)],
    "moved' delivered with the moments": [(PendingFinal, "measures", property(never))],
    "moved' dropped at the end of an incarnation": [
        (PendingFinals, "close", loses_what_was_measured)
    ],
    "moved' no readings in a checkpoint": [(ClientIncarnation, "checkpoint", keeps_no_readings)],
    "moved' to any parent": [(PendingFinals, "meet", meets_any_parent)],
    "channels' rows before dropped": [(FormerSchemas, "read_as", reads_no_other)],
    "channels' rows before read twice": [(FormerSchemas, "read_as", reads_its_own_too)],
    "channels' finals before acknowledged, and not kept": [
        (Ledger, "_refusal", acknowledges_the_past)
    ],
    "channels' forgotten before a row has come": [(FormerSchemas, "leave", remembers_rows_only)],
    "channels' forgotten at a restart": [(FormerSchemas, "load", loads_no_schemas)],
    "channels' measured, and nothing said of rows before": [
        (Ledger, "earlier_sums", reports_moments_only)
    ],
    "channels' measured, and rows before counted twice": [(pool, "learnt_in", counts_sums_twice)],
    "channels' measured once for each schema": [
        (pending_finals, "successors_report", names_by_schema)
    ],
    "history' a chunk that is held": [(Histories, "holders", holds_nothing)],
    "history' replaced, and still there": [(Histories, "put", keeps_what_is_replaced)],
    "history' forgotten, and still merged": [(Pool, "_place_histories", places_only)],
    "history' forgotten in memory": [(Histories, "remove", removes_in_memory)],
    "history' lost at a restart": [(Histories, "load", loads_nothing)],
    "history' answer before the commit": [(AggregatorNode, "_committed", answers_first)],
    "history' of the fleet itself": [(histories, "_check_origin", takes_its_own)],
    "history' not counted": [(Histories, "counts", counts_rows_only)],
}
