"""ARCHITECTURE.md lists the folders of the product, and each folder says itself what it is for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from support.references import PRODUCT, ROOT, Sources, broken

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w/]+)/` \| (.+) \| (.+) \|$", re.MULTILINE)
SENTENCE = re.compile(r"\w[^.!?]*[.!?](?=\s|$)")


def folders() -> list[str]:
    """The folders of product code: all that hold a Python file."""
    return sorted(
        {path.parent.relative_to(ROOT).as_posix() for top in PRODUCT for path in _files(top)}
    )


def _files(top: str) -> list[Path]:
    return sorted((ROOT / top).rglob("*.py"))


def test_the_table_lists_exactly_the_folders_that_exist():
    """Each folder has one row, with what it is for and what it does not do."""
    assert folders() == sorted(folder for folder, *_ in ROW.findall(PAGE))


@pytest.mark.parametrize("folder", folders())
def test_each_folder_says_what_it_is_for(folder):
    """The docstring of its `__init__` has two sentences or more."""
    source = (ROOT / folder / "__init__.py").read_text(encoding="utf-8")

    assert len(SENTENCE.findall(ast.get_docstring(ast.parse(source)) or "")) >= 2


def test_all_that_the_page_names_is_there():
    """Each file, folder, class and function that it refers to exists in the product."""
    beside = {path for path in re.findall(r"`([^`\n]+)`", PAGE) if (ROOT / path).exists()}

    assert [] == [each for each in broken(PAGE, Sources.of_product()) if each not in beside]


def test_sentences_are_counted():
    """A stop inside of a name ends none, nor does a colon."""
    assert 2 == len(SENTENCE.findall("What `a.b` is for: all of it.\n\nIt is not for more."))
    assert 1 == len(SENTENCE.findall("The program at the edge: sensors in, reports out."))
    assert [] == SENTENCE.findall("...")
