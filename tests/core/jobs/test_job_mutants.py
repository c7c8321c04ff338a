"""The oracle notices each rule of jobs that is broken: or it would prove nothing."""

from __future__ import annotations

import pytest

from submerge_lab.simulator.jobs import JobPlan, run_jobs
from support.job_mutants import MUTANTS


@pytest.mark.soak
@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_broken_rule_is_noticed(mutant, monkeypatch):
    """Within ninety seeds some invariant breaks."""
    for owner, name, replacement in MUTANTS[mutant]:
        monkeypatch.setattr(owner, name, replacement, raising=False)

    assert any(run_jobs(JobPlan(), seed).violations for seed in range(90))
