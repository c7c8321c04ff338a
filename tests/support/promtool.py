"""Prometheus's own tool, which reads what Prometheus will read."""

from __future__ import annotations

import os
import shutil

import pytest

PROMTOOL = shutil.which("promtool") or "promtool"

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None and os.environ.get("SUBMERGE_LIVE") != "required",
    reason="needs Prometheus's promtool: apt-get install prometheus",
)
"""Leaves a test out where it is missing; not where tests of real programs are required."""
