"""The documentation as text: its files, and what a reader follows in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^(?P<fence>`{3,}|:{3,}).*?^(?P=fence)", re.DOTALL | re.MULTILINE)
QUOTED = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)


def pages() -> list[Path]:
    """All Markdown that is ours: at the root, and in folders that hold sources."""
    folders = (each for each in ROOT.iterdir() if each.is_dir() and not each.name.startswith("."))
    nested = (
        path
        for folder in folders
        if folder.name not in {"build", "dist"}
        for path in folder.rglob("*.md")
    )
    return sorted([*ROOT.glob("*.md"), *nested])


def prose(text: str) -> str:
    """The text without code: fenced blocks and what stands in backquotes."""
    return QUOTED.sub("", FENCED.sub("", text))


def links(text: str) -> list[str]:
    """The targets of links and images, other hosts left out."""
    return [to for to in LINK.findall(prose(text)) if not re.match(r"[a-z]+:", to)]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as code hosts and our site make them."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCED.sub("", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


@dataclass(frozen=True)
class Dead:
    """A link that leads nowhere, and why."""

    target: str
    why: str


def dead_links(page: Path, text: str) -> list[Dead]:
    """The relative links of a page that lead to no file of the repository, or to no heading."""
    found = []
    for target in links(text):
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if path != page and not (path.is_relative_to(ROOT) and path.exists()):
            found.append(Dead(target, "no such file"))
        elif anchor and path.suffix == ".md":
            there = text if path == page else path.read_text(encoding="utf-8")
            if anchor not in anchors(there):
                found.append(Dead(target, "no such heading"))
    return found
