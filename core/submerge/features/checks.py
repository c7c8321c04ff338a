"""Checks of a feature map's parameters, with one clear line for each error."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from submerge.errors import UsageError, whole

MOST_FEATURES = 1 << 16  # most features: with more, every summary would be too large to send

MOST_SEED = 2**63 - 1


def is_number(value: object) -> bool:
    """Return whether it is a finite number that a float can hold, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def count(map_: Any, name: str, least: int, most: int) -> None:
    """Refuse a field that is not a whole number in that range; make it an int."""
    # One value must have one text, so NumPy's integers become Python's.
    object.__setattr__(map_, name, whole(name, getattr(map_, name), least=least, most=most))


def check_even(features: int, kind: str) -> None:
    """Refuse an odd number of features where they come in pairs."""
    if features % 2:
        raise UsageError(
            f"features of kind {kind!r} come in pairs: expected an even number, got {features}"
        )


def check_seed(map_: Any) -> None:
    """Refuse a seed that does not fit in 63 bits."""
    count(map_, "seed", 0, MOST_SEED)


def check_kernel(kernel: object, *allowed: type, of: str) -> None:
    """Refuse a kernel of a kind that this map does not support."""
    if not isinstance(kernel, allowed):
        names = " or ".join(kind.__name__ for kind in allowed)
        raise UsageError(f"{of} need a kernel of kind {names}, got {kernel!r}")
