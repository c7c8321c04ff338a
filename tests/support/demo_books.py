"""Every reading of a demo accounted for: what was fed beside what its stores hold at the end.

    fed = learnt + withheld + declared lost + lost with a kill

For a client that was never killed the stores must hold exactly what it was given. For a killed
client they must hold all that had been acknowledged, and no more than it was given; the rest was
lost with the kill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from submerge import Schema
from submerge.aggregator.rows.pool import Row, Sealed
from submerge.protocol.messages import Counts
from submerge.protocol.summaries import Subspaces, Summary
from submerge_aggregator.store import Store
from submerge_lab.demo.feed import Stint
from submerge_lab.demo.fleet import DemoFleet
from submerge_lab.demo.site import ROOT
from submerge_proto.kept import records


@dataclass(slots=True)
class Held:
    """What an aggregator holds of one child.

    incarnations : Of incarnations whose reports may still be replaced.
    sealed : Of incarnations that are over.
    parts : What all incarnations have learnt.
    """

    incarnations: dict[str, Counts] = field(default_factory=dict)
    sealed: Counts = field(default_factory=Counts)
    parts: list[Summary] = field(default_factory=list)

    @property
    def counts(self) -> Counts:
        """Counts of all incarnations."""
        return sum(self.incarnations.values(), self.sealed)

    @property
    def weight(self) -> float:
        """Readings in the summaries, by their weights."""
        return float(sum(part.weight for part in self.parts))


def read_store(path: Path) -> dict[str, Held]:
    """Return what a store holds, by child."""
    store = Store(path)
    try:
        kept = records.unpack_all(store.load())
    finally:
        store.close()
    children: dict[str, Held] = {}
    for key, record in kept.items():
        if not isinstance(record, Row | Sealed):
            continue
        child = children.setdefault(key[2], Held())
        if isinstance(record, Row):
            report = record.report
            child.incarnations[str(report.stamp.incarnation)] = report.counts
            summary = report.summary
        else:
            child.sealed = child.sealed + record.counts
            summary = record.summary
        if summary is not None:
            child.parts.append(summary)
    return children


def merge_held(children: dict[str, Held], summaries: Subspaces, schema: Schema) -> Summary | None:
    """Merge all that a store holds, as its aggregator does; None if it is empty."""
    tree = summaries.tree(schema)
    for name, child in children.items():
        for i, part in enumerate(child.parts):
            tree[f"{name}/{i}"] = part
    return tree.root() if len(tree) else None


@dataclass(frozen=True, slots=True)
class Balance:
    """What became of all readings.

    fed : Rows that were written to clients.
    learnt, withheld, declared_lost : As the root holds them.
    lost_with_kill : By killed client.
    exact : Clients that were never killed, and whose count must be exact.
    wrong : What does not add up, one sentence each; empty if all is well.
    """

    fed: int
    learnt: int
    withheld: int
    declared_lost: int
    lost_with_kill: dict[str, int]
    exact: int
    wrong: tuple[str, ...]


def add_up(
    stints: Sequence[Stint],
    aggregators: Mapping[str, Mapping[str, Held]],
    root: Mapping[str, Held],
) -> Balance:
    """Return the balance of a run.

    stints : All client processes, each client's in their order.
    """
    clients: dict[str, list[Stint]] = {}
    for stint in stints:
        clients.setdefault(stint.node, []).append(stint)
    holders: dict[str, list[Held]] = {}
    for children in aggregators.values():
        for node, held in children.items():
            holders.setdefault(node, []).append(held)
    wrong: list[str] = []
    with_kill: dict[str, int] = {}
    for node in holders.keys() - clients.keys():
        wrong.append(f"{node} is in a store, but was never fed")
    for node, own in clients.items():
        missing = _missing(node, own, holders.get(node, []), wrong)
        if any(stint.killed for stint in own):
            with_kill[node] = missing
    for name, children in aggregators.items():
        above = root[name].counts if name in root else Counts()
        here = _counts(children)
        if above != here:
            wrong.append(f"{name} holds {here}, but the root holds {above} of it")
    total = _counts(root)
    for place, children in {**aggregators, "root": root}.items():
        learnt, weight = _counts(children).learnt, sum(c.weight for c in children.values())
        if abs(weight - learnt) > 1e-6 * max(1, learnt):
            wrong.append(f"{place} counts {learnt} readings, but its summaries {weight:.1f}")
    return Balance(
        fed=sum(stint.given for stint in stints),
        learnt=total.learnt,
        withheld=total.withheld,
        declared_lost=total.lost,
        lost_with_kill=with_kill,
        exact=len(clients) - len(with_kill),
        wrong=tuple(wrong),
    )


def seen_by_killed(stints: Sequence[Stint], held: Held) -> int:
    """Return how many readings of a client's killed processes the store counts."""
    return _seen(held.counts) - _seen_by_running(stints, held)


def _seen_by_running(stints: Sequence[Stint], held: Held) -> int:
    """Return the same for the process that was not killed, by its incarnations."""
    names = {name for stint in stints if not stint.killed for name in stint.incarnations}
    return sum(_seen(counts) for name, counts in held.incarnations.items() if name in names)


def _missing(node: str, own: Sequence[Stint], holders: Sequence[Held], wrong: list[str]) -> int:
    """Return how many of a client's readings no store holds; add impossible counts to `wrong`."""
    if len(holders) > 1:
        wrong.append(f"{node} is held by {len(holders)} aggregators")
    held = holders[0] if holders else Held()
    killed = [stint for stint in own if stint.killed]
    given, before = sum(stint.given for stint in own), sum(stint.given for stint in killed)
    since, lost = given - before, held.counts.lost
    running = _seen_by_running(own, held)
    if running > since:
        wrong.append(f"{node} was given {since} readings, but {running} are counted")
    if running + lost < since:
        wrong.append(f"{since - running - lost} of {since} readings of {node} are missing")
    seen, acknowledged = seen_by_killed(own, held), sum(stint.acknowledged for stint in killed)
    if seen < acknowledged:
        wrong.append(
            f"{acknowledged} readings of {node} were acknowledged before its kill,"
            f" but {seen} are held"
        )
    if seen > before:
        wrong.append(f"{node} was given {before} readings before its kill, but {seen} are counted")
    return given - held.counts.generated


def _counts(children: Mapping[str, Held]) -> Counts:
    return sum((held.counts for held in children.values()), Counts())


def _seen(counts: Counts) -> int:
    return counts.learnt + counts.withheld


def stores_of(fleet: DemoFleet) -> tuple[dict[str, dict[str, Held]], dict[str, Held]]:
    """Return what the stores of a demo that has ended hold: of each aggregator, and of the root."""
    stores = {
        node.name: read_store(fleet.site.store(node.member))
        for node in (*fleet.of("root"), *fleet.of("aggregator"))
    }
    root = stores.pop(ROOT)
    return stores, root


def balance_of(fleet: DemoFleet) -> Balance:
    """Return the balance of a demo that has ended."""
    stints = [stint for node in fleet.of("client") for stint in node.stints]
    return add_up(stints, *stores_of(fleet))
