"""Figures of other code, marked in the site: a Sphinx extension.

Pages that are made from measurements have the same bytes for the same JSON. The site is built from
a working tree, so there they also say which figures are of code that has changed since.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]

MADE = {
    "benchmarks/evidence": "benchmarks/evidence/page.py",
    "benchmarks/papers": "benchmarks/papers/page.py",
}
"""By page, the command that makes it."""


def mark(_: Sphinx | None, name: str, source: list[str]) -> None:
    """Put a page that is made from measurements in place of its committed text."""
    if name not in MADE:
        return
    # A process of its own: the benchmarks' folder has modules of common names.
    made = subprocess.run(  # noqa: S603 (our own)
        [sys.executable, str(ROOT / MADE[name]), "--marked"],
        capture_output=True,
        text=True,
        check=True,
    )
    source[0] = made.stdout


def setup(app: Sphinx) -> dict[str, bool]:
    """Mark each page as it is read."""
    app.connect("source-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
