"""The two files: what was heard, and which channels were accepted.

Both are JSON, {"form": 1, "channels": [...]}, and replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from submerge import UsageError
from submerge_client.atomic_file import atomic_write
from submerge_operate.up.newcomers.newcomer import Newcomer

HEARD, ACCEPTED = "newcomers.json", "channels.json"

FORM = 1


class _Content(msgspec.Struct, frozen=True):
    form: int
    channels: tuple[Newcomer, ...]


def read(path: Path) -> tuple[Newcomer, ...]:
    """Return the fields in a file; none if there is no file.

    Raises
    ------
    UsageError
        If it is damaged, or cannot be read.
    """
    try:
        content = msgspec.json.decode(path.read_bytes(), type=_Content)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError) as error:
        raise _refusal(path, str(error)) from error
    if content.form != FORM:
        raise _refusal(path, f"form {content.form}")
    return content.channels


def write(path: Path, fields: Sequence[Newcomer]) -> None:
    """Replace a file. OSError if that fails: the file stays as it was."""
    content = msgspec.json.encode(_Content(FORM, tuple(fields)))
    atomic_write(path, msgspec.json.format(content, indent=1) + b"\n", mode=0o600)


def _refusal(path: Path, got: str) -> UsageError:
    return UsageError(
        f"{path}: expected JSON of channels, form {FORM}, as submerge up writes it, got: {got};"
        " restore it, or delete it: its channels are then new again"
    )
