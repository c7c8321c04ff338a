"""What a large simulation does not stand in for, and how much memory one needs.

Its clients keep no monitor, so there are no alarms, and nothing but `Subspaces` of readings.
"""

from __future__ import annotations

from submerge.errors import UsageError
from submerge_lab.simulator.faults import Faults
from submerge_lab.simulator.plan import Plan

LEFT_OUT = ("alarms", "orders", "channels", "malicious", "twin")
"""Faults that need a monitor, sample ids, or a copy of a client's memory."""

BASE_BYTES, CLIENT_BYTES = 95_000_000, 27_000
"""Measured (benchmarks/simulate.py --large) at 1,000 to 100,000 clients."""

READING_BYTES = 6
"""Buckets of the scores of a reading."""


def refuse_unsupported(plan: Plan, faults: Faults) -> None:
    """Refuse a plan that a large simulation does not stand in for.

    Raises
    ------
    UsageError
    """
    if not plan.dim:
        raise UsageError("expected --dim with --large, got none: add --dim 64 --rank 8")
    for what, given in (
        ("--kernel", plan.features is not None),
        ("--learn-scaling", plan.learns_scaling),
        ("--half-life", plan.half_life_s is not None),
    ):
        if given:
            raise UsageError(f"expected no {what} with --large, got it: leave one of them out")
    for name in LEFT_OUT:
        if getattr(faults, name):
            raise UsageError(
                f"expected no fault {name} with --large, got {getattr(faults, name):g}:"
                " leave one of them out"
            )


def needed_bytes(plan: Plan) -> int:
    """Return about how many bytes a large simulation takes."""
    kept = plan.rank + plan.oversample
    # A report's directions at its parent, and in one merge above it.
    summary = 4 * plan.dim * kept + 16 * plan.dim
    readings = min(plan.hours * 3600.0 / plan.reading_every_s, 3 * 1024)
    client = CLIENT_BYTES + 3 * summary + READING_BYTES * readings
    return BASE_BYTES + int(plan.nodes * client)
