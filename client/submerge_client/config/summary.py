"""SummaryConfig: how much of the readings is remembered, in the files of clients and roots."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from submerge import UsageError
from submerge.protocol.summaries import Subspaces
from submerge_client.config.byte_sizes import in_bytes
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sections import BadSetting, Section, Spare, Whole, refusal
from submerge_client.config.sizes import Linear

Size = Annotated[str, Meta(min_length=1, description='a size in quotes, such as "1MB"')]


class SummaryConfig(Section, frozen=True, kw_only=True):
    """How much of the readings is remembered.

    Attributes
    ----------
    rank : int
        Directions of normal variation, at most dim. Raising it explains more of what is
        normal, and in the end faults as well.
    oversample : int
        Spare directions, learnt and sent in addition. Raising it makes merges more exact, for
        4 bytes x dim each in every report.
    linear_rank : int, optional
        With a kernel, directions of the readings themselves, beside `rank` of their features;
        left out, as many, but at most half of channels x lags. It must be less than channels x
        lags: the score is the part of a reading outside of these directions.
    """

    rank: Whole = 8
    oversample: Spare = 5
    linear_rank: Whole | None = None

    @property
    def kept(self) -> int:
        """Directions that are learnt and sent."""
        return self.rank + self.oversample

    def linear(self, schema: SchemaConfig) -> Linear | None:
        """Return the second subspace of a kernel group, as `size_of_report` takes it."""
        if schema.features is None:
            return None
        return Linear(schema.width, self.summaries.linear_kept(schema.width))

    @property
    def summaries(self) -> Subspaces:
        """The summaries that learn and merge so many directions."""
        return Subspaces(self.rank, oversample=self.oversample, linear_rank=self.linear_rank)


class LearntSummary(SummaryConfig, frozen=True, kw_only=True):
    """How much of the readings is remembered, and in which memory it is learnt.

    Attributes
    ----------
    memory : str
        Most memory for learning exactly; in a kernel group, of features and of readings each.
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
            rank=self.rank, oversample=self.oversample, linear_rank=self.linear_rank
        )

    @property
    def memory_bytes(self) -> int:
        """The memory, in bytes."""
        try:
            return in_bytes(self.memory)
        except UsageError as error:
            raise BadSetting(("memory",), str(error)) from None

    @property
    def summaries(self) -> Subspaces:
        """The summaries that learn and merge so many directions, in that memory."""
        return Subspaces(
            self.rank,
            oversample=self.oversample,
            linear_rank=self.linear_rank,
            memory=self.memory_bytes,
        )


def check_rank(summary: SummaryConfig, schema: SchemaConfig) -> None:
    """Refuse more directions than a vector has; in a kernel group, as many `linear_rank` too."""
    width = f"channels x lags = {len(schema.channels)} x {schema.lags} = {schema.width}"
    if schema.features is None:
        if summary.linear_rank is not None:
            raise refusal(
                *("summary", "linear_rank"),
                expected="nothing without [schema.features]: rank is then of the readings",
                got=str(summary.linear_rank),
                hint="leave it out",
            )
        most, hint = f"dim = {width}", "lower it, or raise schema.lags"
    else:
        most = f"the {schema.dim} features there are"
        hint = "lower it, or raise schema.features.features"
    if summary.rank > schema.dim:
        raise refusal(
            *("summary", "rank"), expected=f"at most {most}", got=str(summary.rank), hint=hint
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
