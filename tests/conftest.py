"""Settings for all tests.

With `HYPOTHESIS_PROFILE=thorough` they search thirty times longer, with `few` a tenth as long.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from support.chromium import chromium, marks_loop  # noqa: F401 - a fixture
from support.written import file  # noqa: F401 - a fixture

# Before NumPy loads: threads that wait for one another make small matrices slow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Before grpc loads: its handlers of forks may abort a program that a test starts, before it is one.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# Before scipy loads: scikit-learn skips its array API check without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Programs that tests start inherit it, and one that is ignored stays so: under nohup, for one.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: a shared machine's hiccup is not a failure.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("few", deadline=None, print_blob=True, max_examples=10)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes hours, or tests tests, runs when it is asked for: `-m soak`."""
    if "soak" not in config.getoption("markexpr"):
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The browser's event loop seems to run in its own tests, and in no others."""
    marks_loop(wanted="chromium" in getattr(item, "fixturenames", ()))


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A test that starts a program's log leaves none to the next."""
    log = logging.getLogger("submerge")
    handlers, level, propagate = log.handlers[:], log.level, log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagate
    log.setLevel(level)
