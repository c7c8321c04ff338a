"""SECURITY.md: each claim names the tests that try it, and they exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
TABLE = TEXT.partition("## What is defended, and where\n")[2].partition("\n\n")[0]
ROWS = [line.strip("| ").split(" | ") for line in TABLE.splitlines()[2:]]


def test_the_table_is_there():
    assert len(ROWS) >= 20


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:40] for row in ROWS])
def test_each_claim_names_tests_that_exist(row):
    named = re.findall(r"`(tests/[^`]+)`", row[-1])
    assert named
    assert [] == [name for name in named if not (ROOT / name).is_file()]
    assert "tests/" not in "".join(row[:-1])
