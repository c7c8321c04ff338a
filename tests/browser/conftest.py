"""Browsers at a page: each context is watched, and what goes wrong in it fails its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.guarded import Guarded
from support.paged import Paged
from support.paged_fleet import SCHEMA, inhabit

NOT_YET = (
    "GET /data/scores/",
    "GET /api/scores/",
    "GET /api/past-alarms/",
    "GET /api/versions/",
    "GET /api/settings/",
    "GET /api/recent/",
    "GET /api/values/",
)


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Guarded]]:
    """Open a context of a browser, as `Guarded` does; it is closed, and judged, in the end.

    A test names it last: the browser lets go of a page's server before that ends.
    """
    with ExitStack() as visits:

        def begun(**how: Any) -> Guarded:
            guarded = visits.enter_context(Guarded(chromium, **how))
            guarded.expects(*NOT_YET)
            return guarded

        yield begun


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Paged]:
    """A root with a page, and nodes that report to it."""
    with Paged(tmp_path, schema=SCHEMA) as paged:
        inhabit(paged.house)
        yield paged
