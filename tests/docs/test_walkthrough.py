"""The walk through the code names files and functions that exist (`support/references.py`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.references import Sources, broken, quoted

WALK = Path(__file__).parents[2] / "docs" / "walkthrough.md"


@pytest.fixture(scope="module")
def product() -> Sources:
    """The sources that are shipped."""
    return Sources.of_product()


def test_all_that_the_walk_names_is_there(product):
    """Each file, folder, class, method and function that the walkthrough refers to exists."""
    assert [] == broken(WALK.read_text(encoding="utf-8"), product)


def test_each_step_names_a_function(product):
    """A reader knows at each numbered step which function to open in which file."""
    steps = re.findall(r"^(\d+)\. (.*)$", WALK.read_text(encoding="utf-8"), re.MULTILINE)
    named = {
        int(number): [each for each in quoted(step) if ".py:" in each and product.resolves(each)]
        for number, step in steps
    }

    assert [*range(1, len(steps) + 1)] == [*named]
    assert [] == [number for number, functions in named.items() if not functions]


LID = """
LIMIT: int = 3
class Base:
    size: int
    def open(self): self.state = 1
class Lid(Base):
    def turn(self): pass
async def shut(): pass
"""
SMALL = Sources([("core/box/__init__.py", "from box.lid import shut\n"), ("core/box/lid.py", LID)])


@pytest.mark.parametrize(
    "reference",
    [
        "lid.py", "box/lid.py", "box/", "lid.py:shut", "lid.py:LIMIT", "lid.py:Lid.turn(x)",
        "lid.py:Lid.open", "Lid.turn", "Lid.size", "Lid.state", "lid.shut", "box.shut", "box.lid",
        "Lid", "Lid(box, 3)", "shut()", "turn(by=2)",
    ],
)  # fmt: skip
def test_what_is_there_is_found(reference):
    """Each form of a reference resolves."""
    assert SMALL.resolves(reference) is True


@pytest.mark.parametrize(
    "reference",
    [
        "id.py", "crate/lid.py", "crate/", "lid.py:open", "lid.py:Lid.spin", "lid.py:Top.turn",
        "Lid.spin", "Top.turn", "lid.turn", "box.LIMIT", "Top", "Top(3)", "spin()",
    ],
)  # fmt: skip
def test_what_is_not_there_is_told_apart(reference):
    """Each form of a reference that leads nowhere is found out."""
    assert SMALL.resolves(reference) is False
    assert [reference] == broken(f"see `{reference}`, and `Lid`\n```\n`Gone`\n```\n", SMALL)


@pytest.mark.parametrize(
    "text", ["box open --lid", "seq", "(n, channels)", "4 d k", "ACK", "[alarms]", "a = 1", "X"]
)
def test_other_text_is_no_reference(text):
    """Commands, settings, shapes and single words are left alone."""
    assert SMALL.resolves(text) is None
