"""What is said if no row can be judged."""

from __future__ import annotations

import pytest

from submerge.condition import Condition
from submerge.judge.prepare import none_left

RUNNING = Condition.parse("rpm > 50", ("rpm", "load"))


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (
            {"gaps": 2, "other state": 98},
            "none of 100 (98 other state, 2 gaps): they are not in the state rpm > 50: correct",
        ),
        (
            {"other state": 2, "gaps": 98},
            "none of 100 (98 gaps, 2 other state): a row needs values in half of its channels",
        ),
        (
            {"too large": 100},
            "none of 100 (100 too large): a number above 1e+12 is no reading: leave its column out",
        ),
        ({"excluded": 99, "gaps": 1}, "none of 100 (99 excluded, 1 gaps): leave fewer rows out"),
        ({}, "none of 100: give more rows"),
    ],
)
def test_the_commonest_reason_comes_first_with_its_cure(reasons: dict[str, int], said: str) -> None:
    """Whatever the order is in which the reasons were met."""
    assert none_left(100, reasons, RUNNING).startswith(said)
