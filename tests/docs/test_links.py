"""What a reader follows in the documentation leads somewhere: without a build of the site."""

from __future__ import annotations

import re
from pathlib import Path

from support.markdown import ROOT, Dead, dead_links, pages
from support.structure import PRODUCT

SOURCES = sorted({*(package.partition("/")[0] for package in PRODUCT), "deploy", "examples"})
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


def test_every_link_leads_somewhere():
    """A relative link names a file of the repository, and a heading in it if it has an anchor."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages()}

    assert len(texts) > 100
    assert {} == {
        named(page): dead for page, text in texts.items() if (dead := dead_links(page, text))
    }


def test_every_file_that_is_mentioned_is_there():
    """Without a link, too: in pages, and in the docstrings, messages and units of the sources."""
    sources = [
        path
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".proto", ".yml", ".service", ".toml", ".conf"}
    ]

    assert {*SOURCES} == {path.relative_to(ROOT).parts[0] for path in sources}
    assert {} == {
        named(path): missing
        for path in [*sorted({*pages()} - HISTORY), *sources]
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
