"""Third-party data sets, which are never committed: tests skip where they are missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(
    os.environ.get("SUBMERGE_DATA") or Path(__file__).parents[2].parent / "shared" / "data"
)


def shared(name: str) -> Path:
    """Return the path of a shared data set; skip the test, naming it, if it is not here."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return path
