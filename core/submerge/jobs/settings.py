"""What kinds of jobs ask of their settings: known names, whole numbers, numbers, flags."""

from __future__ import annotations

from collections.abc import Iterable

from submerge.errors import UsageError, whole
from submerge.jobs.job import Settings
from submerge.jobs.kind import JobSetting
from submerge.jobs.points import MOST_HELD_OUT, held_out_of, seed_of

COMMON_SETTINGS = (
    JobSetting("seed", "whole", "Names all random numbers: equal seeds give equal answers.", "0"),
    JobSetting(
        "held_out",
        "number",
        f"Share of rows to measure on and not to learn from, to {MOST_HELD_OUT:g}.",
        "0",
    ),
)
"""Settings that all kinds know, as they list their own."""

KEEP = JobSetting(
    "keep",
    "flag",
    "Whether clients keep the answer, and say in their score lines to which cluster a row belongs.",
    "no",
)
"""A setting of kinds whose answer has clusters: `membership.ClusterMembership`."""

COMMON = tuple(each.name for each in COMMON_SETTINGS)
"""Their names."""


def check_known(settings: Settings, names: Iterable[str]) -> None:
    """Refuse a setting that is not one of the names, nor common to all kinds, and common ones."""
    seed_of(settings), held_out_of(settings)
    known = (*COMMON, *names)
    for name in settings:
        if name not in known:
            raise UsageError(f"settings are {', '.join(known)}, got {name[:40]!r}")


def whole_of(settings: Settings, name: str, default: int, *, least: int, most: int) -> int:
    """Return a whole number of the settings."""
    return whole(name, settings.get(name, default), least=least, most=most)


def number_of(settings: Settings, name: str, default: float, *, most: float) -> float:
    """Return a number of the settings, from 0 to `most`."""
    value = settings.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise UsageError(f"{name} must be a number from 0 to {most:g}, got {value!r}")
    return float(value)


def flag_of(settings: Settings, name: str, *, default: bool = False) -> bool:
    """Return a setting that is true or false."""
    value = settings.get(name, default)
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be true or false, got {value!r}")
    return value
