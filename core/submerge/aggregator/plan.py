"""GroupPlan: how an aggregator is configured to serve a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from submerge.aggregator.rows.influence import InfluenceRule
from submerge.aggregator.rows.releases import Noise
from submerge.protocol.messages import Model, Report
from submerge.protocol.summaries import Subspaces, Summaries
from submerge.robust.influence import FIRST_ROWS
from submerge.schema import Scaling, Schema

Given = Mapping[str, tuple[float, float]]  # center and scale of channels, by name


def known_scaling(configured: Schema, earlier: Iterable[Schema], given: Given) -> Given:
    """Return center and scale of channels by name: of the first earlier schema, or `given`."""
    measured = dict[str, tuple[float, float]]()
    wanted = set(configured.named)
    for schema in earlier:
        if schema.scaling is None or schema.family != configured.family:
            continue
        numbers = zip(schema.scaling.offset, schema.scaling.scale, strict=True)
        for channel, both in zip(schema.named, numbers, strict=True):
            if channel in wanted:
                measured.setdefault(channel.name, both)
    return {**given, **measured}


def carried_over(configured: Schema, known: Given) -> Schema | None:
    """Return the configured schema with its scaling; None if some of it is not known."""
    found = [known.get(name) for name in configured.names]
    both = [each for each in found if each is not None]
    if len(both) < len(found):
        return None
    offsets, scales = zip(*both, strict=True)
    return replace(configured, scaling=Scaling(offsets, scales))


def with_known(settled: Schema, known: Given) -> Schema:
    """Return a settled schema in which channels that are known keep their scaling."""
    if settled.scaling is None:
        return settled
    measured = zip(settled.scaling.offset, settled.scaling.scale, strict=True)
    pairs = zip(settled.names, measured, strict=True)
    offsets, scales = zip(*(known.get(name, both) for name, both in pairs), strict=True)
    return replace(settled, scaling=Scaling(offsets, scales))


Objection = Callable[[Model | Report], str | None]
"""Returns why receivers could not read a message; None if they can."""

HasRoom = Callable[[Report, Schema], bool]
"""Returns whether a report is no larger than the largest one under a schema may be."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupPlan:
    """A group that an aggregator serves.

    summaries : Summaries
    schema : Schema or None
        At the root; None below it, where it arrives with the answer to the join.
    learns_scaling : bool
        The root computes center and scale from the readings; gamma as well, if the schema's
        features leave it open.
    chooses_rank : bool
        The root chooses the rank, up to `summaries.rank_max`.
    robust : bool
        Nodes that are far from the others are left out of everything that follows from rows.
    bounds : bool
        No node moves the model further than an honest one that was heard for as long could.
    trusted : tuple of str
        Patterns of the names of nodes that count in full.
    min_rows : int
        Rows that the group's first model waits for, of all nodes together: with less than ten
        times the rank it is mostly noise.
    floor : bool or None
        Whether new rows enter models and reports only once five children have eight each, or all
        of fewer; None: in groups of five nodes or more; False: nowhere.
    flow : tuple of tuple of str
        Nodes in the order in which a fault goes on from one to the next, a tuple for each line.
    given : mapping of str to (float, float)
        Center and scale of channels that need not be measured, where the others are.
    objection : Objection or None
        Reads models and reports upward before they are sent (`self_check`); None reads nothing.
    has_room : HasRoom or None
        Whether a report with sums under an earlier schema may be sent; None: always.
    """

    summaries: Summaries
    schema: Schema | None = None
    learns_scaling: bool = False
    chooses_rank: bool = False
    robust: bool = False
    bounds: bool = True
    trusted: tuple[str, ...] = ()
    objection: Objection | None = None
    has_room: HasRoom | None = None
    min_rows: int = 1
    floor: bool | None = False
    flow: tuple[tuple[str, ...], ...] = ()
    noise: Noise | None = None  # that a root adds to its sums, under a schema with `clip`
    given: Given = field(default_factory=dict)

    def influence_rule(self, known_s: float) -> InfluenceRule | None:
        """Return how influence is bounded, if it is; `known_s`: as in the rule."""
        if not self.bounds:
            return None
        # A client's first report has ten rows for each direction that it shows.
        rank = self.summaries.rule.start if isinstance(self.summaries, Subspaces) else 0
        return InfluenceRule(self.trusted, max(FIRST_ROWS, 10.0 * rank), known_s)

    def within_room(self, report: Report, schema: Schema) -> Report:
        """Return a report without earlier sums, where it would be larger than any other may be.

        It would be refused, and with it the moments that the root waits for.
        """
        if report.earlier is None or self.has_room is None or self.has_room(report, schema):
            return report
        return replace(report, earlier=None)

    @property
    def settles(self) -> bool:
        """Whether the readings settle a part of the schema."""
        return self.learns_scaling or (self.schema is not None and not self.schema.features.settled)

    def is_open(self, canonical: bytes) -> bool:
        """Return whether readings are still to settle a part of a schema that is in use."""
        return self.settles and canonical == self.configured

    @property
    def configured(self) -> bytes:
        """Text of the configured schema, as it was before the fleet settled what it leaves open."""
        return b"" if self.schema is None else self.schema.canonical

    def opens_with(self, kept: bytes, before: bytes, *, top: bool) -> bytes:
        """Return the schema to start with: the configured one goes before the kept one.

        Except for what the fleet has settled, if the same schema was configured (`before`).
        """
        configured = self.schema
        if configured is None or (kept and not top):
            return kept
        if kept and self.settles:
            known = Schema.parse(kept)
            same = before in (b"", self.configured) and known.is_like(configured)
            if same and (self.learns_scaling or known.scaling == configured.scaling):
                return kept
            if self.learns_scaling and known.scaling is not None and before != self.configured:
                # Channels have come or gone: the others go on as they were measured.
                scaling = known_scaling(configured, [known], self.given)
                carried = carried_over(configured, scaling)
                return configured.canonical if carried is None else carried.canonical
        return configured.canonical
