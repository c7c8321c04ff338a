"""Where a picture may go: judged before the work."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from submerge import UsageError

PNG = b"\x89PNG\r\n\x1a\n"


def check_target(path: Path, *, inputs: Iterable[Path] = ()) -> None:
    """Refuse a place where a picture cannot go, or where it would destroy something.

    Only a new file or an older PNG may be written: a slip of the finger must not cost
    anyone the data that they came to look at.
    """
    if path.suffix.lower() != ".png":
        raise UsageError(f"expected a picture's name to end in .png, got {path}: rename it")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(
            f"expected a folder that can be written to, got {path.parent} for {path.name}:"
            " make it, or name another"
        )
    if any(given.exists() and path.exists() and path.samefile(given) for given in inputs):
        raise UsageError(f"{path} is read from, and would be overwritten: name another file")
    if path.exists():
        with path.open("rb") as file:
            if file.read(len(PNG)) not in (PNG, b""):
                raise UsageError(f"{path} exists and is no PNG: name another file, or remove it")
