"""Oracle: knows where every reading is, and records which invariants a fleet violates.

Invariants (docs/protocol.md):

I1  No reading is counted twice.
I2  The root keeps counting what it has counted, except after a restored root or a forgotten node.
I3  After healing the root counts everything within `Plan.settles_in_s`; the same rows give
    the same bytes.
I4  Every reading is counted, or its loss has a cause and is within what that cause may cost.
I5  Rows, closed incarnations, fences and waiting finals stay within their limits, and so do
    the messages of a minute.
I6  A message that is refused changes no row.
I7  A model's version never falls, and the newest reaches every node.
I8  A store is given up only for another parent, or when its disk was copied or restored.
I9  A client that contradicts itself is quarantined, and no client whose memory was not copied is.
I10  What an aggregator sends can be decoded (`fleet`; only beside a malicious node).
I11  The root knows each alarm of a client as it is, and orders arrive (`alarm_oracle`).
I12  Each row of a history counts once at the root, until it is forgotten (`history_oracle`).
I13  People hear once of each alarm and incident, and once of its end (`incident_oracle`).
I14  Models with noise tell of each reading no more than they say (`noise_oracle`).

What a malicious node claims is no reading: its ids are in no check but those of I3, I5, I6 and I9.

`SchemaCheck` follows the schemas of aggregators: where channels have names, rows of every schema
count. While new ones are measured, the root has no model, and an aggregator below it reports its
sums under an earlier schema: what the root counted before, it counts at once when the scale is
settled. `QuarantineCheck` is I9.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Set
from functools import reduce
from operator import or_

from submerge.aggregator.node import STORE, AggregatorNode, StoreIdentity
from submerge.aggregator.operators.quarantine import AGAIN_S
from submerge.aggregator.rows.ledger import Ledger
from submerge.client.incarnation import Checkpoint
from submerge.client.node import ClientNode
from submerge.client.pending_finals import CHECKPOINT, PAST, Past
from submerge.protocol.machine import Effect, Event, Keep, Note, Received, Records, Send
from submerge.protocol.messages import ANOTHER, BEHIND, Answer, Incarnation, Reason, Report
from submerge.protocol.report_bytes import digest
from submerge.protocol.summaries import Summaries
from submerge_lab.simulator.feeds import Ids
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.network import NAME
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.observer import FleetObserver
from submerge_lab.simulator.oracles.at_rest import (
    MeasuredIds,
    bits_in,
    bits_under,
    family_in,
    fingerprint_in,
    held_by,
    kept_by,
    left_out,
    violations_at_rest,
    waiting_in,
)
from submerge_lab.simulator.samples import bits_of


class SchemaCheck:
    """Follows the schemas in the stores of a fleet."""

    def __init__(
        self, fleet: SimulatedFleet, feed: Ids, record: Callable[[str, str], None]
    ) -> None:
        self._fleet, self._feed, self._record = fleet, feed, record
        self._of: dict[Host, str] = {}
        self.seen = {feed.schema.fingerprint}

    @property
    def _change(self) -> bool:
        """Whether channels that come are measured."""
        return self._fleet.plan.learns_scaling and self._fleet.suffered.channels > 0

    def are_measured(self, ledger: Ledger) -> bool:
        """Return whether the root has no model for now: its channels are new."""
        return self._change and ledger.schema.scaling is None

    @property
    def in_stores(self) -> int:
        """The ids in all aggregators' rows, as bits."""
        above = (host for host in self._fleet.hosts if host.level)
        return reduce(or_, (bits_in(host.records) for host in above), 0)

    def kept_at(self, root: Host) -> int:
        """Return the ids in the root's rows, as bits; 0 where it never has to measure channels."""
        return bits_in(root.records) if self._change else 0

    def on_the_way(self, lost: Iterable[int], tampered: Set[str]) -> int:
        """Return the ids that come up again, or would without a loss."""
        # Only where a parent of aggregators has an older disk, or a new one: it may not know a
        # schema that was settled since, and takes no sums under it. What a `lost` store alone has
        # is lost above it, too.
        parents = {host.name for hosts in self._fleet.levels[2:] for host in hosts}
        if not self._change or not parents & tampered:
            return 0
        return reduce(or_, lost, self.in_stores)

    def check(self, host: Host, tampered: Set[str]) -> int:
        """Check that only a harmed store gives a settled scaling up; return ids that it costs."""
        plan, faults = self._fleet.plan, self._fleet.suffered
        now = fingerprint_in(host.records)
        if not (plan.learns_scaling or faults.channels) or not now:
            return 0
        if not isinstance(host.node, AggregatorNode):
            return 0
        before, bits = self._of.setdefault(host, now), 0
        if before != now:
            self._of[host] = now
            if family_in(host.records) == now:  # no row of another one counts
                bits = bits_under(before, host.records) & ~self._feed.forged
            if bits and not tampered:
                self._record("I2", f"{host} gives up a scaling that the fleet has settled")
        self.seen.add(now)
        return bits


