"""Options of `submerge replay` that have no effect, or exclude each other: each refused by name."""

from __future__ import annotations

from typing import Any

from submerge import UsageError
from submerge_lab.kernel_options import option

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
    """Refuse options that would be ignored.

    paper : what `--paper` stands for; empty without it
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
