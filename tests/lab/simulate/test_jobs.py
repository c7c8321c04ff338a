"""`submerge lab simulate-jobs`: what is found reaches a person, or a program."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from submerge.jobs.root import RunningJob
from submerge_lab.simulate.jobs import command

SMALL = ("--nodes", "3", "--hours", "0.3", "--opened", "1", "--quiet")


@pytest.mark.slow
def test_seeds_that_hold_are_counted():
    """The first line is the verdict; status 0. Two processes find the same."""
    one = CliRunner().invoke(command, [*SMALL, "--seeds", "4", "--json"])
    two = CliRunner().invoke(command, [*SMALL, "--seeds", "4", "--json", "--processes", "2"])
    text = CliRunner().invoke(command, [*SMALL, "--seeds", "4"])

    assert [0, 0, 0] == [one.exit_code, two.exit_code, text.exit_code]
    first, second = json.loads(one.stdout), json.loads(two.stdout)
    assert {**first, "seconds": 0} == {**second, "seconds": 0}
    assert (4, 0, []) == (first["seeds"], first["broken"], first["violations"])
    assert text.stdout.startswith("0 broken of 4 seeds\n")


@pytest.mark.slow
def test_a_broken_seed_is_named_with_what_led_to_it(monkeypatch):
    """Status 1, the invariant, and the events before it."""
    monkeypatch.setattr(RunningJob, "objection", lambda *_: "no reason")

    found = CliRunner().invoke(command, [*SMALL, "--seeds", "1"])

    assert 1 == found.exit_code
    assert found.stdout.startswith("1 broken of 1 seeds\n")
    assert "seed 0: J1 (a job ends" in found.stdout
    assert "!! J1" in found.stdout
