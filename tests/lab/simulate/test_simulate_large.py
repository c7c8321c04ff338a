"""`submerge lab simulate --large`: what it needs is said first, then what was compared."""

from __future__ import annotations

import json

import pytest

from submerge import UsageError
from submerge_lab.simulate import memory
from submerge_lab.simulate.command import repeat_command
from submerge_lab.simulate.memory import MANY, announce
from submerge_lab.simulator import Plan
from support.commands import shell

SMALL = ("--nodes", 3, "--fan-in", 2, "--depth", 2, "--hours", 0.2, "--dim", 8, "--rank", 2)


@pytest.fixture
def submerge(monkeypatch, capsys):
    """Run the command as a shell would: exit status, standard output, standard error."""
    return shell(monkeypatch, capsys, "lab", "simulate")


@pytest.mark.slow
def test_a_large_fleet_says_what_it_needs_and_what_was_compared(submerge):
    """The memory on standard error; the sample among the figures, for people and machines."""
    status, out, err = submerge(*SMALL, "--large", "--faults", "none")
    assert (0, True) == (status, err.startswith("large: 3 clients need about"))
    assert "3 clients ran a second time with all matrices" in " ".join(out.split())

    status, out, err = submerge(*SMALL, "--large", "--faults", "none", "--quiet", "--json")
    found = json.loads(out)
    assert (0, "", [], 1.0) == (status, err, found["violations"], found["coverage"])
    assert found["sample"][0]["reports"] > 0


def test_what_a_large_fleet_does_not_stand_in_for_is_refused(submerge):
    """One line, and status 2, before anything runs."""
    status, out, err = submerge(*SMALL, "--large", "--faults", "all-1")

    assert (2, "") == (status, out)
    assert "expected no fault alarms with --large" in err


def test_a_machine_with_too_little_memory_is_named(monkeypatch):
    """It is refused before it begins, with what it would take."""
    monkeypatch.setattr(memory, "machine_bytes", lambda: 2**20)

    with pytest.raises(UsageError, match="expected a machine with"):
        announce(Plan(dim=8, rank=2, faults="none"), 0, jobs=1, quiet=True, large=True)


def test_many_clients_with_matrices_are_pointed_to_large(capsys):
    """A line on standard error, and the run goes on as asked."""
    announce(Plan(nodes=MANY, dim=8, rank=2), 0, jobs=1, quiet=False, large=False)
    announce(Plan(nodes=MANY), 0, jobs=1, quiet=False, large=False)

    assert 1 == capsys.readouterr().err.count("--large")


def test_the_command_that_repeats_a_seed_is_large_too():
    """Else another fleet would run."""
    assert "--large --seed 4" in repeat_command(Plan(dim=8, rank=2), 4, large=True)
