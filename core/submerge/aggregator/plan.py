"""GroupPlan: how an aggregator is configured to serve a group."""

from __future__ import annotations

from dataclasses import dataclass

from submerge.protocol.summaries import Summaries
from submerge.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class GroupPlan:
    """A group that an aggregator serves.

    summaries : Summaries
    schema : Schema or None
        The root's; below it None: it comes down with the answer to the join.
    learns_scaling : bool
        The root works out center and scale from the readings; gamma as well, where the
        schema's features leave it open.
    robust : bool
        Clients that are far from the others stay out of what is made of the rows.
    """

    summaries: Summaries
    schema: Schema | None = None
    learns_scaling: bool = False
    robust: bool = False

    @property
    def settles(self) -> bool:
        """Whether the schema leaves something for the readings to say."""
        return self.learns_scaling or (self.schema is not None and not self.schema.features.settled)

    @property
    def asked(self) -> bytes:
        """What is configured, as it was before the fleet settled what it leaves open."""
        return b"" if self.schema is None else self.schema.canonical

    def opens_with(self, kept: bytes, asked: bytes, *, top: bool) -> bytes:
        """Return the schema to start with: what is configured goes before what was kept.

        But for what the fleet has settled, if what was `asked` of it then is asked of it now.
        """
        configured = self.schema
        if configured is None or (kept and not top):
            return kept
        if kept and self.settles:
            known = Schema.parse(kept)
            same = asked in (b"", self.asked) and known.is_like(configured)
            if same and (self.learns_scaling or known.scaling == configured.scaling):
                return kept
        return configured.canonical
