"""Where a configuration is written: checked before the work, and written whole after it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from submerge import UsageError
from submerge_client.atomic_file import atomic_write
from submerge_operate.up.config import load


def check_place(path: Path, *, replace: bool) -> None:
    """Refuse a file that could not be written, before anything is listened to.

    Raises
    ------
    UsageError
    """
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"--config must be a file, got the folder {path}: add a name, box.toml")
    if path.exists() and not replace:
        raise UsageError(
            f"{path} is there already: expected a new file; add --replace to write over it,"
            " or name another with --config"
        )
    if not folder.is_dir():
        raise UsageError(f"expected the folder of {path}, got none: make it (mkdir -p {folder})")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(
            f"expected to write {path}, got no permission in {folder.absolute()}:"
            " change to a folder of yours, or name one with --config"
        )


def save(path: Path, text: str) -> None:
    """Write a configuration that `submerge up` loads, whole or not at all.

    Raises
    ------
    UsageError
        If it would not load, or cannot be written.
    """
    _check(text)
    try:
        atomic_write(path, text.encode())
    except OSError as error:
        raise UsageError(
            f"expected to write {path}, got: {error.strerror}: name another place with --config"
        ) from error


def _check(text: str) -> None:
    """Load it from a file of its own, without the environment, which may not be that of `up`."""
    with tempfile.TemporaryDirectory(prefix="submerge-init-") as folder:
        path = Path(folder) / "box.toml"
        path.write_text(text, encoding="utf-8")
        try:
            load(path, {})
        except UsageError as error:
            why = str(error).replace(f"{path}: ", "")
            raise UsageError(f"this cannot be configured: {why}") from error
