"""What to do if no row of many can be judged: by the commonest reason."""

from __future__ import annotations

from collections.abc import Mapping

from submerge.condition import Condition
from submerge.judge.prepare import GAPS, LARGEST_SCALED, LEAD_IN, OTHER_STATE, REASONS, TOO_LARGE

_CURES = {
    REASONS[LEAD_IN]: "each file needs more rows than the model has lags",
    REASONS[GAPS]: "a row needs values in half of its channels",
    REASONS[TOO_LARGE]: f"a number above {LARGEST_SCALED:g} is no reading: leave its column out",
}


def none_left(rows: int, reasons: Mapping[str, int], when: Condition | None = None) -> str:
    """Return how many rows there were, why none can be judged, and what to do.

    rows : How many there were.
    reasons : How many were left out, by `REASONS` and other reasons.
    when : The state that rows had to be in.
    """
    ordered = sorted(reasons.items(), key=lambda each: -each[1])
    if not ordered:
        return f"none of {rows:,}: give more rows"
    counts = ", ".join(f"{n:,} {why}" for why, n in ordered)
    cure = _CURES.get(ordered[0][0], "leave fewer rows out")
    if ordered[0][0] == REASONS[OTHER_STATE] and when is not None:
        cure = f"they are not in the state {when}: correct it, or leave it out"
    return f"none of {rows:,} ({counts}): {cure}"
