"""LeafAudit: whether each reading of each client counts exactly once, by counting per client.

An incarnation reports a state: the first n of its readings. So a count says which readings a row
holds, and what can be checked of ids (`oracle`) is checked of counts here, client by client.

I1  No aggregator reports more, or another weight, than its rows say; the rows of a client never
    hold more readings than it has taken.
I2  The root's count never falls, unless a store was harmed, or a client forgotten.
I3  After healing the root counts everything within `Plan.settles_in_s`. (Same rows, same bytes:
    `audit`.)
I4  At the end the rows of each client hold all of its readings, but for those that it has lost with
    a process, which are counted when it dies, or declared.
I5  Rows and closed incarnations stay within their limits (`at_rest`).
I6  A message that is refused changes no row.
I7  A client's model never gets older.
I8  No store is given up, unless a disk was harmed.
I9  No client is quarantined: all of them are honest, and none is copied with its memory.

The invariants I10 to I12 are checked by others, where there is what they are about.
"""

from __future__ import annotations

from collections import Counter

from submerge.aggregator.node import AggregatorNode
from submerge.client.incarnation import Checkpoint
from submerge.client.node import ClientNode
from submerge.client.pending_finals import CHECKPOINT
from submerge.protocol.machine import Effect, Event, Keep, Note, Received, Records, Send
from submerge.protocol.messages import ANOTHER, Answer, Reason, Report
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.large.fleet import LargeFleet, LeafHost
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.observer import FleetObserver
from submerge_lab.simulator.oracles.at_rest import row_limits
from submerge_lab.simulator.oracles.audit import ROUNDING
from submerge_lab.simulator.oracles.oracle import SUSPECT

CONTRADICTED = {Reason.EQUIVOCATION, Reason.SHRUNK}


