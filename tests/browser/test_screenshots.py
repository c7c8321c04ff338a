"""The pictures of the page in the docs: drawn from the same fleet each time.

They go to `build/pictures`; `SUBMERGE_PICTURES=docs` has them replace those that the docs show.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.nodes import EPOCH
from support.paged_fleet import EVERY_S, PagedFleet
from support.views import opened

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WHERE = ROOT / os.environ.get("SUBMERGE_PICTURES", "build/pictures")
SIX_HOURS = 12
"""Reports of each node in that time, and a little more."""

AT = EPOCH + 100.0 + SIX_HOURS * EVERY_S + 1.0
SIZE = {"width": 1100, "height": 760}
PICTURES = {
    "page-now": ("now", "light", "main", ".heatmap canvas"),
    "page-node": ("node", "dark", "#newest-part", "#blame .bars tbody"),
    "page-model": ("model", "light", "main", "#loadings .bars tbody"),
}
"""What each shows: a view, in which colours, from which part on, and what is drawn last in it."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    with PagedFleet(tmp_path_factory.mktemp("root"), rounds=SIX_HOURS) as fleet:
        yield fleet


@pytest.mark.parametrize("name", PICTURES)
def test_a_view_is_drawn(fleet, visit, name):
    """Some of it is drawn in each of many colours: it is neither blank nor an error."""
    view, scheme, part, last = PICTURES[name]
    visited = visit(at=AT, color_scheme=scheme, viewport=SIZE)
    visited.has_session(fleet, "operate", "anna")
    page = opened(visited.page(), fleet.origin, view)
    if view == "now":
        page.click("#hours button:has-text('6 h')")
    page.wait_for_selector(last)
    if view == "now":
        page.wait_for_selector("#worst canvas")
    page.locator(part).evaluate("(part) => part.scrollIntoView()")
    page.mouse.move(0, 0)
    WHERE.mkdir(parents=True, exist_ok=True)
    path = WHERE / f"{name}.png"
    page.screenshot(path=path, animations="disabled", caret="hide")

    assert path.stat().st_size > 20_000


@pytest.mark.parametrize("name", PICTURES)
def test_the_docs_show_it(name):
    """The picture is there, and the page on the page refers to it in words."""
    picture = (ROOT / "docs" / f"{name}.png").read_bytes()
    width, height = (int.from_bytes(picture[at : at + 4]) for at in (16, 20))

    assert (b"\x89PNG", (SIZE["width"], SIZE["height"])) == (picture[:4], (width, height))
    assert f"]({name}.png)" in (ROOT / "docs" / "page.md").read_text()
