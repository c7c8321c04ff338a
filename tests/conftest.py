"""Settings for all tests. `HYPOTHESIS_PROFILE=thorough` searches thirty times longer."""

from __future__ import annotations

import os

from hypothesis import settings

# Before NumPy loads: threads that wait for one another make small matrices slow.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Before scipy loads: scikit-learn skips its array API check without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# No deadline: a shared machine's hiccup is not a failure.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