class LeafAudit(FleetObserver):
    """Follows the counts of a large fleet.

    Attributes
    ----------
    violations : list of (str, str)
        Invariant and description, the first of each kind.
    counted : int
        Readings in the root's rows.
    counted_at : float
        Time of its last change.
    excused : Counter of str
        Readings that a client may have lost, by the client's name.
    """

    def __init__(self, fleet: LargeFleet) -> None:
        self._fleet = fleet
        self.violations: list[tuple[str, str]] = []
        self.counted, self.counted_at = 0, 0.0
        self.excused: Counter[str] = Counter()
        self._harmed: set[str] = set()
        self._forgotten = False
        self._versions: dict[tuple[int, int], int] = {}
        self._taken: Counter[str] = Counter()

    # -- during the run --------------------------------------------------------

    def on_step(self, host: Host, event: Event, effects: list[Effect]) -> None:
        """Check a decision before it is performed."""
        node = host.node
        if isinstance(node, ClientNode):
            self._check_client(host, node, effects)
        elif isinstance(node, AggregatorNode):
            self._check_aggregator(host, node, event, effects)

    def _check_client(self, host: Host, node: ClientNode, effects: list[Effect]) -> None:
        key, version = (host.number, host.process), node.fleet.version
        if version < self._versions.get(key, 0):
            self.record("I7", f"{host} went back to an older model")
        self._versions[key] = version
        for effect in effects:
            if isinstance(effect, Note) and effect.what == "lost":
                self.excused[host.name] += int(effect.facts["readings"])

    def _check_aggregator(
        self, host: Host, node: AggregatorNode, event: Event, effects: list[Effect]
    ) -> None:
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Report):
                self._check_sum(host, node, effect.message)
            elif isinstance(effect, Note) and effect.what == "new store":
                why = effect.facts["why"]
                if why in (ANOTHER, *SUSPECT) and not self._harmed:
                    self.record("I8", f"{host} gives up a sound store: {why}")
        if not isinstance(event, Received) or not isinstance(event.message, Report):
            return
        sent = (each.message for each in effects if isinstance(each, Send))
        reasons = {each.reason for each in sent if isinstance(each, Answer)}
        if reasons & CONTRADICTED and event.message.stamp.node not in self._harmed:
            self.record("I9", f"{host} contradicts {event.message.stamp.node}: {reasons}")
        kept = (key for each in effects if isinstance(each, Keep) for key in each.records)
        if reasons - {Reason.ACK} and any(key[0] in ("row", "sealed") for key in kept):
            self.record("I6", f"{host} refuses a report and changes its rows")

    def _check_sum(self, host: Host, node: AggregatorNode, report: Report) -> None:
        """Check that a report weighs what it counts: no row is in it twice."""
        learnt = report.counts.learnt
        if learnt > self._fleet.feed.generated:
            self.record("I1", f"{host} reports {learnt} readings, more than there were")
        weight = 0.0 if report.summary is None else report.summary.weight
        if not self._fleet.robust and abs(weight - learnt) > ROUNDING * learnt:
            self.record("I1", f"{host} reports {learnt} readings that weigh {weight}")

    def on_write(self, host: Host) -> None:
        """Check the root after each write."""
        if host is not self._fleet.root:
            return
        ledger = self._fleet.root_ledger
        counted = 0 if ledger is None else ledger.counts().learnt
        if counted > self._fleet.feed.generated:
            self.record("I1", f"the root counts {counted} readings, more than there were")
        may_fall = self._harmed or self._forgotten or self._fleet.robust
        if counted < self.counted and not may_fall:
            self.record("I2", f"the root has lost {self.counted - counted} readings")
        if counted != self.counted:
            self.counted, self.counted_at = counted, self._fleet.time

    def on_death(self, host: Host) -> None:
        """Excuse readings of a client that are neither on its card nor confirmed."""
        node = host.node
        if isinstance(node, ClientNode):
            self.excused[host.name] += _at_risk(node, host.records)

    def on_disk_change(self, host: Host, before: Records, after: Records, why: str) -> None:
        """Note a disk that was replaced."""
        self._harmed.add(host.name)

    def on_clone(self, host: Host) -> None:
        """Note a copied disk."""
        self._harmed.add(host.name)

    def on_move(self, host: Host) -> None:
        """Note a node with another parent: its former one goes on counting what it has."""
        self._harmed.add(host.name)

    def on_forget(self, node: str) -> None:
        """Note that an operator has removed rows."""
        self._forgotten = True

    def record(self, invariant: str, what: str) -> None:
        """Record a violation, if it is the first of its kind."""
        if all(invariant != known for known, _ in self.violations):
            self._fleet.log(self._fleet.root, f"!! {invariant}: {what}")
            if self._fleet.transcript is not None:
                self._fleet.transcript.close()
            self.violations.append((invariant, f"at {self._fleet.time:.0f} s: {what}"))

    # -- at the end ------------------------------------------------------------

    def conclude(self, *, settled: bool) -> list[tuple[str, str]]:
        """Check all rows at rest; return all violations.

        settled : whether the root has counted everything in time
        """
        if not settled:
            self.record("I3", "the root has not counted everything in time")
        held = self._held()
        for host in self._fleet.hosts:
            if isinstance(host, LeafHost):
                self._taken[host.name] += self._fleet.taken_by(host)
        # What a harmed store knew, or which of two processes it believed, is not followed.
        sound = not (self._harmed or self._forgotten)
        for name, taken in self._taken.items():
            missing = taken - held[name]
            if missing < 0 and sound:
                self.record("I1", f"the rows of {name} hold {-missing} readings too many")
            if missing > self.excused[name] and sound:
                self.record("I4", f"{name} misses {missing} readings without a cause")
        return list(self.violations)

    def _held(self) -> Counter[str]:
        """Return how many readings the rows of each client hold, at the first aggregators."""
        held: Counter[str] = Counter()
        for host in self._fleet.levels[1]:
            node = host.node
            ledger = node.ledger(GROUP) if isinstance(node, AggregatorNode) else None
            if ledger is None:
                self.record("I3", f"{host} has no group at the end")
                continue
            for invariant, what in row_limits(host, ledger, 1):
                self.record(invariant, what)
            for (name, _), row in ledger.rows.items():
                held[name] += row.report.counts.learnt
            for (name, _), sealed in ledger.sealed.items():
                held[name] += sealed.counts.learnt
        return held


def _at_risk(node: ClientNode, records: Records) -> int:
    """Return the readings that a client loses if it dies now."""
    current = node.current
    card: Checkpoint | None = records.get(CHECKPOINT)
    kept = 0
    if (
        card is not None
        and card.pin is not None
        and card.report.stamp.incarnation == current.incarnation
    ):
        kept = card.report.counts.learnt
    # A report that is on its way when its sender dies may yet arrive.
    return max(0, current.counts.learnt - max(kept, current.held))
