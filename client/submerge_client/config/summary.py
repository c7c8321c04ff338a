"""SummaryConfig: how much of the readings is remembered, in the files of clients and roots."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal

from msgspec import Meta

from submerge import EnergyRank, FixedRank, RankRule, SapcaRank, UsageError
from submerge.pca.budget import Exact
from submerge.protocol.summaries import Subspaces, below
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sections import SHOWN, BadSetting, Section, Spare, Whole, refusal
from submerge_client.config.sizes import Linear
from submerge_client.config.spans import in_bytes

START = 8  # directions that are shown until the root has chosen how many

Size = Annotated[
    str, Meta(min_length=1, description='a size in quotes, such as "1MB"', extra=SHOWN)
]


class SummaryConfig(Section, frozen=True, kw_only=True):
    """How much of the readings is remembered.

    rank : Directions of normal variation that SPE and T2 are of, fewer than channels x lags.
        Raising it explains more of what is normal, and in the end faults as well. With "auto" the
        root chooses it. With "sapca" (Grammenos et al., 2019, section 3.2) or "energy" each node
        adjusts its own after each block, up to rank_max, and the root that of the model.
    rank_max : The highest rank that the root may choose. Raising it makes distances, of which
        alarms are raised, and merges more exact, for 4 bytes x channels x lags each in every
        report.
    oversample : Spare directions, learnt and sent in addition. Raising it makes merges more exact,
        for as much.
    linear_rank : With a kernel, directions of the readings themselves, beside `rank` of their
        features; left out, as many, but at most half of channels x lags. It must be less than
        channels x lags: the score is the part of a reading outside of these directions.
    """

    rank: Whole | Literal["auto", "sapca", "energy"] = "auto"
    rank_max: Whole = 16
    oversample: Spare = 5
    linear_rank: Whole | None = None

    @property
    def start(self) -> int:
        """Directions that are shown before the root, or the node's own rule, has chosen."""
        return self.rank if isinstance(self.rank, int) else min(START, self.rank_max)

    @property
    def most(self) -> int:
        """The highest rank that directions are kept for."""
        return self.rank if isinstance(self.rank, int) else self.rank_max

    @property
    def widest(self) -> str:
        """The setting that bounds directions, and so bytes."""
        return "summary.rank" if isinstance(self.rank, int) else "summary.rank_max"

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
        return self._summaries(FixedRank(self.start))

    def _summaries(self, rule: RankRule, **memory: Any) -> Subspaces:
        more: dict[str, Any] = {"oversample": self.oversample, "linear_rank": self.linear_rank}
        return Subspaces(rule, rank_max=self.most, **more, **memory)


class LearntSummary(SummaryConfig, frozen=True, kw_only=True):
    """How much of the readings is remembered, and in which memory it is learnt.

    rank_min : With rank = "sapca" or "energy", the lowest rank.
    alpha, beta : The bounds of that rule: with "sapca" of the last direction's share of the
        singular values, 0.01 and 0.1 if left out; with "energy" of the share of energy that is
        shown, 0.95 and 0.98.
    hold_off : Blocks for which the rank stays after each change.
    exact : With "never", and with "sapca" and "energy", directions alone are learnt and sent: the
        memory of the paper's algorithm, O(dimensions x rank), also where all of the scatter would
        fit in `memory`.
    memory : Most memory for learning exactly; in a kernel group, of features and of readings each.
        4200kB reach to some 400 dimensions (channels x lags), 1MB to 187. Above that, directions
        are learnt, rank + oversample of them, in memory that grows with the dimensions. Raising it
        is exact further, and faster up to some 600 dimensions.
    """

    rank_min: Whole = 1
    alpha: float | None = None
    beta: float | None = None
    hold_off: Spare = 0
    exact: Exact = "auto"
    memory: Size = "4200kB"

    def __post_init__(self) -> None:
        _ = self.memory_bytes, self.rule

    @property
    def rule(self) -> RankRule:
        """How many directions are shown, by this node's own rule if it has one."""
        low, high = self.alpha, self.beta
        if self.rank not in ("sapca", "energy"):
            lowest = self.rank_min if self.rank_min > 1 else None
            given = _given(alpha=low, beta=high, hold_off=self.hold_off or None, rank_min=lowest)
            for name, got in given.items():
                nothing = 'nothing without rank = "sapca" or "energy"'
                raise refusal(name, expected=nothing, got=str(got))
            return FixedRank(self.start)
        if self.rank_min > self.rank_max:
            raise refusal(
                "rank_min", expected=f"at most rank_max = {self.rank_max}", got=str(self.rank_min)
            )
        limits = {
            "start": max(self.start, self.rank_min),
            "lowest": self.rank_min,
            "highest": self.rank_max,
            "hold": self.hold_off,
        }
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of bounds between which the rank cannot move
                if self.rank == "energy":
                    return EnergyRank(**_given(low=low, high=high), **limits)
                return SapcaRank(**_given(alpha=low, beta=high), **limits)
        except (UsageError, UserWarning) as error:
            raise BadSetting(("alpha" if high is None else "beta",), str(error)) from None

    @property
    def shared(self) -> SummaryConfig:
        """What all nodes of the group have alike, and their aggregators: all but the memory."""
        names = SummaryConfig.__struct_fields__
        return SummaryConfig(**{name: getattr(self, name) for name in names})

    @property
    def summaries(self) -> Subspaces:
        """The summaries that learn so many directions, in so much memory."""
        return self._summaries(self.rule, memory=self.memory_bytes, exact=self.exact)

    @property
    def memory_bytes(self) -> int:
        """The memory of one learner, in bytes, as configured."""
        try:
            return in_bytes(self.memory)
        except UsageError as error:
            raise BadSetting(("memory",), str(error)) from None


def _given(**settings: float | None) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


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
    if isinstance(summary.rank, int) and summary.rank > below(summary.rank, schema.dim):
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
