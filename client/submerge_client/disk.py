"""RecordStore: a client's records in memory, in step with its checkpoint file.

A client can do without its records: it loses at most what it gathered since the newest one. So a
disk that is full or read-only is logged once, tried again with the next record, and never stops
the node.

A version before whole scatters would take a record with one for damage, delete it, and lose its
readings in silence. Where a record holds one, the file is therefore of form 2, which that version
refuses by name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from submerge import PeerError, UsageError
from submerge.client.fleet_view import MODEL
from submerge.protocol.machine import Keep, Key, Records
from submerge_client.checkpoint import FORM, FORM_1
from submerge_client.logs import say
from submerge_proto.kept import records
from submerge_proto.kept.client import has_whole_scatter


class RecordFile(Protocol):
    """Where a whole state is written, and read again; `CheckpointFile` is one.

    notes : The damage that the last `load` found.
    """

    notes: list[str]

    def load(self) -> dict[Key, bytes]:
        """Return the newest state; {} if there is none."""

    def write(self, records: Mapping[Key, bytes], form: int = FORM_1) -> None:
        """Keep this state, in place of the one before."""

    def close(self) -> None:
        """Release it."""


class RecordStore:
    """The records that a client keeps.

    file : None: nothing outlives the process.

    lost : Why nothing more is kept: another file has taken the name of this one.
    """

    def __init__(self, file: RecordFile | None) -> None:
        self._file = file
        self.lost: UsageError | None = None
        self._packed: dict[Key, bytes] = {}
        self._whole: set[Key] = set()  # keys of records with a whole scatter
        self._written = True
        self._failed = False

    def load(self) -> Records:
        """Return the kept records, without those that cannot be read."""
        if self._file is None:
            return {}
        kept = {}
        try:
            self._packed = dict(self._file.load())
        except OSError as error:
            say("checkpoint unreadable", level=logging.WARNING, why=str(error))
        for note in self._file.notes:
            say("checkpoint damaged", level=logging.WARNING, why=note)
        for key, data in list(self._packed.items()):
            try:
                kept[key] = records.unpack(key, data)
                self._note(key, kept[key])
            except PeerError as error:
                del self._packed[key]
                say("record damaged", level=logging.WARNING, key="/".join(key), why=str(error))
        return kept

    def keep(self, effect: Keep) -> None:
        """Write records; on disk when this returns, unless the disk fails."""
        for key, record in effect.records.items():
            self._note(key, record)
            if record is None:
                self._packed.pop(key, None)
            else:
                self._packed[key] = records.pack(key, record)
        self._written = False
        # A model alone can wait for the next record: that spares the card a write.
        if set(effect.records) != {MODEL}:
            self.flush()

    @property
    def is_written(self) -> bool:
        """Whether the file holds the newest records."""
        return self._file is not None and self._written

    def flush(self) -> None:
        """Write what waits."""
        if self._file is None or self._written:
            return
        try:
            self._file.write(self._packed, FORM if self._whole else FORM_1)
        except OSError as error:
            if not self._failed:
                self._failed = True
                say("checkpoint not written", level=logging.ERROR, why=str(error))
            return
        except UsageError as error:
            # Another file has its name: the program ends, after its last report.
            self.lost, file, self._file = error, self._file, None
            file.close()
            return
        if self._failed:
            say("checkpoint written again")
        self._written, self._failed = True, False

    def _note(self, key: Key, record: Any | None) -> None:
        """Remember whether this record holds a whole scatter."""
        if has_whole_scatter(record):
            self._whole.add(key)
        else:
            self._whole.discard(key)

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
