"""StateRecords: a client's records, as they stand in a Flower context between two instructions.

It is a checkpoint without a file: Flower stores the context when an instruction has been carried
out, and hands it over with the next one. Beside the records there is how many rows were taken from
the client's own source: they are kept together or not at all, so that no row is taken twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from submerge.protocol.machine import Key

TAKEN = "taken"
PREFIX = "record/"


class StateRecords:
    """A `submerge_client.disk.RecordFile` in memory.

    Parameters
    ----------
    values : mapping
        What a context's record held; {} at first.

    Attributes
    ----------
    taken : int
        Rows of the client's source that were read.
    notes : list of str
        Always empty: Flower's state is whole, or not there.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.notes: list[str] = []
        taken = values.get(TAKEN, 0)
        self.taken = taken if isinstance(taken, int) else 0
        self._records: dict[Key, bytes] = {
            tuple(name.removeprefix(PREFIX).split("/")): data
            for name, data in values.items()
            if name.startswith(PREFIX) and isinstance(data, bytes)
        }

    def load(self) -> dict[Key, bytes]:
        """Return all records."""
        return dict(self._records)

    def write(self, records: Mapping[Key, bytes], form: int = 1) -> None:
        """Take all records, in place of those before; `form` is of a file, and ignored."""
        self._records = dict(records)

    def close(self) -> None:
        """Do nothing: there is no file."""

    @property
    def values(self) -> dict[str, Any]:
        """What the context's record is to hold.

        A record of no bytes is one of default values, and reads as a missing one. It is left out:
        Flower cannot count the bytes of an empty value.
        """
        kept = {PREFIX + "/".join(key): data for key, data in self._records.items() if data}
        return {TAKEN: self.taken, **kept}
