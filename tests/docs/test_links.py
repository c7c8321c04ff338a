"""What a reader follows in the documentation leads somewhere: without a build of the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.markdown import ROOT, Dead, dead_links, pages

SOURCES = (
    "core",
    "proto",
    "client",
    "aggregator",
    "files",
    "operate",
    "bridges",
    "lab",
    "deploy",
    "examples",
)
MENTIONED = re.compile(
    r"(?<![\w./-])((?:docs|benchmarks|examples|deploy|tests)/[\w/.-]*\.(?:md|py|png|sh|yml)|[A-Z]{6,}\.md)\b"
)
# What these say was so on its day.
HISTORY = {ROOT / "CHANGELOG.md", *(ROOT / "docs" / "decisions").glob("0*.md")}


def named(path: Path) -> str:
    """A file by its path in the repository."""
    return str(path.relative_to(ROOT))


def unknown(text: str) -> set[str]:
    """The files of the repository that a text mentions and that are not there."""
    return {name for name in MENTIONED.findall(text) if not (ROOT / name).exists()}


@pytest.mark.parametrize("page", pages(), ids=named)
def test_every_link_leads_somewhere(page):
    """A relative link names a file of the repository, and a heading in it if it has an anchor."""
    assert [] == dead_links(page, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [page for page in pages() if page not in HISTORY], ids=named)
def test_every_file_that_a_page_mentions_is_there(page):
    """A path that is mentioned without a link exists as well."""
    assert set() == unknown(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", SOURCES)
def test_every_page_that_the_sources_mention_is_there(folder):
    """Docstrings, comments, messages and units send a reader to pages that exist."""
    files = [
        path
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".proto", ".yml", ".service", ".toml", ".conf"}
    ]

    assert files
    assert {} == {
        named(path): missing
        for path in files
        if (missing := unknown(path.read_text(encoding="utf-8")))
    }


def test_a_dead_link_is_found():
    """A missing file, a missing heading here and elsewhere: each is named with its reason."""
    page = ROOT / "docs" / "page.md"
    text = "# One\n[a](nowhere.md) [b](#two) [c](alarms.md#nothing) [d](#one) [e](alarms.md)"

    assert [
        Dead("nowhere.md", "no such file"),
        Dead("#two", "no such heading"),
        Dead("alarms.md#nothing", "no such heading"),
    ] == dead_links(page, text)
    assert {"docs/nowhere.md"} == unknown(
        "see docs/nowhere.md and docs/alarms.md, not my/docs/a.md"
    )
