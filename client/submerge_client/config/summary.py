"""SummaryConfig: how much of the readings is remembered, in the files of clients and roots."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from submerge import UsageError
from submerge.pca.budget import DEFAULT_MEMORY
from submerge.protocol.summaries import Subspaces, below
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sections import SHOWN, BadSetting, Section, Spare, Whole, refusal
from submerge_client.config.sizes import Linear
from submerge_client.config.spans import in_bytes

START = 8
"""Directions that are shown until the root has chosen how many."""

Size = Annotated[
    str, Meta(min_length=1, description='a size in quotes, such as "1MB"', extra=SHOWN)
]


class SummaryConfig(Section, frozen=True, kw_only=True):
    """How much of the readings is remembered.

    rank : Directions of normal variation that SPE and T2 are of, fewer than channels x lags.
        Raising it explains more of what is normal, and in the end faults as well. With "auto" the
        root chooses it.
    rank_max : The highest rank that the root may choose. Raising it makes distances, of which
        alarms are raised, and merges more exact, for 4 bytes x channels x lags each in every
        report.
    oversample : Spare directions, learnt and sent in addition. Raising it makes merges more exact,
        for as much.
    linear_rank : With a kernel, directions of the readings themselves, beside `rank` of their
        features; left out, as many, but at most half of channels x lags. It must be less than
        channels x lags: the score is the part of a reading outside of these directions.
    """

    rank: Whole | Literal["auto"] = "auto"
    rank_max: Whole = 16
    oversample: Spare = 5
    linear_rank: Whole | None = None

    @property
    def start(self) -> int:
        """Directions that are shown before the root has chosen."""
        return min(START, self.rank_max) if self.rank == "auto" else self.rank

    @property
    def most(self) -> int:
        """The highest rank that directions are kept for."""
        return self.rank_max if self.rank == "auto" else self.rank

    @property
    def widest(self) -> str:
        """The setting that bounds directions, and so bytes."""
        return "summary.rank_max" if self.rank == "auto" else "summary.rank"

    @property
    def kept(self) -> int:
        return self.most + self.oversample

    def linear(self, schema: SchemaConfig) -> Linear | None:
        """Return the second subspace of a kernel group, as `size_of_report` takes it."""
        if schema.features is None:
            return None
        return Linear(schema.width, self.summaries.linear_kept(schema.width))

    @property
    def summaries(self) -> Subspaces:
        """The summaries that learn and merge so many directions."""
        return Subspaces(
            self.start,
            rank_max=self.most,
            oversample=self.oversample,
            linear_rank=self.linear_rank,
            memory=self.memory_bytes,
        )

    @property
    def memory_bytes(self) -> int:
        """The memory of one learner, in bytes."""
        return DEFAULT_MEMORY


class LearntSummary(SummaryConfig, frozen=True, kw_only=True):
    """How much of the readings is remembered, and in which memory it is learnt.

    memory : Most memory for learning exactly; in a kernel group, of features and of readings each.
        3MB reach to 200 dimensions (channels x lags) and 500 rows at a time, 1MB to 160. Above
        that, directions are learnt, rank + oversample of them, in memory that grows with the
        dimensions. Raising it is exact further, and faster up to some 400 dimensions.
    """

    memory: Size = "3MB"

    def __post_init__(self) -> None:
        _ = self.memory_bytes

    @property
    def shared(self) -> SummaryConfig:
        """What all nodes of the group have alike, and their aggregators: all but the memory."""
        return SummaryConfig(
            rank=self.rank,
            rank_max=self.rank_max,
            oversample=self.oversample,
            linear_rank=self.linear_rank,
        )

    @property
    def memory_bytes(self) -> int:
        """The memory of one learner, in bytes, as configured."""
        try:
            return in_bytes(self.memory)
        except UsageError as error:
            raise BadSetting(("memory",), str(error)) from None


def check_rank(summary: SummaryConfig, schema: SchemaConfig) -> None:
    """Refuse as many directions as a vector has numbers; `linear_rank` of a kernel group too."""
    width = f"channels x lags = {len(schema.channels)} x {schema.lags} = {schema.width}"
    if schema.features is None:
        if summary.linear_rank is not None:
            raise refusal(
                *("summary", "linear_rank"),
                expected="nothing without [schema.features]: rank is then of the readings",
                got=str(summary.linear_rank),
                hint="leave it out",
            )
        most, hint = f"dim = {width}", "lower it, or leave it out"
    else:
        most = f"the {schema.dim} features there are"
        hint = "lower it, or raise schema.features.features"
    if summary.rank != "auto" and summary.rank > below(summary.rank, schema.dim):
        # All of them would leave only rounding errors to score.
        raise refusal(
            *("summary", "rank"),
            expected=f"fewer than {most}" if schema.dim > 1 else f"1, since {most}",
            got=str(summary.rank),
            hint=hint,
        )
    linear = summary.linear_rank
    if linear is not None and linear > max(1, schema.width - 1):
        # All of them would leave only rounding errors to score.
        raise refusal(
            *("summary", "linear_rank"),
            expected=f"fewer than {width}" if schema.width > 1 else f"1, since {width}",
            got=str(linear),
            hint="lower it, or leave it out",
        )
