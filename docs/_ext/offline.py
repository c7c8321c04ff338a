"""A site that asks no other host for anything: a Sphinx extension that holds it to that.

After the build it reads each page and each style sheet. A font, script, style, image or frame
with an address on another host is an error. A link that a reader may click is not.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

OUTSIDE = re.compile(r"\s*(https?:)?//", re.IGNORECASE)
IN_CSS = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)
# A `link` element loads its target, unless it only says how pages relate.
ONLY_SAYS = {"canonical", "next", "prev", "index", "search", "author", "license"}


class Loaded(HTMLParser):
    """The addresses that a browser loads when it opens a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this element loads."""
        found = {name: value or "" for name, value in attrs}
        if tag == "link" and not ONLY_SAYS & set(found.get("rel", "").split()):
            self.addresses.append(found.get("href", ""))
        for name in ("src", "poster", "data"):
            if name in found:
                self.addresses.append(found[name])
        self.addresses += [part.split()[0] for part in found.get("srcset", "").split(",") if part]
        self.addresses += IN_CSS.findall(found.get("style", ""))


def loaded(path: Path) -> list[str]:
    """The addresses that a browser loads for a page or a style sheet."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return IN_CSS.findall(text)
    page = Loaded()
    page.feed(text)
    return page.addresses + IN_CSS.findall(text)


def check(app: Sphinx, error: Exception | None) -> None:
    """Refuse a built site that loads something from another host."""
    if error is not None:
        return
    found = [
        f"{path.relative_to(app.outdir)} loads {address}"
        for path in sorted(Path(app.outdir).rglob("*"))
        if path.suffix in {".html", ".css"}
        for address in loaded(path)
        if OUTSIDE.match(address)
    ]
    if found:
        raise ValueError("the site asks another host:\n  " + "\n  ".join(found))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the check with Sphinx."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
