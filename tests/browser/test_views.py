"""Each view, as a person finds it: drawn, readable in the dark and on a phone, and in order."""

from __future__ import annotations

import pytest

from support.axe import violations
from support.paged_fleet import PagedFleet
from support.views import VIEWS, opened

pytestmark = pytest.mark.slow

PHONE = {"width": 375, "height": 740}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """One for all tests here: they only look."""
    with PagedFleet(tmp_path_factory.mktemp("root")) as fleet:
        yield fleet


def looked(fleet, visit, view, **how):
    visited = visit(**how)
    if view == "unknown":
        visited.expects("404 GET /nowhere")
    return opened(visited.page(), fleet.origin, view)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave(fleet, visit, view, scheme):
    """Contrast in both colour schemes among what it looks for."""
    assert [] == violations(looked(fleet, visit, view, color_scheme=scheme))


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_scrolls_no_page_sideways(fleet, visit, view):
    page = looked(fleet, visit, view, viewport=PHONE)

    assert 375 == page.evaluate("document.documentElement.scrollWidth")
