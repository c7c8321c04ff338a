"""GroupPlan: how an aggregator is configured to serve a group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from submerge.protocol.messages import Model, Report
from submerge.protocol.summaries import Summaries
from submerge.schema import Schema

Objection = Callable[[Model | Report], str | None]
"""Returns why receivers could not read a message; None if they can."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupPlan:
    """A group that an aggregator serves.

    summaries : Summaries
    schema : Schema or None
        At the root; None below it, where it arrives with the answer to the join.
    learns_scaling : bool
        The root computes center and scale from the readings; gamma as well, if the schema's
        features leave it open.
    robust : bool
        Clients that are far from the others are left out of everything that follows from rows.
    objection : Objection or None
        Reads models and reports upward before they are sent (`self_check`); None reads nothing.
    """

    summaries: Summaries
    schema: Schema | None = None
    learns_scaling: bool = False
    robust: bool = False
    objection: Objection | None = None

    @property
    def settles(self) -> bool:
        """Whether the readings settle a part of the schema."""
        return self.learns_scaling or (self.schema is not None and not self.schema.features.settled)

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
        return configured.canonical
