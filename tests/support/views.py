"""The page's views: where each is, and how one sees that it is drawn."""

from __future__ import annotations

from typing import Any

from support.paged_fleet import OPEN

VIEWS = {
    "now": ("/?group=room", "#state:not(:empty)"),
    "fleet": ("/fleet?group=room", "#nodes tbody tr"),
    "tree": ("/fleet?group=room&as=tree", "#tree tbody tr"),
    "node": (f"/node?group=room&node={OPEN}", "#whole:not([hidden]) #alarms table"),
    "alarms": ("/alarms?group=room", "#ended table"),
    "model": ("/model?group=room", "#parts:not([hidden]) #spectrum figure"),
    "health": ("/health?group=room", "#health dl, #health table"),
    "login": ("/login", "#token"),
    "unknown": ("/nowhere", "main h1"),
}


def opened(page: Any, origin: str, view: str) -> Any:
    """Open a view, wait until it is drawn, and return the page."""
    path, drawn = VIEWS[view]
    page.goto(origin + path)
    page.wait_for_selector(drawn)
    return page
