"""The command, whatever it runs: where its words go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUBMERGE = Path(sys.executable).with_name("submerge")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_is_said_in_one_line():
    """Status 1: it is nobody's input that is wrong."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [SUBMERGE, "simulate", "--hours", "0.2", "--quiet"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert 1 == done.returncode
    assert "submerge: expected room to write, the disk is full: free some\n" == done.stderr
