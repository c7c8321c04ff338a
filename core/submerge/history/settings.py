"""FitSettings: how a history is learnt."""

from __future__ import annotations

from dataclasses import dataclass, field

from submerge.condition import Condition
from submerge.errors import UsageError, whole
from submerge.history.recording import TimeSpan
from submerge.pca.scatter_sum import Center
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Schema

MOST_CHANNELS = 512  # widest rows: spans of time are whole scatters, of 2 MB each at that width

SOON = AlarmSettings(settle_s=1.0)
"""How alarms are raised on files: a history is known at once, so that nothing has to settle."""


@dataclass(frozen=True, slots=True)
class FitSettings:
    rank: int = 0  # directions that SPE and T2 are of; 0 chooses them by held-out likelihood
    rank_max: int = 16  # most directions to choose from
    oversample: int = 5  # spare ones that the model keeps
    when: Condition | None = None  # rows for which it does not hold are left out
    leaves_out: bool = True  # spans of time that are unlike all others are left out
    exclude: tuple[TimeSpan, ...] = ()  # neither learnt nor scored; each has to have rows
    faults: tuple[TimeSpan, ...] = ()  # known; not learnt either
    alarms: AlarmSettings = field(default_factory=lambda: SOON)  # limits are those of its rule
    # By default it follows from the rows: their scale; of several machines, own means.
    schema: Schema | None = None
    judged_rows: int = 1 << 22  # in one go; more keep what a monitor remembers

    def center(self, machines: int) -> Center:
        """Return about which mean machines are measured, as a merge says it."""
        if self.schema is not None:
            return "own" if self.schema.center == "own" else "fleet"
        # Machines of one kind differ in their means: each is measured from its own.
        return "own" if machines > 1 else "fleet"

    @property
    def without(self) -> tuple[TimeSpan, ...]:
        """All spans whose rows are not learnt."""
        return (*self.exclude, *self.faults)

    def __post_init__(self) -> None:
        whole("rank", self.rank, least=0)
        whole("rank_max", self.rank_max, least=1)
        whole("oversample", self.oversample, least=0)
        whole("judged_rows", self.judged_rows, least=1024)
        if self.rank > self.rank_max:
            raise UsageError(f"rank must be at most rank_max = {self.rank_max}, got {self.rank}")
        schema = self.schema
        if schema is not None and (not schema.linear or schema.center == "none"):
            raise UsageError(
                "expected a schema without a kernel and with a mean, got another: rows are learnt"
                " about a mean, as they are"
            )
