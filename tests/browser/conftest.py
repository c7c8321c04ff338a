"""Browsers at a page: each context is watched, and what goes wrong in it fails its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.guarded import Guarded
from support.paged_fleet import AT, PagedFleet


@pytest.fixture
def visit(chromium: Any, request: Any) -> Iterator[Callable[..., Guarded]]:
    """Open a context of a browser, as `Guarded` does; it is closed, and judged, in the end.

    It may look at a fleet, by default the test's `fleet`, unless `stranger`. A test names it last:
    the browser lets go of a page's server before that ends.
    """

    def opens(*, fleet: Any = None, stranger: bool = False, **how: Any) -> Guarded:
        visited = visits.enter_context(Guarded(chromium, **{"at": AT} | how))
        if fleet is None and "fleet" in request.fixturenames:
            fleet = request.getfixturevalue("fleet")
        if fleet is not None and not stranger:
            visited.has_session(fleet, "read", "views")
        return visited

    with ExitStack() as visits:
        yield opens


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[PagedFleet]:
    """A root with a page, and nodes that report to it."""
    with PagedFleet(tmp_path) as fleet:
        yield fleet
