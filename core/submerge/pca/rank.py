"""Rank rules choose how many directions to show: fixed, the paper's rule, or by energy.

A rule is a frozen value without memory. `SAPCA` calls it once a block with the singular values that
it keeps, spare directions included. `RankChoice` applies the limits and the hold-off.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

from submerge._linalg import Array
from submerge.errors import UsageError, whole


@runtime_checkable
class RankRule(Protocol):
    """Chooses the rank after each block."""

    adaptive: ClassVar[bool]
    """False if `next` never changes the rank: the block then needs no decomposition."""

    @property
    def start(self) -> int:
        """The rank before the first block."""

    @property
    def lowest(self) -> int:
        """Fewest directions to show."""

    @property
    def highest(self) -> int | None:
        """Most directions to show; None means dim."""

    @property
    def hold(self) -> int:
        """Blocks to wait after each change."""

    def next(self, rank: int, sigma: Array, energy: float) -> int:
        """Return the rank to show next: at most one away from `rank`.

        sigma : descending; at least `rank` values, if the data have so many
        energy : total squared distance to the mean
        """


@dataclass(frozen=True, slots=True)
class FixedRank:
    """Always `start` directions."""

    start: int
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", whole("rank", self.start, least=1))

    @property
    def lowest(self) -> int:
        return self.start

    @property
    def highest(self) -> int | None:
        return self.start

    @property
    def hold(self) -> int:
        return 0

    def next(self, rank: int, sigma: Array, energy: float) -> int:
        return rank


@dataclass(frozen=True, slots=True)
class SapcaRank:
    """The paper's rule: keep the last direction's share of sigma in (alpha, beta).

    With C_r = sigma_r / sum(sigma_1..r), grow by one if C_r > beta, shrink by one
    if C_r < alpha (arXiv:1907.08059, Section 3.2; its code has 0.01 and 0.10).
    C_r is at most 1/r, so the rank never grows past 1/beta. The constructor warns of
    limits that this makes unreachable.
    """

    start: int = 10
    alpha: float = 0.01
    beta: float = 0.10
    lowest: int = 1
    highest: int | None = None
    hold: int = 0
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_limits(self, "alpha", "beta")
        if not 0 <= self.alpha < self.beta:
            raise UsageError(
                f"alpha must be at least 0 and below beta, got alpha {self.alpha:g}"
                f" and beta {self.beta:g}"
            )
        if self.beta >= 1 / self.lowest:
            warnings.warn(
                f"the rank can never grow: beta {self.beta:g} is not below 1/{self.lowest},"
                " the largest share that the last direction can have",
                stacklevel=3,
            )
        if self.highest is not None and self.alpha >= 1 / self.highest:
            warnings.warn(
                f"rank {self.highest} can never last: alpha {self.alpha:g} is not below"
                f" 1/{self.highest}, the largest share that the last direction can have",
                stacklevel=3,
            )

    def __str__(self) -> str:
        return f"alpha {self.alpha:g}, beta {self.beta:g}"

    def next(self, rank: int, sigma: Array, energy: float) -> int:
        shown = sigma[:rank]
        last = shown[-1] if len(shown) == rank else 0.0
        total = float(shown.sum())
        share = last / total if total > 0 else 0.0
        return rank + (1 if share > self.beta else -1 if share < self.alpha else 0)


@dataclass(frozen=True, slots=True)
class EnergyRank:
    """Keep the share of energy that is shown between `low` and `high`.

    This is SPIRIT's rule (Papadimitriou et al., VLDB 2005), applied once a block. With a rank
    larger than the data's own the model learns a lasting fault: do not aim high.
    """

    low: float = 0.95
    high: float = 0.98
    start: int = 10
    lowest: int = 1
    highest: int | None = None
    hold: int = 0
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_limits(self, "low", "high")
        if not 0 < self.low < self.high <= 1:
            raise UsageError(
                f"the energy limits must be 0 < low < high <= 1, got {self.low:g} and {self.high:g}"
            )

    def __str__(self) -> str:
        return f"energy {self.low:g} to {self.high:g}"

    def next(self, rank: int, sigma: Array, energy: float) -> int:
        squares = sigma**2
        if squares[:rank].sum() < self.low * energy:
            return rank + 1
        if squares[: rank - 1].sum() > self.high * energy:
            return rank - 1
        return rank


def rule_of(rank: int | str | RankRule) -> RankRule:
    """Return a rank's rule: of a number, of the name of a rule, or itself."""
    named: dict[str, type[SapcaRank | EnergyRank]] = {"sapca": SapcaRank, "energy": EnergyRank}
    if isinstance(rank, str):
        if rank not in named:
            raise UsageError(f'rank must be a number, a rule, "sapca" or "energy", got {rank!r}')
        return named[rank]()
    return rank if isinstance(rank, RankRule) else FixedRank(rank)


def within(rule: RankRule, most: int) -> RankRule:
    """Return a rule that shows at most `most` directions; one of another kind as it is."""
    start = min(rule.start, most)
    if isinstance(rule, FixedRank):
        return FixedRank(start)
    if isinstance(rule, SapcaRank | EnergyRank) and most < (rule.highest or math.inf):
        return replace(rule, start=start, lowest=min(rule.lowest, most), highest=most)
    return rule


@dataclass(slots=True)
class RankChoice:
    """What a rule has chosen for one engine."""

    rule: RankRule
    rank: int
    held: int = 0  # blocks until the rule is called again

    def limited(self, wanted: int, dim: int) -> int:
        """Return the rank nearest to `wanted` within the rule's limits and `dim`."""
        return min(max(self.rule.lowest, min(wanted, self.rule.highest or dim)), dim)

    def after_block(self, sigma: Array, energy: float, dim: int) -> None:
        """Ask an adaptive rule for the next rank, unless it is held off."""
        if not self.rule.adaptive:
            return
        if self.held > 0:
            self.held -= 1
            return
        wanted = self.limited(self.rule.next(self.rank, sigma, energy), dim)
        if wanted != self.rank:
            self.rank, self.held = wanted, self.rule.hold


def _check_limits(rule: SapcaRank | EnergyRank, *shares: str) -> None:
    for name in shares:
        object.__setattr__(rule, name, float(getattr(rule, name)))
    for name in ("start", "lowest", "hold"):
        least = 0 if name == "hold" else 1
        object.__setattr__(rule, name, whole(name, getattr(rule, name), least=least))
    if rule.highest is not None:
        object.__setattr__(rule, "highest", whole("highest", rule.highest, least=1))
    highest = rule.start if rule.highest is None else rule.highest
    if not 1 <= rule.lowest <= rule.start <= highest:
        raise UsageError(
            "the rank's limits must be 1 <= lowest <= start <= highest, got"
            f" {rule.lowest}, {rule.start}, {rule.highest}"
        )
