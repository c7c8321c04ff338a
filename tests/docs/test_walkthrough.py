"""docs/walkthrough.md: each step names functions that exist, so that the walk cannot rot."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from support.structure import ROOT

WALK = (ROOT / "docs" / "walkthrough.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`([\w/]+\.py):([\w.]+)`")


def is_there(path: Path, name: str) -> bool:
    """Whether a module defines a class, function or method, such as `Ledger.accept`."""
    if not path.exists():
        return False
    found: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for part in name.split("."):
        inside = {
            each.name: each
            for each in ast.iter_child_nodes(found)
            if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        if part not in inside:
            return False
        found = inside[part]
    return True


def test_all_that_the_walk_names_is_there():
    """File and function of each step; what is in backquotes and ends in .py has a function."""
    named = NAMED.findall(WALK)

    assert [] == [(path, name) for path, name in named if not is_there(ROOT / path, name)]
    assert len(named) == len(re.findall(r"`[^`\s]+\.py:", WALK))


def test_there_are_five_journeys_of_a_few_steps():
    """Each step names a function to open."""
    journeys = re.findall(r"^## .*?(?=^## |\Z)", WALK, re.DOTALL | re.MULTILINE)
    steps = [re.findall(r"^(\d+)\. (.*)$", journey, re.MULTILINE) for journey in journeys]

    assert 5 == len(journeys)
    for each in steps:
        assert [*range(1, len(each) + 1)] == [int(number) for number, _ in each]
        assert 5 <= len(each) <= 12
        assert [] == [number for number, text in each if not NAMED.search(text)]


def test_what_is_gone_is_noticed(tmp_path):
    """A module that is not there, and a method that its class does not have."""
    path = tmp_path / "lid.py"
    path.write_text("class Lid:\n    def turn(self): ...\nasync def shut(): ...\n")

    assert [True, True, True] == [is_there(path, name) for name in ("Lid", "Lid.turn", "shut")]
    assert [False, False] == [is_there(path, name) for name in ("Lid.open", "turn")]
    assert not is_there(tmp_path / "box.py", "Lid")
