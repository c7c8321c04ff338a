"""The simulator notices each rule that is broken: or it would prove nothing."""

from __future__ import annotations

import pytest

from submerge_lab.simulator import run
from support.mutants import MUTANTS, SEED, plan_of


@pytest.mark.soak
@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_broken_rule_is_noticed(mutant, monkeypatch):
    """Within a thousand seeds some invariant breaks."""
    for owner, method, replacement in MUTANTS[mutant]:
        monkeypatch.setattr(owner, method, replacement)
    plan = plan_of(mutant)

    first = SEED.get(mutant, 0)
    assert any(run(plan, seed).violations for seed in (*range(first, 1000), *range(first)))
