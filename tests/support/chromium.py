"""Debian's Chromium, driven by Playwright: one for all tests of a process.

Playwright's own browsers cannot be downloaded everywhere, and one is not needed: the page is made
of what every browser has.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

PROGRAM = shutil.which("chromium")
"""Where it is, or None."""

REQUIRED = os.environ.get("SUBMERGE_LIVE") == "required"
"""Whether tests of real programs must not be left out."""

STRANGER = "stranger.example"
"""A name that leads to this machine: another site than the page's. No other name leads anywhere."""

NAMES = f"MAP {STRANGER} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"

ARGUMENTS = (
    "--no-sandbox",  # a container has no user for it
    "--disable-dev-shm-usage",
    f"--host-resolver-rules={NAMES}",
)


def missing() -> str:
    """Return what is not there, and how to get it; "" if nothing is missing."""
    if PROGRAM is None:
        return "needs Chromium: apt-get install chromium"
    if importlib.util.find_spec("playwright") is None:
        return "needs Playwright: pip install 'submerge[dev]'"
    return ""


_loop: asyncio.AbstractEventLoop | None = None


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser; each test opens contexts of its own in it, which share nothing."""
    global _loop
    if why := missing():
        if REQUIRED:
            pytest.fail(why)
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        _loop = asyncio._get_running_loop()
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=[*ARGUMENTS])
        yield browser
        marks_loop(wanted=True)
        browser.close()
    _loop = None


def marks_loop(*, wanted: bool) -> None:
    """Mark Playwright's event loop as running, or let a test run one of its own.

    Between two calls Playwright leaves its loop marked, and relies on it; `asyncio.run` of a test
    that has no browser would find it, and refuse.
    """
    if _loop is not None:
        asyncio._set_running_loop(_loop if wanted else None)