class QuarantineCheck:
    """Follows the contradictions of clients at each aggregator."""

    def __init__(self, summaries: Summaries, record: Callable[[str, str], None]) -> None:
        self._summaries, self._record = summaries, record
        self._slips: dict[tuple[int, int, str], tuple[float, bytes]] = {}

    def check(
        self,
        host: Host,
        report: Report,
        reasons: Container[Reason],
        twins: Container[str],
        time: float,
    ) -> None:
        """Check what a host has made of a report."""
        if not isinstance(host.node, AggregatorNode):
            return
        name, quarantined = report.stamp.node, host.node.excluded(GROUP)[1]
        for other in quarantined:
            if other not in twins and other != NAME:
                self._record("I9", f"{host} quarantines {other}, which has no double")
        guilty = Reason.SHRUNK in reasons
        if Reason.EQUIVOCATION in reasons:
            # Per process: the record of the first report may be lost with its process.
            place = host.number, host.process, name
            content = digest(report, self._summaries)
            at, before = self._slips.get(place, (-math.inf, b""))
            if time - at > AGAIN_S:
                self._slips[place] = time, content
            else:
                guilty = guilty or before != content
        if guilty and not report.fence and name not in quarantined:
            self._record("I9", f"{host} counts {name}, which contradicts itself")


REFUSED = ("stale", "shrunk", "equivocation", "fenced", "invalid", "schema", "banned")
"""Answers that a client gets only if its card was copied or restored, or it was forgotten."""

SUSPECT = (BEHIND, "lineage", "equivocation")
"""Reasons to give a store up that only an old or a copied disk can cause."""


