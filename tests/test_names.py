"""The names of tests: workers of pytest-xdist refuse to start where they differ."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

COLLECT = """
import sys, time
real, ahead = time.time, float(sys.argv.pop(1))
time.time = lambda: real() + ahead
import pytest
every = ["-m", "soak or not soak"]
sys.exit(pytest.main(["--collect-only", "--quiet", "-p", "no:cacheprovider", *every]))
"""


@pytest.mark.soak
def test_names_hang_on_no_hash_seed_no_clock_and_no_address():
    """Two processes, a day apart, give all tests the same names in the same order."""
    collections = [
        subprocess.Popen(
            [sys.executable, "-c", COLLECT, ahead],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        for seed, ahead in (("1", "0"), ("2", "86400"))
    ]
    here, there = (
        [line for line in process.communicate()[0].splitlines() if "::" in line]
        for process in collections
    )

    assert [0, 0] == [process.returncode for process in collections]
    assert [] == [names for names in zip(here, there, strict=True) if names[0] != names[1]]
    assert any(name.startswith("tests/test_names.py::") for name in here)
