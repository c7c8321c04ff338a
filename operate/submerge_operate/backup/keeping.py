"""Dated copies in one folder: their names, and which are removed."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

ENDING = ".backup"
DATED = r"\d{4}-\d\d-\d\dT\d{6}Z"

DEAD_S = 86_400.0
"""A file that a command has begun and not finished for so long is of one that was killed."""


def dated(folder: Path, node: str) -> Path:
    """Return the name of a copy that is made now."""
    return folder / f"{node}-{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}{ENDING}"


def remove_older(newest: Path, node: str, keep: int) -> list[Path]:
    """Remove copies of a node beyond so many, the oldest first; return them.

    newest : the one that was just made, which stays whatever the clock was
    """
    named = re.compile(rf"{re.escape(node)}-{DATED}{re.escape(ENDING)}")
    begun = re.compile(rf"\.{named.pattern}\.\d+\.part")
    folder = list(newest.parent.iterdir())
    others = sorted(each for each in folder if named.fullmatch(each.name) and each != newest)
    gone = others[: max(0, len(others) + 1 - keep)]
    for each in gone:
        each.unlink(missing_ok=True)
    for each in folder:
        if begun.fullmatch(each.name):
            with suppress(OSError):
                if time.time() - each.stat().st_mtime > DEAD_S:
                    each.unlink()
    return gone
