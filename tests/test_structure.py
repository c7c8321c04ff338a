"""The house rules that can be counted: each list of `support.structure` is empty."""

from __future__ import annotations

import pytest

from support import structure


@pytest.mark.parametrize("what", structure.EMPTY)
def test_a_rule_of_the_house_holds(what):
    """No file or function too long, no folder too full, no class twice."""
    assert [] == structure.EMPTY[what]()


def test_every_exception_is_needed():
    """An exception goes with its file."""
    paths = {structure.where(name) for name in structure.modules()}

    assert {each.split(":")[0] for each in structure.LONG_FUNCTIONS} <= paths
