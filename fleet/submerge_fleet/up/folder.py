"""make_folder(): the folder of a machine's files, or one line on why there is none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from submerge import UsageError


def make_folder(folder: Path, *, owner: str | None = None) -> None:
    """Make the folder where a machine keeps what it knows, and check that it may write there.

    owner : who gets a folder that is made here; by default this process's user

    Raises
    ------
    UsageError
        If it cannot.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if owner is not None:
            for each in missing:
                shutil.chown(each, owner)
    except OSError as error:
        raise _refusal(folder, error.strerror or str(error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refusal(folder, "this user may not write there")


def _refusal(folder: Path, why: str) -> UsageError:
    return UsageError(
        f"expected a folder to write in, folder = {str(folder)!r}, got: {why}; name another as"
        " `folder`, or change its owner (chown)"
    )
