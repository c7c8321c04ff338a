"""run(): simulates one seed, from the first reading to the last check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import Flush
from submerge.protocol.messages import Counts
from submerge.schema import Schema
from submerge_lab.simulator.faults import Faults
from submerge_lab.simulator.feeds import Ids, Rows
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.injected_failures import HOUR, InjectedFailures
from submerge_lab.simulator.malicious import MaliciousNode
from submerge_lab.simulator.network import Wire
from submerge_lab.simulator.observer import Observers
from submerge_lab.simulator.operators import first_schema
from submerge_lab.simulator.oracles.alarm_oracle import AlarmOracle
from submerge_lab.simulator.oracles.audit import audit
from submerge_lab.simulator.oracles.history_oracle import HistoryOracle
from submerge_lab.simulator.oracles.incident_oracle import IncidentOracle
from submerge_lab.simulator.oracles.noise_oracle import NoiseOracle
from submerge_lab.simulator.oracles.oracle import Oracle
from submerge_lab.simulator.plan import Plan
from submerge_lab.simulator.transcript import Transcript

FLUSHED_S = 60.0
"""Time between the forced reports of one level and the next."""


@dataclass(frozen=True, slots=True, eq=False)
class SeedOutcome:
    """Result of one seed.

    violations : Invariant and description.
    generated, counted : Readings of all sensors; readings in the root's last model.
    coverage_said : Share of the readings it knows that the root says it counts; too high by those
        that were lost before a client could declare them.
    missing : Readings that are not counted, by cause; only with sample ids.
    settled_s : Time from healing to the root's last change; None with real subspaces.
    bytes_per_node_day : Size of a client's reports.
    staleness : (p50, p99, max) seconds, of the last model before healing
    angle : Degrees between model and pooled truth, of features where the plan has any; None with
        sample ids, and where readings fade, because the pooled truth weighs all alike.
    trace : Hash of everything that was delivered.
    forged : Messages of a malicious node, by what became of them.
    transcript : Events up to the first violation.
    """

    seed: int
    faults: Faults
    violations: list[tuple[str, str]]
    generated: int
    counted: int
    coverage_said: float | None
    missing: dict[str, int]
    settled_s: float | None
    bytes_per_node_day: float
    largest_report: int
    staleness: tuple[float, float, float]
    angle: float | None
    trace: str
    forged: dict[str, int]
    transcript: list[str] | None


def run(
    plan: Plan,
    seed: int,
    *,
    client: type[ClientNode] = ClientNode,
    aggregator: type[AggregatorNode] = AggregatorNode,
    fleet_type: Callable[..., SimulatedFleet] = SimulatedFleet,
    transcript: int = 0,
    wire: Wire | None = None,
    progress: Callable[[float], None] | None = None,
) -> SeedOutcome:
    """Run one seed; tests put mutants in place of the nodes, and jobs beside the fleet."""
    # A transcript of 0 lines is faster. Beside a malicious node, what it and aggregators send has
    # to have bytes (I10).
    rng = np.random.Generator(np.random.PCG64(seed))
    faults = plan.draw_faults(rng)
    feed = _feed(plan, rng, faults)
    fleet = fleet_type(plan, faults, rng, feed, client=client, aggregator=aggregator)
    fleet.transcript = Transcript(transcript) if transcript else None
    oracle, others = observed(fleet, feed, wire)
    failures = begun(fleet, rng)
    healed = plan.hours * HOUR
    fleet.run_until(healed, rest=progress)
    model = fleet.root_model
    per_node_day = fleet.bytes_up / plan.nodes / (plan.hours / 24)
    failures.heal()
    fleet.run_until(healed + plan.settles_in_s, rest=progress)
    settled, counted = (oracle.counted_at, oracle.counted) if oracle else (0.0, 0)
    if plan.floors:
        flush(fleet, progress)  # of what waits, some clients hear only now that they are refused
    version = flush(fleet, progress)
    # Two processes of one incarnation take turns: either's report replaces the other's.
    on_time = oracle is None or not (oracle.counted ^ counted) & ~oracle.of_twins
    missing = {} if oracle is None else oracle.conclude(settled=on_time, version=version)
    violations = audit(fleet, version) if oracle is None else oracle.violations
    return SeedOutcome(
        *(seed, faults),
        violations + other_violations(fleet, others),
        feed.generated,
        _counted(fleet, oracle),
        coverage(fleet),
        missing,
        None if oracle is None else max(0.0, settled - healed),
        per_node_day,
        fleet.largest,
        (0.0, 0.0, 0.0) if model is None else model.staleness,
        _angle(fleet, feed, failures),
        fleet.trace.hexdigest(),
        {} if fleet.malicious is None else dict(fleet.malicious.sent),
        None if fleet.transcript is None else list(fleet.transcript.lines),
    )


Others = list[AlarmOracle | HistoryOracle | IncidentOracle | NoiseOracle]


def observed(
    fleet: SimulatedFleet, feed: Ids | Rows, wire: Wire | None
) -> tuple[Oracle | None, Others]:
    """Return the oracles that observe a fleet; its malicious node is there from now on, too."""
    faults = fleet.faults
    oracle = Oracle(fleet, feed) if isinstance(feed, Ids) else None
    others: Others = []
    if faults.alarms or faults.orders:
        others.append(AlarmOracle(fleet))
    if fleet.plan.incidents:
        others.append(IncidentOracle(fleet))
    if fleet.noise is not None:
        others.append(NoiseOracle(fleet, fleet.noise))
    if faults.histories:
        others.append(HistoryOracle(fleet, feed))
    fleet.observer = Observers(*([] if oracle is None else [oracle]), *others)
    if faults.malicious:
        fleet.wire, fleet.malicious = wire, MaliciousNode(fleet, wire)
    return oracle, others


def other_violations(fleet: SimulatedFleet, others: Others) -> list[tuple[str, str]]:
    """Return the violations that do not depend on the kind of readings."""
    found = [violation for oracle in others for violation in oracle.conclude()]
    found += [("I5", fleet.storm)] if fleet.storm else []
    return found + ([("I10", fleet.undecodable)] if fleet.undecodable else [])


def coverage(fleet: SimulatedFleet) -> float | None:
    """Return the share of known readings that the root says it counts."""
    ledger = fleet.root_ledger
    counts = Counts() if ledger is None else ledger.counts()
    return counts.learnt / counts.generated if counts.generated else None


def _counted(fleet: SimulatedFleet, oracle: Oracle | None) -> int:
    """Return the readings in the root's rows, without forged ones where there may be any."""
    if oracle is not None and fleet.malicious is not None:
        return oracle.counted.bit_count()
    return 0 if fleet.root_ledger is None else fleet.root_ledger.counts().learnt


