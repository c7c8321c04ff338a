"""audit(): what can be checked of real subspaces, where no oracle knows each reading.

I3  A node that restarts from what it kept says the same, to the byte.
I7  Everybody ends with the newest model, of one schema.
I4  No more readings are counted than there were; all of them, if only messages suffered.
"""

from __future__ import annotations

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.simulate.fleet import GROUP, SimulatedFleet
from submerge.simulate.hosts import Host

ROUNDING = 1e-9
"""Relative: weights are sums of as many numbers as there are readings."""


def audit(fleet: SimulatedFleet, version: int) -> list[tuple[str, str]]:
    """Return violations, the first of each kind; `version`: of the model that all should have."""
    found: dict[str, str] = {}
    for hosts in fleet.levels[1:]:
        for host in hosts:
            if isinstance(host.node, AggregatorNode) and _lines_of(
                fleet, host, host.node
            ) != _lines_of(fleet, host, fleet.twin(host)):
                found.setdefault("I3", f"{host} would say something else after a restart")
    root = fleet.root.node
    model = root.model(GROUP) if isinstance(root, AggregatorNode) else None
    for host in fleet.levels[0]:
        known = host.node.model if isinstance(host.node, ClientNode) else None
        if model is not None and (known is None or known.version < version):
            found.setdefault("I7", f"{host} stays at an older model")
    ledger = root.ledger(GROUP) if isinstance(root, AggregatorNode) else None
    counted = 0 if ledger is None else ledger.counts().learnt
    if counted > fleet.feed.generated or (
        fleet.suffered.network_only
        and not fleet.plan.measures_first
        and counted != fleet.feed.generated
    ):
        found["I4"] = f"{counted} readings are counted, of {fleet.feed.generated}"
    summary = None if ledger is None else ledger.summary()
    # In a kernel group each of its two memories weighs what is counted.
    if summary is not None and fleet.plan.half_life_s is None:
        weights = summary.weight, *(part.weight for part in summary.parts)
        for weight in weights:
            if abs(weight - counted) > ROUNDING * counted:
                found["I1"] = f"the model weighs {weight}, {counted} readings are counted"
    for invariant, what in found.items():
        fleet.log(fleet.root, f"!! {invariant}: {what}")
    return list(found.items())


def _lines_of(fleet: SimulatedFleet, host: Host, node: AggregatorNode) -> bytes:
    """Return what a process on a machine would say of its rows now: both are asked at one time."""
    ledger = node.ledger(GROUP)
    summary = None if ledger is None else ledger.seen(host.now(fleet.time))
    return b"" if summary is None else fleet.feed.summaries.packed(summary)
