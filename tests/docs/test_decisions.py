"""docs/decisions: each page says whether its choice is in force, and the index has it once."""

from __future__ import annotations

import re

from support.structure import ROOT

FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("0*.md"))
STATUS = re.compile(r"# [^\n]+\n\nStatus: (in force|replaced|withdrawn)\b[^\n]*\.\n\n")


def test_each_decision_has_a_status_under_its_title():
    """A reader knows at once whether to believe it."""
    assert len(PAGES) >= 64
    assert [] == [page.name for page in PAGES if not STATUS.match(page.read_text("utf-8"))]


def test_the_index_has_each_decision_once():
    """By subject; the site's build refuses a page that is nowhere."""
    listed = re.findall(r"^(0\d{3}-[\w-]+)$", (FOLDER / "index.md").read_text("utf-8"), re.M)

    assert [page.stem for page in PAGES] == sorted(listed)
