"""Group: an aggregator's nodes that share a schema: their rows, the way up, and the model.

Orders go down as desired states in answers. Brokers deliver messages twice, so an answer may come
again: a new order is sent at once, in the newest answer once more, and the child's next report
confirms it. If an answer gets lost, the next one has the order, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from submerge.aggregator import root as of_root
from submerge.aggregator.alarms.below import alarm_status, dispute_notes
from submerge.aggregator.alarms.drills import DrillAnswers
from submerge.aggregator.operators.quarantine import Cause, Quarantine
from submerge.aggregator.plan import GroupPlan as GroupPlan
from submerge.aggregator.rollup import census, scores
from submerge.aggregator.root import newest_version, settle
from submerge.aggregator.rows.histories import Histories
from submerge.aggregator.rows.influence import InfluenceNotes
from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.refusals import RowVerdict, within_readings
from submerge.aggregator.rows.releases import Noise, Release, released
from submerge.aggregator.self_check import Said, SelfCheck, rejection_note
from submerge.aggregator.upward import Lineage, Upward
from submerge.errors import PeerError
from submerge.protocol.alarm_changes import diff, is_urgent
from submerge.protocol.alarm_status import Waiting
from submerge.protocol.desired_state import DesiredStates
from submerge.protocol.machine import Effect, Key, Note, Now, Records, Send
from submerge.protocol.messages import (
    HIGHEST,
    Answer,
    Incarnation,
    Join,
    Joined,
    Model,
    Reason,
    Report,
    Stamp,
    Told,
    most_told,
)
from submerge.protocol.report_bytes import digest
from submerge.protocol.session import ParentSession
from submerge.protocol.settings import AggregatorSettings
from submerge.schema import Schema, differences

CONFIRMS_S = 2.0
"""So long a child may take to confirm an order. Until then the answer to its report brings more,
and it is sent no other answer."""

MOST_CHILDREN = 65_536
"""Children that are remembered. The one that was heard longest ago is forgotten: it gets its orders
with the answer to its next report."""


class Child(NamedTuple):
    """A child as an answer names it; `heard` is the newest desired state that it has confirmed."""

    stamp: Stamp
    fence: bytes
    heard: int

    @classmethod
    def of(cls, report: Report) -> Child:
        status = report.alarm_status
        return cls(report.stamp, report.fence, 0 if status is None else status.desired)


class OrderPushes:
    """The children of a group that can be sent orders at once."""

    def __init__(self) -> None:
        self._children: dict[str, Child] = {}
        self._joined: set[str] = set()
        self._newest = 0  # desired state that has been looked at
        self._confirms_at: dict[str, float] = {}

    @property
    def has_joined(self) -> bool:
        """Whether a child has joined since the last look: its way is open again."""
        return bool(self._joined)

    def take_join(self, join: Join, states: DesiredStates) -> None:
        """Note that a child has joined; what it is owed, it is sent as soon as that is answered."""
        node = join.stamp.node
        child = Child(join.stamp, join.fence, 0)
        known = self._children.get(node)
        # Another store, or an older copy of this one, has not what the last one had confirmed.
        lineage = child.stamp.incarnation, child.fence
        if known is not None and lineage == (known.stamp.incarnation, known.fence):
            child = known._replace(stamp=join.stamp)
        self._put(child)
        if states.by_node:
            self._joined.add(node)

    def take_report(self, report: Report) -> None:
        """Note what a child has confirmed; the answer to its report has what is due."""
        self._put(Child.of(report))
        self._joined.discard(report.stamp.node)

    def due(self, group: Group, now: Now) -> list[Child]:
        """Return the children to which something may be due, each once."""
        news, joined = group.desired_states.after(self._newest), self._joined
        if not news and not joined:
            return []
        self._joined = set()
        if news:
            self._newest = news[-1].number
            named = {each.node for each in news}
            concerned = [
                node for node, child in self._children.items() if child.fence or node in named
            ]
            waits = {node for node, until in self._confirms_at.items() if until > now.steady}
            joined = joined.union(concerned) - waits
        return [self._children[node] for node in sorted(joined - group.banned)]

    def await_confirmation(self, node: str, now: Now) -> None:
        self._confirms_at[node] = now.steady + CONFIRMS_S

    def _put(self, child: Child) -> None:
        node = child.stamp.node
        self._confirms_at.pop(node, None)
        self._children.pop(node, None)
        self._children[node] = child
        if len(self._children) > MOST_CHILDREN:
            oldest = next(iter(self._children))
            del self._children[oldest]
            self._confirms_at.pop(oldest, None)
            self._joined.discard(oldest)


REMEMBERED = 1024
"""Incarnations whose joins are known: one whose answer was lost joins again, with more readings."""


class FirstReadings:
    """The sum over incarnations that have joined here since the process began."""

    def __init__(self) -> None:
        self.total = 0
        self._joined: dict[tuple[str, Incarnation], int] = {}

    def note(self, node: str, incarnation: Incarnation, readings: int) -> None:
        """Take the readings of an incarnation that joins; what it said before is in the sum."""
        child = node, incarnation
        known = self._joined.pop(child, 0)
        self.total += max(0, readings - known)
        self._joined[child] = max(known, readings)
        while len(self._joined) > REMEMBERED:
            del self._joined[next(iter(self._joined))]


LOOK_EVERY_S = 1.0
"""How often a root looks, at most, whether there are enough readings to settle the schema, or for a
first model: each look adds up all rows."""


# Models and reports are states: the difference of two is what few nodes have learnt between them.
# With a floor, their rows are those of before until five children have learnt eight each
# (docs/privacy.md). It is not kept on disk: the first one of a process goes out as it is.

FEWEST_NODES, FEWEST_ROWS = 5, 8

GROWS_S = 6 * 3600.0
"""A child that has learnt nothing for so long is waited for no more."""


class RowFloor:
    """What each child had learnt when rows went out last; `always`: as `GroupPlan.floor`."""

    def __init__(self, always: bool | None) -> None:
        self._always = always
        self._before: Counter[str] | None = None
        self._grown: dict[str, tuple[int, float]] = {}  # rows, and since when they are so many
        self._open_until = -math.inf

    def open(self, until: float) -> None:
        """Let all rows go out until then: what was removed is not to wait."""
        self._open_until = until

    def allows(self, ledger: Ledger, now: Now) -> bool:
        """Return whether the rows may go out as they are."""
        if self._always is False:
            return True
        learnt = ledger.counted.learnt_by_node()
        # Which of those in a store still learn shows within an hour.
        since = now.steady if self._grown else now.steady - GROWS_S + 3600.0
        for node, rows in learnt.items():
            if self._grown.get(node, (-1, 0.0))[0] != rows:
                self._grown[node] = rows, since
        if self._before is None or now.steady < self._open_until:
            return True
        if any(learnt[node] < rows for node, rows in self._before.items()):
            return True  # a node has left
        grows = [n for n in learnt if now.steady - self._grown[n][1] <= GROWS_S]
        needed = min(FEWEST_NODES, len(grows))
        news = [rows for node in learnt if (rows := learnt[node] - self._before[node])]
        if not news or (census(ledger, now).nodes < FEWEST_NODES and not self._always):
            return True
        return sum(rows >= FEWEST_ROWS for rows in news) >= max(1, needed)

    def mark(self, ledger: Ledger) -> None:
        """Note that all rows go out now."""
        if self._always is not False:
            self._before = ledger.counted.learnt_by_node()


class Group:
    """One group of one aggregator; it has no ledger while the schema is not known.

    version, rank : Of the newest model that was made here.
    holds_back : Rows wait for those of more nodes.
    first_readings : Readings that clients learnt before they joined here.
    """

    def __init__(self, name: str, plan: GroupPlan, settings: AggregatorSettings) -> None:
        self.name, self.plan = name, plan
        self.ledger: Ledger | None = None
        self.canonical = b""
        self.model: Model | None = None
        self.version = self.rank = 0
        self.banned: frozenset[str] = frozenset()
        self.quarantine = Quarantine()
        self.desired_states, self.pushes = DesiredStates(), OrderPushes()
        self.drills, self.first_readings = DrillAnswers(), FirstReadings()
        self.histories = Histories(name)
        self.published: Release | None = None
        self.upward = Upward(ParentSession.of(settings), Lineage())
        self._settings = settings
        self._stirred = True  # the rows have changed since the newest model
        self._model_at = self._look_at = -math.inf
        self._has_ended = False  # nothing is left to spend
        self._since: float | None = None  # since when rows may have come from nodes that ran before
        self._notes = InfluenceNotes(name)
        self._check = SelfCheck(plan.objection)
        self._floor = RowFloor(plan.floor)
        self._reported: Report | None = None
        self.holds_back = False
        self._rejections: list[Note] = []

    def records(self) -> dict[Key, Any]:
        """Return the records that a store keeps of it, beside its rows."""
        name = self.name
        return {
            ("line", name): self.upward.line,
            ("schema", name): self.canonical,
            ("asked", name): self.plan.configured,
            ("version", name): self.version,
            ("rank", name): self.rank or None,
            ("release", name): self.published,
            **self.orders(),
        }

    def orders(self) -> dict[Key, Any]:
        """Return the records that a new store keeps: bans, quarantine, desired states."""
        name, quarantine = self.name, self.quarantine
        return {
            ("banned", name): self.banned,
            ("quarantined", name): quarantine.quarantined,
            ("suspected", name): quarantine.slips,
            ("wishes", name): dict(self.desired_states.by_node),
            ("heard", name): self.desired_states.heard,
        }

    def take_changes(self) -> dict[Key, Any]:
        """Return the records that have changed since the last call: rows, and histories."""
        changes = dict(self.histories.changes)
        self.histories.changes.clear()
        if self.ledger is not None:
            changes |= self.ledger.changes
            self.ledger.changes.clear()
        return changes

    @property
    def wakes_at(self) -> float:
        if self.pushes.has_joined:
            return -math.inf
        if self._settings.parent is not None:
            return self.upward.due_at
        if not (self._stirred or self.holds_back) or self.ledger is None:
            return math.inf
        return min(self._model_at, self._look_at) if self._begins else self._model_at

    def tidy(self, now: Now) -> None:
        """Seal silent rows, and forget what is old."""
        self.quarantine.tidy(now)
        if self.ledger is not None:
            self.ledger.tidy(now)
            self.ledger.disputes.only(self.ledger.presence)
            self.upward.only(self.ledger.rows)

    def stir(self, *, now: bool = False) -> None:
        """Note that the rows have changed: there is news for the parent, and for the model."""
        self._stirred = self.upward.changed = True
        if now:
            self._model_at = -math.inf

    def flush(self) -> None:
        """Say everything now, as the process that follows does."""
        self._floor, self.holds_back = RowFloor(self.plan.floor), False
        self.upward.session.hurry()
        self.stir(now=True)

    def open_floor(self, now: Now) -> None:
        """Let rows go out as they are for a while: something is removed, here or further down."""
        self._floor.open(now.steady + 3 * self._settings.report_every_s)

    def put_in_quarantine(self, node: str, cause: Cause, now: Now) -> None:
        self.quarantine.put_in_quarantine(node, cause, now)
        self.open_floor(now)
        self._leave_out()

    def release(self, node: str) -> None:
        self.quarantine.release(node)
        self._leave_out()

    def _leave_out(self, others: frozenset[str] = frozenset()) -> None:
        """Keep out the rows of quarantined nodes, and of `others` for now."""
        if self.ledger is not None:
            self.ledger.leave_out(frozenset(self.quarantine.quarantined), others)
        self.stir()

    def learn_schema(
        self, canonical: bytes, created: float, *, kept: tuple[Records, Now] | None = None
    ) -> None:
        """Go over to a schema; rows of another leave the model. PeerError if the text is none."""
        schema = Schema.parse(canonical)
        self.canonical, self._stirred = canonical, True
        if self.ledger is not None:
            self.ledger.change_schema(schema)
            # A report that waits is of the schema before: it must be made again.
            self.stir()
            return
        self.ledger = Ledger(
            self.name,
            schema,
            self.plan.summaries,
            self._settings,
            created=created,
            robust=self.plan.robust,
            rule=self.plan.influence_rule(self._settings.bounds_after_s),
            histories=self.histories,
            learns_scaling=self.plan.learns_scaling,
            flow=self.plan.flow,
        )
        self.ledger.leave_out(frozenset(self.quarantine.quarantined))
        if kept is not None:
            self.histories.load(kept[0])
            self.ledger.load(*kept)
            left = kept[0].get(("schema", self.name), canonical)
            if left not in (b"", canonical):
                self.ledger.change_schema(schema, left=Schema.parse(left))
            # It is not known which of the kept rows the parent has.
            self.upward.changed = True

    def judge_report(self, report: Report, me: Incarnation, now: Now, *, top: bool) -> Answer:
        """Let the rows take a report; return the answer to it."""
        ledger, stamp = self.ledger, report.stamp
        if ledger is None:
            return Answer(stamp, Reason.UNAVAILABLE, report.fence)
        if stamp.node in self.banned:
            return Answer(stamp, Reason.BANNED, report.fence, me, top)
        child = stamp.node, stamp.incarnation
        row = ledger.rows.get(child)
        verdict = ledger.accept(report, now)
        if verdict.news:
            self.stir()
            self._check.changed.add(stamp.node)
            before = () if row is None else row.report.alarms
            if is_urgent(diff(before, report.alarms)):
                # Alarms and verdicts do not wait for the next interval at each level.
                self.upward.session.soon(now.steady)
            self.upward.mark(child, verdict.newest)
        if verdict.reason is Reason.ACK and not report.final:
            self.pushes.take_report(report)
        return self._answer(ledger, Child.of(report), verdict, me, top=top)

    def push_orders(self, me: Incarnation, now: Now, *, top: bool) -> list[Effect]:
        """Send new orders to the children that they concern, between their reports."""
        ledger = self.ledger
        if ledger is None:
            return []
        sends = list[Effect]()
        for child in self.pushes.due(self, now):
            node, _, incarnation, _ = child.stamp
            row = ledger.rows.get((node, incarnation))
            held = RowVerdict(Reason.ACK, 0 if row is None else row.report.stamp.seq)
            answer = self._answer(ledger, child, held, me, top=top)
            if answer.desired_states:
                self.pushes.await_confirmation(node, now)
                sends.append(Send(node, answer))
        return sends

    def _answer(
        self, ledger: Ledger, child: Child, verdict: RowVerdict, me: Incarnation, *, top: bool
    ) -> Answer:
        """Return the answer to a report, with what is durable and what operators have set."""
        stamp = child.stamp
        return Answer(
            stamp,
            verdict.reason,
            child.fence,
            me,
            top,
            verdict.newest,
            root=me if top else self.upward.root,
            durable=verdict.newest if top else self.upward.held((stamp.node, stamp.incarnation)),
            floor=ledger.member(stamp.node).floor,
            desired_states=self.desired_states.due(
                stamp.node, child.heard, is_client=not child.fence
            ),
        )

    def notes_on(self, report: Report, why: Reason, now: Now) -> list[Note]:
        """Return notes on what a person has to look at, after the answer to a report."""
        if why is Reason.ACK and self.ledger is not None:
            turns, node = self.ledger.presence.turns, report.stamp.node
            notes = turns.notes(self.name, node, now.steady)
            return [*notes, *dispute_notes(self.ledger, report, now)]
        note = self._quarantine_liar(report, why, now)
        return [] if note is None else [note]

    def _quarantine_liar(self, report: Report, why: Reason, now: Now) -> Note | None:
        """Quarantine a client that contradicts itself; return a note, for a person has to look."""
        if why not in (Reason.SHRUNK, Reason.EQUIVOCATION):
            return None
        node = report.stamp.node
        content = digest(report, self.plan.summaries)
        cause = self.quarantine.judge_refused(report, why, content, now)
        if cause is None:
            return None
        facts: dict[str, Any] = {"group": self.name, "node": node, "why": cause}
        if self.quarantine.full:
            return Note(
                "quarantine is full", facts | {"todo": "release nodes, or ban them"}, "warning"
            )
        self.put_in_quarantine(node, cause, now)
        facts["meaning"] = f"{why.value}: its rows are kept, and leave the model"
        facts["todo"] = f"look for a second process or a copy of it, then: nodes release {node}"
        return Note("node quarantined", facts, "warning")

    def influence_notes(self) -> list[Note]:
        """Return notes on the nodes that the model leaves out or bounds, or no longer does."""
        ledger = self.ledger
        if ledger is None:
            return []
        found = of_root.without_energies(ledger), ledger.counted.moments_by_node()
        return self._notes.news(ledger.outliers(), ledger.bounds(), *found)

    def take_rejections(self) -> list[Note]:
        """Return notes on what was refused here, once."""
        notes, self._rejections = self._rejections, []
        return notes

    def model_for(self, report: Report, now: Now) -> Model | None:
        """Return the model, if a child still uses an older one."""
        model, ledger = self.model, self.ledger
        if model is None or ledger is None or model.fingerprint != report.fingerprint:
            return None
        if self._settings.parent is None and model.version < report.version:
            # The version has to rise above the child's, if the child is believed.
            own = model.version
            # A fresh report has stirred it already; else a child that is never believed would make
            # each of its reports cost a look at all rows.
            self._stirred = self._stirred or newest_version(ledger, now, own=own) > own
        return model if report.version < model.version else None

    def report(self, node: str, me: Incarnation, now: Now) -> Report | None:
        """Return a report of all rows, under the next number; None if there is none to send."""
        ledger = self.ledger
        if ledger is None:
            return None
        kept = self._kept(self._reported, ledger, now)
        made = self._readable(Report, lambda: self._new_report(ledger, node, me, now, kept), now)
        if made is not None:
            self._reported = made
            if self.holds_back:
                self.upward.postpone(made.stamp.seq)
            else:
                self._floor.mark(ledger)
        return made

    def _kept(self, before: Said | None, ledger: Ledger, now: Now) -> Said | None:
        """Return the message of before if its rows go again, since new ones wait."""
        allowed = self._floor.allows(ledger, now)
        self.holds_back = False
        # What is only measured does not wait: it settles a scale, without which nothing is learnt.
        if before is None or before.summary is None or before.fingerprint != ledger.fingerprint:
            return None
        self.holds_back = not allowed
        return None if allowed else before

    def _new_report(
        self, ledger: Ledger, node: str, me: Incarnation, now: Now, before: Report | None
    ) -> Report:
        """Return a report; its rows are those of the one `before`, if they are held back."""
        upward = self.upward
        # First: it takes the time, on which outliers depend, and so do counts.
        seen, recent = ledger.seen(now), scores(ledger)
        seen = of_root.known_noise(ledger, seen, recent, self.model, even=True)
        counts = ledger.counts()
        version = 0 if self.model is None else self.model.version
        report = Report(
            stamp=Stamp(node, self.name, me, upward.line.seq + 1),
            final=False,
            pinned=me,  # the parent's, when it is sent
            fence=upward.line.fence,
            fingerprint=ledger.fingerprint,
            summary=within_readings(self.plan.summaries, seen, counts.learnt),
            moments=ledger.moments(),
            counts=counts,
            as_of=now.wall,
            synced=now.synced,
            version=max(version, newest_version(ledger, now, own=version)),
            lifetime=counts.generated,
            census=census(ledger, now),
            scores=recent,
            alarm_status=alarm_status(ledger, now, desired=self.desired_states.heard),
            earlier=ledger.earlier_sums(now),
            left=ledger.left,
            told=self._told(ledger),
        )
        if before is not None:
            report = replace(
                report,
                summary=before.summary,
                moments=before.moments,
                counts=before.counts,
                earlier=before.earlier,
                as_of=before.as_of,
                synced=before.synced,
                lifetime=before.lifetime,
                left=before.left,
            )
        formed = upward.session.formed(report, self.plan.summaries)
        return self.plan.within_room(formed, ledger.schema)

    def take_model(self, model: Model) -> bool:
        """Take a model that is newer; return whether to send it down."""
        if model.schema != self.canonical:
            self.upward.session.rejoin()
            return False
        known = 0 if self.model is None else self.model.version
        if not known < model.version <= HIGHEST:
            return False
        before = None if self.model is None else self.model.told
        self.model = replace(model, told=most_told(model.told, before))
        return True

    @property
    def waiting(self) -> Waiting | None:
        """What a group whose model has learnt nothing waits for."""
        if self.model is not None and self.model.summary is not None:
            return None
        ledger, least = self.ledger, self.plan.min_rows
        rows = 0 if ledger is None else ledger.counts().learnt
        rows += 0 if ledger is None else self.histories.counts(ledger.fingerprint).learnt
        return Waiting("model", rows, least) if rows < least else None

    def make_model(self, now: Now) -> Model | None:
        """Return the root's rows as a model, if one is due."""
        ledger = self.ledger
        if ledger is None or not (self._stirred or self.holds_back):
            return None
        if self._begins and self._look_at <= now.steady:
            # Until then no node scores a row: this does not wait for the time of a model.
            self._look_at = now.steady + LOOK_EVERY_S
            self._settle(ledger)
            is_open = self.plan.is_open(self.canonical)
            if not is_open and self.waiting is None and of_root.begins_to_score(ledger):
                self._model_at = -math.inf
        if self._model_at > now.steady:
            return None
        if not self._stirred and not self._floor.allows(ledger, now):
            self._model_at = now.steady + self._settings.model_every_s
            return None  # what waits still does, and nothing is new
        self._settle(ledger)
        if self.plan.noise is not None:
            self._release(ledger, self.plan.noise, now)
        kept = self._kept(self.model, ledger, now)
        model = self._readable(Model, lambda: self._new_model(ledger, now, kept), now)
        self._stirred = False
        self._model_at = now.steady + self._settings.model_every_s
        if model is not None:
            self.model, self.version = model, model.version
            if model.summary is not None and not self.holds_back:
                self._floor.mark(ledger)
        return model

    def _new_model(self, ledger: Ledger, now: Now, before: Model | None) -> Model:
        """Return a model; its rows are those of the one `before`, if they are held back."""
        known = ledger, self.canonical, self._settings, now, self.plan, self.waiting is not None
        new = of_root.new_model(*known, last=self.version, rank=self.rank, before=self.model)
        if self.plan.noise is not None:
            return of_root.with_noise(new, self.published, self.plan.summaries, self.plan.noise)
        if before is None:
            return new
        return replace(new, summary=before.summary, factors=before.factors, counts=before.counts)

    def _told(self, ledger: Ledger) -> Told | None:
        """Return what was told, as this node's model says, and nodes below."""
        own = None if self.model is None else self.model.told
        return most_told(own, of_root.told_below(ledger))

    def _release(self, ledger: Ledger, noise: Noise, now: Now) -> None:
        """Release the sums of all rows, if that is due; say once if nothing is left to spend."""
        # By then those that know of later models have reported.
        self._since = now.steady if self._since is None else self._since
        heard = now.steady >= self._since + 3 * self._settings.report_every_s
        seen = None if self.waiting is not None else ledger.seen(now)
        if seen is None or not heard:
            return
        of, told, last = (ledger.fingerprint, ledger.left), self._told(ledger), self.published
        self.published = released(last, seen, of, self.plan.summaries, noise, told=told)
        goes_on = last is not None and last.goes_on(of, noise.rho, told)
        if self.published is last and not goes_on and not self._has_ended:
            self._has_ended = True
            facts = {"group": self.name, "todo": "docs/privacy.md"}
            self._rejections.append(Note("no more models: epsilon is spent", facts, "warning"))

    def _readable(self, kind: type[Said], make: Callable[[], Said], now: Now) -> Said | None:
        """Return a message that receivers can read; quarantine the nodes that prevent it."""
        found = self._check.made(make, self._leave_out, self.ledger)
        if found.why is not None:
            for node in found.culprits:
                self.quarantine.put_in_quarantine(node, "unreadable", now)
            self._leave_out()
            self._rejections.append(rejection_note(self.name, kind, found))
        made: Said | None = found.made
        return made

    def _settle(self, ledger: Ledger) -> None:
        """Settle what the schema leaves open, and the rank, once there are enough rows."""
        schema, self.rank = settle(self.plan, ledger, self.rank, self._settings.scaling_rows)
        if schema != ledger.schema:
            self._rejections += self.influence_notes()  # by moments that are gone then
            self.learn_schema(schema.canonical, 0.0)
            self.stir(now=True)  # the model's text is how nodes below hear of it

    @property
    def _begins(self) -> bool:
        """Whether the schema is open, or no model has learnt anything."""
        known = self.model is not None and self.model.summary is not None
        return not known or self.plan.is_open(self.canonical)


