"""ARCHITECTURE.md names what exists, and each folder of the product says what it is for."""

from __future__ import annotations

import importlib.util
import re

from support.structure import PRODUCT, ROOT, sizes

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_each_folder_says_what_it_is_for():
    """The table of the site has a sentence for each, from the docstring of its `__init__`."""
    spec = importlib.util.spec_from_file_location("folders", ROOT / "docs" / "_ext" / "folders.py")
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    listed, page = dict(extension.folders()), ["```{folders}\n```\n"]
    extension.fill(None, "docs/folders", page)

    assert {*sizes()} == {*listed}
    assert [] == [folder for folder, sentence in listed.items() if not sentence]
    assert len(listed) + 2 == page[0].count("\n")


def test_each_house_has_a_row():
    """The packages of both distributions, and no other."""
    rows = re.findall(r"^\| `(\w+)/` \| `(\w+)` \|", PAGE, re.MULTILINE)

    assert sorted(PRODUCT) == sorted(f"{folder}/{package}" for folder, package in rows)


def test_where_to_begin_is_there():
    """A newcomer who follows the last table finds a file or a folder."""
    table = PAGE.partition("## Where to begin")[2]
    named = re.findall(r"`([\w.-]+/[\w./-]*)`", table)

    assert len(named) >= 5
    assert [] == [path for path in named if not (ROOT / path).exists()]


def test_it_is_one_page():
    """What a newcomer reads first stays short; pages, docstrings and decisions have the rest."""
    assert len(PAGE.split()) < 1_500
