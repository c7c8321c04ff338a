"""audit(): checks with real subspaces, where no oracle knows each reading.

I3  A node that restarts from its store reports the same, to the byte.
I7  Every client ends with the newest model.
I4  No more readings are counted than there were, and all of them if only messages suffered.
"""

from __future__ import annotations

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.nodes import GROUP

ROUNDING = 1e-9
"""Relative tolerance: weights are sums of as many numbers as there are readings."""


def audit(fleet: SimulatedFleet, version: int) -> list[tuple[str, str]]:
    """Return violations, the first of each kind; `version` is that of the newest model."""
    found: dict[str, str] = {}
    for hosts in fleet.levels[1:]:
        for host in hosts:
            node = host.node
            if isinstance(node, AggregatorNode) and (
                _summary_bytes(fleet, host, node) != _summary_bytes(fleet, host, fleet.twin(host))
            ):
                found.setdefault("I3", f"{host} would report something else after a restart")
    model, ledger = fleet.root_model, fleet.root_ledger
    for host in fleet.levels[0]:
        known = host.node.model if isinstance(host.node, ClientNode) else None
        if model is not None and (known is None or known.version < version):
            found.setdefault("I7", f"{host} stays at an older model")
    counted = 0 if ledger is None else ledger.counts().learnt
    hostile = fleet.malicious is not None  # what it claims is counted, too
    if (not hostile and counted > fleet.feed.generated + fleet.copied_early) or (
        fleet.suffered.network_only
        and not (fleet.robust or hostile)
        and counted != fleet.feed.generated
    ):
        found["I4"] = f"{counted} readings are counted, of {fleet.feed.generated}"
    summary = None if ledger is None else ledger.summary()
    # In a kernel group both parts have the weight of all counted readings.
    fades = fleet.plan.half_life_s is not None or fleet.robust  # a claim beyond the others' fades
    if summary is not None and not fades and not hostile:
        weights = summary.weight, *(part.weight for part in summary.pieces)
        all_rows = counted + _weight_of_histories(fleet)
        for weight in weights:
            if abs(weight - all_rows) > ROUNDING * all_rows:
                found["I1"] = f"the model weighs {weight}, {all_rows} rows are counted"
    for invariant, what in found.items():
        fleet.log(fleet.root, f"!! {invariant}: {what}")
    return list(found.items())


def _weight_of_histories(fleet: SimulatedFleet) -> float:
    """Return for how many rows histories count at the root."""
    root = fleet.root.node
    held = root.histories(GROUP).values() if isinstance(root, AggregatorNode) else ()
    return sum(min(float(each.model.counts.learnt), each.most_rows) for each in held)


def _summary_bytes(fleet: SimulatedFleet, host: Host, node: AggregatorNode) -> bytes:
    """Return the summary that a process on a host would report now."""
    ledger = node.ledger(GROUP)
    summary = None if ledger is None else ledger.seen(host.now(fleet.time))
    return b"" if summary is None else fleet.feed.summaries.packed(summary)
