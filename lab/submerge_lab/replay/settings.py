"""Settings of a replay, checked; options that have no effect, or exclude each other, refused."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Literal

from submerge import Array, EnergyRank, FixedRank, RankRule, SapcaRank, UsageError
from submerge.features import FeatureMap
from submerge.protocol.summaries import BLOCK
from submerge_lab.kernel_options import option
from submerge_lab.replay.over_time import MOST_COLUMNS
from submerge_lab.replay.rows import Missing

MOST_FEATURES = 4096
"""The result is compared with exact PCA: more would take minutes and half a gigabyte."""


@dataclass(frozen=True)
class ReplaySettings:
    """The options of `submerge replay`; `--help` describes each.

    features : None learns the columns themselves
    alpha, beta, block : None leaves them to `rule` and `block_size`
    """

    rank: int | None = None
    rank_rule: Literal["fixed", "sapca", "energy"] = "fixed"
    alpha: float | None = None
    beta: float | None = None
    energy: tuple[float, float] = (0.95, 0.98)
    hold_off: int = 0
    block: int | None = None
    oversample: int = 5
    exact: Literal["auto", "never"] = "auto"
    center: Literal["stream", "none", "offline"] = "stream"
    forgetting_factor: float = 1.0
    missing: Missing = "reject"
    zero_is_missing: bool = False
    leaves: int = 1
    fan_in: int = 4
    deal: Literal["turn", "runs"] = "turn"
    whole_blocks: bool = False
    bounds: bool = False
    over_time: bool = False
    features: FeatureMap | None = None

    @property
    def block_size(self) -> int | None:
        """Rows learnt at once; None: the engine's default. Of features as many as on a device."""
        if self.block is None and self.features is not None:
            return BLOCK
        return self.block

    def rule(self, width: int) -> RankRule:
        """Return the rank rule for `width` columns."""
        dim, what = width, "columns"
        if self.features is not None:
            dim, what = self.features.dim(width), "features"
        start = min(10, dim) if self.rank is None else self.rank
        if not 1 <= start <= dim:
            raise UsageError(f"--rank must be from 1 to the {dim} {what}, got {start}")
        if self.hold_off < 0:
            raise UsageError(f"--hold-off must be at least 0, got {self.hold_off}")
        if self.rank_rule == "sapca":
            # Spectra of features fall so slowly that the paper's limits would never change it.
            alpha, beta = (0.01, 0.10) if self.features is None else (0.005, 0.03)
            return SapcaRank(
                start,
                alpha=alpha if self.alpha is None else self.alpha,
                beta=beta if self.beta is None else self.beta,
                hold=self.hold_off,
            )
        if self.rank_rule == "energy":
            return EnergyRank(*self.energy, start=start, hold=self.hold_off)
        return FixedRank(start)

    def check(self, rows: Array) -> None:
        """Refuse bad values by the names of the command's options."""
        # Of whole blocks `cut` says how many rows they need.
        most = sys.maxsize if self.whole_blocks else len(rows)
        if self.block is not None and not 1 <= self.block <= most:
            raise UsageError(f"--block must be from 1 to the {len(rows)} rows, got {self.block}")
        if self.oversample < 0:
            raise UsageError(f"--oversample must be at least 0, got {self.oversample}")
        if not 0 < self.forgetting_factor <= 1:
            raise UsageError(
                f"--forgetting-factor must be in (0, 1], got {self.forgetting_factor:g}"
            )
        if self.fan_in < 2 or self.fan_in & (self.fan_in - 1):
            raise UsageError(f"--fan-in must be a power of two, at least 2, got {self.fan_in}")
        if self.over_time and rows.shape[1] > MOST_COLUMNS:
            raise UsageError(
                f"--over-time takes at most {MOST_COLUMNS} columns, got {rows.shape[1]}: it holds"
                " the sum of y y'"
            )
        dim = 0 if self.features is None else self.features.dim(rows.shape[1])
        if dim > MOST_FEATURES:
            raise UsageError(
                f"--features must be at most {MOST_FEATURES}, got {dim}: the result is compared"
                " with exact PCA of them"
            )


PAPER: dict[str, Any] = {
    "rank_rule": "sapca",
    "oversample": 0,
    "exact": "never",
    "center": "offline",
    "whole_blocks": True,
}
"""The paper's algorithm as in its scripts, with misprints corrected."""

PAPER_DEFAULTS: dict[str, Any] = {"block": 50}
"""What it has where nothing else is asked for."""


def cut(rows: Array, block: int) -> Array:
    """Return the rows (n, dim) that fill whole blocks."""
    whole = len(rows) // block * block
    if not whole:
        raise UsageError(f"--paper needs at least one block of {block} rows, got {len(rows)} rows")
    return rows[:whole]


# -- combinations of options ---------------------------------------------------------

ADAPTIVE = ("sapca", "energy")
"""Rank rules that change the rank."""

NEEDED: dict[str, tuple[str, tuple[object, ...]]] = {
    "alpha": ("rank_rule", ("sapca",)),
    "beta": ("rank_rule", ("sapca",)),
    "energy": ("rank_rule", ("energy",)),
    "hold_off": ("rank_rule", ADAPTIVE),
    "bounds": ("rank_rule", ADAPTIVE),
}
"""Options that have no effect without one of these values of another."""

OF_TREES = ("fan_in", "deal")
"""Options that have no effect without --leaves 2 or more."""


def refuse_what_has_no_effect(given: dict[str, Any], paper: dict[str, Any], *, seen: bool) -> None:
    """Refuse options that would be ignored; `paper` is what `--paper` stands for.

    seen : whether JSON is printed or a picture drawn
    """
    for name, value in paper.items():
        if given.get(name, value) != value:
            raise UsageError(
                f"--paper stands for {option(name)} {value}, got {option(name)}"
                f" {given[name]} as well: leave one of them out"
            )
    options = given | paper
    for name, (other, values) in NEEDED.items():
        if name in given and options.get(other) not in values:
            words = " or ".join(str(value) for value in values)
            raise UsageError(f"{option(name)} has an effect with {option(other)} {words} only")
    is_tree = options.get("leaves", 1) >= 2
    for name in OF_TREES:
        if name in given and not is_tree:
            raise UsageError(f"{option(name)} has an effect with --leaves 2 or more only")
    if "over_time" in given and is_tree:
        raise UsageError("--over-time is of one stream: leave out either it or --leaves")
    if "over_time" in given and not seen:
        raise UsageError("--over-time has an effect with --json or --plot only")


def refuse_what_goes_without_a_kernel(given: dict[str, Any], *, paper: bool) -> None:
    """Refuse options that are for rows as they are."""
    if paper:
        raise UsageError("--paper is for rows as they are: leave out either it or --kernel")
    if "over_time" in given:
        raise UsageError("--over-time is for rows as they are: leave out either it or --kernel")
    if given.get("center") == "offline":
        raise UsageError(
            "--center offline is for rows as they are, but with --kernel their features are"
            " centered: choose --center stream"
        )
