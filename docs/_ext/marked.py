"""Figures of other code, marked in the site: a Sphinx extension.

Pages that are made from measurements have the same bytes for the same JSON. The site is built from
a working tree, so there they also say which figures are of code that has changed since. Other pages
of figures have marks (`benchmarks/recorded.py`), and those of other code become a sentence.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        if name.startswith("benchmarks/"):
            source[0] = _recorded().marked(source[0])
        return
    # A process of its own: the benchmarks' folder has modules of common names.
    made = subprocess.run(  # noqa: S603 (our own)
        [sys.executable, str(ROOT / MADE[name]), "--marked"],
        capture_output=True,
        text=True,
        check=True,
    )
    source[0] = made.stdout


@cache
def _recorded() -> Any:
    """Return the module that reads the marks of pages."""
    sys.path.append(str(ROOT / "benchmarks"))
    return importlib.import_module("recorded")


def setup(app: Sphinx) -> dict[str, bool]:
    """Mark each page as it is read."""
    app.connect("source-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