class Oracle(FleetObserver):
    """Checks a fleet of sample ids; `excused`: ids that may be missing, by cause, as bits."""

    def __init__(self, fleet: SimulatedFleet, feed: Ids) -> None:
        self._fleet, self._feed = fleet, feed
        self.violations: list[tuple[str, str]] = []
        self.excused: dict[str, int] = defaultdict(int)
        self.counted_at = 0.0
        self.counted = 0
        self._confirmed: dict[Incarnation, int] = {}
        self._tampered: set[str] = set()
        self._touched: set[str] = set()
        self._pinned_at: dict[Incarnation, float] = {}
        self._failed_at: dict[str, float] = {}
        self._twins: set[str] = set()
        self._copied_early = 0
        self._far = 0  # that were ever left out as outliers
        self._quarantine = QuarantineCheck(feed.summaries, self.record)
        self._sent: dict[tuple[Incarnation, int], int] = {}
        self._versions: dict[str, int] = {}
        self._measured = MeasuredIds()
        self._waited: dict[Host, int] = {}  # ids after a client's last step
        self._schemas = SchemaCheck(fleet, feed, self.record)

    def record(self, invariant: str, what: str) -> None:
        """Record a violation, if it is the first of its kind."""
        if all(invariant != known for known, _ in self.violations):
            self._fleet.log(self._fleet.root, f"!! {invariant}: {what}")
            if self._fleet.transcript is not None:
                self._fleet.transcript.close()
            self.violations.append((invariant, f"at {self._fleet.time:.0f} s: {what}"))

    # -- during the run --------------------------------------------------------

    def on_step(self, host: Host, event: Event, effects: list[Effect]) -> None:
        """Check a decision before it is performed."""
        node = host.node
        doubled = self._feed.summaries.doubled & ~self._feed.forged & ~self._copied_early
        if doubled:
            self.record("I1", f"{host} counts {self._readings(doubled)} twice")
        if isinstance(node, ClientNode):
            self._measured.note(node, event)
            for effect in effects:
                if isinstance(effect, Note) and effect.what == "lost":
                    self._check_loss(host, effect)
                elif isinstance(effect, Note) and effect.what == "waiting readings lost":
                    self._check_few(host, effect.facts["readings"])
            if self._fleet.plan.floors:
                self._waited[host] = waiting_in(node)
            self._check_durable(host, node, effects)
            shown = node.current.shown
            if node.current.pin is not None:
                self._pinned_at.setdefault(node.current.incarnation, self._fleet.time)
            if shown is not None:
                self._confirmed[node.current.incarnation] = bits_of(shown)
            self._check_version(host, 0 if node.model is None else node.model.version)
            return
        for effect in effects:
            if isinstance(effect, Note) and effect.what == "new store":
                self._give_up(host, bits_in(host.records), "store given up")
                self._check_renewal(host, effect.facts["why"])
        refused = False
        if isinstance(event, Received) and isinstance(event.message, Report):
            messages = [effect.message for effect in effects if isinstance(effect, Send)]
            reasons = {each.reason for each in messages if isinstance(each, Answer)}
            refused = bool(reasons - {Reason.ACK})
            self._quarantine.check(host, event.message, reasons, self._twins, self._fleet.time)
        kept = [key for effect in effects if isinstance(effect, Keep) for key in effect.records]
        if refused and any(key[0] in ("row", "sealed") for key in kept):
            self.record("I6", f"{host} refuses a report and changes its rows")

    def _check_durable(self, host: Host, node: ClientNode, effects: list[Effect]) -> None:
        """Check that the root has what a client believes to be there."""
        current, root = node.current, self._fleet.root
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Report):
                report = effect.message
                self._sent[report.stamp.incarnation, report.stamp.seq] = bits_of(report.summary)
        store: StoreIdentity | None = root.records.get(STORE)
        if store is None or current.root != store.incarnation or root.name in self._tampered:
            return
        sent = self._sent.get((current.incarnation, current.durable), 0)
        missing = sent & ~self.counted & ~self._may_leave
        # While channels are measured it merges nothing, and has rows all the same.
        if missing and missing & ~self._schemas.kept_at(root) & ~self._on_the_way:
            self.record("I2", f"{host} believes that the root holds what it does not")

    def _check_renewal(self, host: Host, why: str) -> None:
        """Check that a store is given up only for a lost parent or its own disk."""
        store: StoreIdentity | None = host.records.get(STORE)
        pinned = None if store is None or store.pin is None else store.pin.incarnation
        if host.name not in self._tampered and (
            why in SUSPECT or (why == ANOTHER and self._still_there(host, pinned))
        ):
            self.record("I8", f"{host} gives up a sound store: {why}")

    def _still_there(self, host: Host, pinned: Incarnation | None) -> bool:
        """Return whether a host's parent is still the one it was pinned to, without a double."""
        stores = [
            twin.records.get(STORE) for twin in self._fleet.network.hosts.get(str(host.parent), ())
        ]
        same = all(store is not None and store.incarnation == pinned for store in stores)
        return same and host.parent not in self._tampered and bool(stores)

    def _check_version(self, host: Host, version: int) -> None:
        key = f"{host.number}.{host.process}"
        if version < self._versions.get(key, 0):
            self.record("I7", f"{host} went back to an older model")
        self._versions[key] = version

    def on_write(self, host: Host) -> None:
        """Check the root after each write."""
        if self._fleet.robust and isinstance(host.node, AggregatorNode):
            far = left_out(host.node)
            for name in far:
                self._far |= self._feed.given.get(name, 0)
            # An aggregator's row has the readings of clients.
            self._far |= bits_in(host.records, only=far) if far else 0
        self.excused["of an earlier scaling"] |= self._schemas.check(host, self._tampered)
        if host is not self._fleet.root:
            return
        ledger = self._fleet.root_ledger
        if ledger is not None and self._schemas.are_measured(ledger):
            return  # it has no model until new channels are measured, and keeps its rows
        counted = bits_of(None if ledger is None else ledger.summary()) & ~self._feed.foreign
        gone = self.counted & ~counted & ~self._may_leave
        if gone and gone & ~self._on_the_way:
            self.record("I2", f"the root has lost {self._readings(gone)}")
        if counted != self.counted:
            self.counted, self.counted_at = counted, self._fleet.time

    def _check_loss(self, host: Host, note: Note) -> None:
        """Check what a client gives up against what it declares."""
        report: Report = note.facts["report"]
        if host.name in self._twins:
            return  # the two processes take each other's answers for their own
        bits = self._measured.of(report)
        bits &= ~self._confirmed.get(report.stamp.incarnation, 0)
        if bits.bit_count() > note.facts["readings"]:
            self.record("I4", f"{host} declares fewer readings lost than it gives up")
        if note.facts["why"] == "kept before a join" and report.pinned.created_ms:
            self.record("I4", f"{host} gives up what its parent could still take")
        if note.facts["why"] == ANOTHER and self._still_there(host, report.pinned):
            self.record("I4", f"{host} gives up what its parent could still take")
        # A store from before the scaling was settled refuses what was learnt in it, and a root
        # that has lost it settles another.
        above = {each.name for hosts in self._fleet.levels[1:] for each in hosts}
        lost_scaling = note.facts["why"] == "schema" and bool(above & self._tampered)
        refused = note.facts["why"] in REFUSED and not lost_scaling
        if refused and bits and host.name not in self._touched:
            self.record("I4", f"{host} is refused: {note.facts['why']}")
        self.excused[f"declared: {note.facts['why']}"] |= bits

    def _check_few(self, host: Host, readings: int) -> None:
        """Excuse what waited until now, too little to be learnt with its incarnation."""
        bits = self._waited.get(host, 0)
        if bits.bit_count() > readings and host.name not in self._twins:
            self.record("I4", f"{host} declares fewer readings lost than waited")
        self.excused["too few to be told"] |= bits

    def on_death(self, host: Host) -> None:
        """Excuse what is lost with a client: readings neither on its card nor confirmed."""
        node = host.node
        if not isinstance(node, ClientNode) or host.name in self._twins:
            return
        bits = held_by(node, host.now(self._fleet.time))
        bits &= ~self._confirmed.get(node.current.incarnation, 0)
        bits &= ~self._on_card(host.records)
        self._check_cost(host, node, bits)
        cause = "not kept yet" if node.current.pin is not None else "never joined"
        self.excused[f"killed: {cause}"] |= bits

    def on_failed_write(self, host: Host) -> None:
        """Note the time: this write's content is at risk until the next."""
        self._failed_at[host.name] = self._fleet.time

    def _check_cost(self, host: Host, node: ClientNode, bits: int) -> None:
        """Check that a crash costs only readings since a recent checkpoint."""
        current, every = node.current, node.settings.checkpoint_every_s
        # Checkpoints count from here on: those of a pinned incarnation, written without failure.
        sound = max(
            self._pinned_at.get(current.incarnation, self._fleet.time),
            self._failed_at.get(host.name, -every),
        )
        earliest = max(self._fleet.time - every, min(sound + every, self._fleet.time)) - every
        # A row may wait for as many others before it is learnt.
        earliest -= 2 * (node.settings.together - 1) * self._fleet.plan.reading_every_s
        # To rounding: a client may die in the very step that writes the checkpoint that is due.
        if bits and sound + every < self._fleet.time - 1e-6:
            oldest = self._feed.read_at[(bits & -bits).bit_length() - 1]
            if oldest < earliest:
                age = self._fleet.time - oldest
                self.record("I4", f"{host} dies and loses readings of {age:.0f} s ago")

    def on_disk_change(self, host: Host, before: Records, after: Records, why: str) -> None:
        """Excuse what was on a replaced disk and nowhere else."""
        self._tampered.add(host.name)
        self._touched.add(host.name)
        if host.level == 0:
            self.excused[why] |= self._on_card(before) & ~self._on_card(after)
        elif host is self._fleet.root:
            left = bits_in(after)
            # Also what was far from the others then, and did not count.
            self.excused[why] |= (self.counted | bits_in(before)) & ~left
            self.counted &= left
        else:
            gone = bits_in(before) & ~bits_in(after)
            for twin in self._fleet.network.hosts[host.name]:
                if twin is not host:
                    gone &= ~bits_in(twin.records)
            self._give_up(host, gone, why)

    def on_clone(self, host: Host) -> None:
        """Note the clone: either of two processes on one disk's copies may be refused."""
        self._tampered.add(host.name)
        self._touched.add(host.name)

    def on_double(self, host: Host) -> None:
        """Note the twins: the row of their incarnation is that of either process."""
        self._touched.add(host.name)
        self._twins.add(host.name)
        node = host.node
        if isinstance(node, ClientNode) and node.current.pin is None:
            # No name can tell what both memories hold: docs/protocol.md states this exception.
            self._copied_early |= held_by(node, host.now(self._fleet.time))

    @property
    def _may_leave(self) -> int:
        """Readings that the root may stop counting."""
        gone = self.excused["forgotten"] | self.excused["of an earlier scaling"]
        return gone | self.of_twins | self._far

    @property
    def _on_the_way(self) -> int:
        """Readings that the root may miss for now, or with a store that is lost meanwhile."""
        lost = (bits for why, bits in self.excused.items() if why.startswith(("store", "clone")))
        return self._schemas.on_the_way(lost, self._tampered)

    @property
    def of_twins(self) -> int:
        """Readings of nodes of which two processes run, or have run, as one incarnation."""
        return sum(self._feed.given.get(name, 0) for name in self._twins)

    def on_forget(self, node: str) -> None:
        """Excuse a forgotten node's readings."""
        self._touched.add(node)
        self.excused["forgotten"] |= self._feed.given.get(node, 0)

    def _give_up(self, host: Host, bits: int, why: str) -> None:
        """Excuse an aggregator's lost rows, except what is known above it."""
        # Its last report, which may still be on its way, need not have what was far then.
        far = bits & self._far
        for level in self._fleet.levels[host.level + 1 :]:
            for above in level:
                for twin in self._fleet.network.hosts[above.name]:
                    bits &= ~bits_in(twin.records)
        self.excused[why] |= bits | far

    def _on_card(self, records: Records) -> int:
        """Return unconfirmed readings that a client's disk can restore."""
        past: Past = records.get(PAST, Past())
        kept: list[Checkpoint] = list(past.finals)
        last: Checkpoint | None = records.get(CHECKPOINT)
        if last is not None and last.pin is not None:
            kept.append(last)
        bits = 0
        for checkpoint in kept:
            report = checkpoint.report
            known = self._confirmed.get(report.stamp.incarnation, 0)
            bits |= kept_by(checkpoint) & ~known
        return bits

    # -- at the end ------------------------------------------------------------

    def conclude(self, *, settled: bool, version: int) -> dict[str, int]:
        """Check the fleet at rest; return missing readings by cause."""
        # `settled` says whether the root counted everything in time, before the forced reports.
        fleet = self._fleet
        if not (settled or fleet.plan.floors):
            allowed = fleet.plan.settles_in_s
            self.record("I3", f"the root does not count everything {allowed:.0f} s after healing")
        missing = sum(self._feed.given.values()) & ~self.counted
        causes: dict[str, int] = {}
        for host in fleet.hosts if fleet.robust else ():
            if isinstance(host.node, AggregatorNode):
                ledger = host.node.ledger(GROUP)
                far = () if ledger is None else ledger.outliers()
                self.excused["far from the others"] |= bits_in(host.records, only=far)
        if missing & ~self.excused["far from the others"] and fleet.suffered.network_only:
            self.record("I4", f"{missing.bit_count()} readings are missing, for messages alone")
        for host in fleet.hosts:
            if isinstance(host.node, AggregatorNode):
                quarantined = host.node.excluded(GROUP)[1]
                self.excused["quarantined"] |= (
                    bits_in(host.records, only=quarantined) & self.of_twins
                )
        self.excused["an incarnation on two machines"] |= self.of_twins
        for host in fleet.hosts:
            if isinstance(host.node, ClientNode):
                self.excused["too few to be told"] |= waiting_in(host.node)
        root = fleet.root_ledger
        if root is not None and fleet.plan.learns_scaling and root.schema.scaling is None:
            self.excused["the scaling is open"] |= self._schemas.in_stores
            for host in fleet.hosts:
                if isinstance(host.node, ClientNode):
                    self.excused["the scaling is open"] |= held_by(host.node, host.now(fleet.time))
        self._check_declared(missing)
        for cause, bits in self.excused.items():
            if missing & bits:
                causes[cause] = (missing & bits).bit_count()
                missing &= ~bits
        if missing:
            self.record("I4", f"{self._readings(missing)} are missing without a cause")
        model = fleet.root_model
        for host in fleet.hosts:
            learns = fleet.plan.learns_scaling
            found = violations_at_rest(host, len(self._schemas.seen), learns_scaling=learns)
            for invariant, what in found:
                self.record(invariant, what)
            if isinstance(host.node, ClientNode) and model is not None:
                known = 0 if host.node.model is None else host.node.model.version
                if not host.node.all_delivered and host.name not in self._twins:
                    self.record("I3", f"{host} still waits for an acknowledgement")
                if known < version:
                    self.record("I7", f"{host} stays at an older model")
        return causes

    def _check_declared(self, missing: int) -> None:
        """Check that the root knows all losses that clients have declared."""
        # With disks that fail, a declaration itself may be lost.
        fleet, ledger = self._fleet, self._fleet.root_ledger
        if ledger is None or fleet.suffered.harms_disks or self._twins or fleet.malicious:
            return
        declared = others = 0
        for cause, bits in self.excused.items():
            if cause.startswith("declared: "):
                declared |= bits
            else:
                others |= bits
        known, least = ledger.counts().lost, (missing & declared & ~others).bit_count()
        if known < least:
            self.record("I4", f"{known} readings are known as lost, {least} were declared")

    def _readings(self, ids: int) -> str:
        """Return how many readings these are, and of which nodes."""
        names = sorted(name for name, bits in self._feed.given.items() if bits & ids)
        return f"{ids.bit_count()} readings of {', '.join(names[:3]) or 'files'}"
