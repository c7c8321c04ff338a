"""The command, whatever it runs: where its words go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import shell

SUBMERGE = Path(sys.executable).with_name("submerge")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_is_one_line():
    """Status 1: the input is not wrong."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [SUBMERGE, "simulate", "--hours", "0.2", "--quiet"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert 1 == done.returncode
    assert "submerge: the disk is full: free some space\n" == done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [(["alarm"], "Did you mean 'alarms'?"), (["agregator"], "Did you mean 'aggregator'?")],
)
def test_an_unknown_subcommand_names_the_nearest(monkeypatch, capsys, words, hint):
    """Status 2 and one line."""
    ran = shell(monkeypatch, capsys)(*words)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert hint in ran.err