def answer_join(group: Group, join: Join, me: Incarnation, *, top: bool) -> Joined:
    """Answer a child that asks to join; `me`: the store's incarnation, `top`: of a root."""
    stamp, ledger, reason, floor = join.stamp, group.ledger, Reason.ACK, 0
    lines: tuple[str, ...] = ()
    newest = 0
    if ledger is None:
        reason = Reason.UNAVAILABLE
    else:
        member = ledger.member(stamp.node)
        row = ledger.rows.get((stamp.node, stamp.incarnation))
        newest, floor = 0 if row is None else row.report.stamp.seq, member.floor
        # A difference would name our channels to a banned node.
        banned = stamp.node in group.banned
        lines = () if banned else _objections(join.schema, group.canonical, ledger.schema)
        if banned:
            reason = Reason.BANNED
        elif ledger.member(stamp.node).closed_seq(stamp.incarnation) is not None:
            reason = Reason.STALE
        elif lines:
            reason = Reason.SCHEMA
        elif join.fence and not ledger.admit(
            stamp.node, stamp.incarnation, join.fence, join.past_fences
        ):
            reason = Reason.LINEAGE
    if reason is Reason.ACK and join.early and not join.fence:
        group.first_readings.note(stamp.node, stamp.incarnation, join.early)
    canonical = group.canonical if reason is Reason.ACK else b""
    pinned = None if reason is Reason.UNAVAILABLE else me
    stamp = stamp._replace(seq=newest)
    said = pinned, top, floor, canonical, lines
    return Joined(stamp, reason, join.fence, *said, whole_scatter=True)


def _objections(theirs: bytes, canonical: bytes, ours: Schema) -> tuple[str, ...]:
    if theirs in (b"", canonical):
        return ()
    try:
        return differences(ours, Schema.parse(theirs))
    except PeerError as error:
        return (str(error),)
