"""SharedPoints: the file that says how many readings have left the client as they are.

It is beside the checkpoint, and is on the disk before the readings go. Without it, or damaged, the
budget counts as spent from now on; a client that has never shared has no file.
"""

from __future__ import annotations

import logging
from pathlib import Path

from submerge_client.atomic_file import atomic_write
from submerge_client.logs import say

MOST_BYTES = 1 << 16


class SharedPoints:
    """The record of `submerge.jobs.point_budget.PointBudget`, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> bytes | None:
        """Return the record; None before the first reading is shared."""
        try:
            with self._path.open("rb") as file:
                return file.read(MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            say("shared points unreadable", level=logging.WARNING, why=str(error))
            return b""  # no record: the budget counts as spent

    def write(self, record: bytes) -> None:
        """Replace the record.

        Raises OSError if it cannot be written: nothing may be shared then.
        """
        atomic_write(self._path, record, mode=0o600)
