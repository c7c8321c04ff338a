"""Settings for all tests. `HYPOTHESIS_PROFILE=thorough` searches thirty times longer."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Before NumPy loads: threads that wait for one another make small matrices slow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Before scipy loads: scikit-learn skips its array API check without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# No deadline: a shared machine's hiccup is not a failure.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A test that starts a program's log leaves none to the next."""
    log = logging.getLogger("submerge")
    handlers, level, propagate = log.handlers[:], log.level, log.propagate
    yield
    log.handlers[:], log.propagate = handlers, propagate
    log.setLevel(level)