def _feed(plan: Plan, rng: np.random.Generator, faults: Faults) -> Ids | Rows:
    """Return the feed of a plan: rows, or sample ids where no dimension is given."""
    if not plan.dim:
        if plan.noise:
            return Ids(Schema(1, clip=1.0))
        return Ids(first_schema() if faults.channels else None)
    sizes = plan.dim, plan.rank, plan.oversample
    own = plan.own_ranks
    return Rows(*sizes, rng, plan.half_life_s, plan.features, own_ranks=own)


def begun(fleet: SimulatedFleet, rng: np.random.Generator) -> InjectedFailures:
    """Draw the failures; switch machines on over a minute, parents and children in any order."""
    failures = InjectedFailures(fleet)
    for host in fleet.hosts:
        late = HOUR if rng.random() < fleet.faults.late else 0.0
        fleet.at((60.0 + late) * rng.random(), fleet.start, host)
    return failures


def flush(fleet: SimulatedFleet, progress: Callable[[float], None] | None) -> int:
    """Make every level report; return the version of the resulting model."""
    for hosts in fleet.levels:
        for host in hosts:
            fleet.step(host, Flush())
        fleet.run_until(fleet.time + FLUSHED_S, rest=progress)
    # The current model has time to reach every node; a newer one need not.
    version = 0 if fleet.root_model is None else fleet.root_model.version
    fleet.run_until(fleet.time + 2 * FLUSHED_S, rest=progress)
    return version


def _angle(fleet: SimulatedFleet, feed: Ids | Rows, failures: InjectedFailures) -> float | None:
    model, fades = fleet.root_model, fleet.plan.half_life_s is not None
    if isinstance(feed, Ids) or model is None or model.summary is None or fades:
        return None
    return feed.angle(model.summary, Schema.parse(model.schema), failures.operator.rows_held())
