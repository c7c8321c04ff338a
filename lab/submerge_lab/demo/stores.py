"""What aggregators hold, read from their stores on disk after they have ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from submerge import Schema
from submerge.aggregator.rows.pool import Row, Sealed
from submerge.protocol.messages import Counts
from submerge.protocol.summaries import Subspaces, Summary
from submerge_aggregator.store import Store
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
    """Return what a store holds, by child.

    Raises
    ------
    UsageError
        If another process has it, or it is damaged.
    """
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
