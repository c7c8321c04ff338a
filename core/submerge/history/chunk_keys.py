"""ChunkKeys: names for rows, by which they count once, whatever the file's form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.history.recording import Recorded
from submerge.protocol.history import Chunk

ROWS = 65536

FORM = b"submerge chunk 1\n"


class ChunkKeys:
    """Makes the chunks of rows, of channels with such names, that come file by file."""

    def __init__(self, names: Sequence[str]) -> None:
        self._head = FORM + json.dumps(list(names)).encode() + b"\n"
        self._hash = hashlib.sha256(self._head)
        self._open: Chunk | None = None
        self._done: list[Chunk] = []

    def add(self, recorded: Recorded) -> None:
        """Take rows that follow those before, or the first of another file."""
        start = 0
        while start < len(recorded.rows):
            chunk = self._open
            if chunk is not None and (_whence(chunk) != _whence(recorded) or chunk.rows == ROWS):
                self._close()
                chunk = None
            stop = min(len(recorded.rows), start + ROWS - (0 if chunk is None else chunk.rows))
            times = None if recorded.times is None else recorded.times[start:stop]
            if chunk is None:
                self._hash.update(b"rows\n" if times is None else b"times and rows\n")
            self._hash.update(_bytes(recorded.rows[start:stop], times).data)
            last = np.nan if times is None else float(times[-1])
            if chunk is None:
                first = np.nan if times is None else float(times[0])
                chunk = Chunk(b"", recorded.machine, 0, first, last, recorded.file)
            self._open = replace(chunk, rows=chunk.rows + stop - start, last=last)
            start = stop

    def end(self) -> tuple[Chunk, ...]:
        """Return all chunks, by key; the same rows once."""
        self._close()
        by_key = {chunk.key: chunk for chunk in reversed(self._done)}
        return tuple(by_key[key] for key in sorted(by_key))

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(replace(self._open, key=self._hash.digest()))
        self._hash, self._open = hashlib.sha256(self._head), None


def _whence(rows: Chunk | Recorded) -> tuple[str, str]:
    return rows.machine, rows.file


def _bytes(rows: Array, times: Array | None) -> npt.NDArray[np.float64]:
    """Return rows as what is hashed; a gap is a gap, whatever its bits are, and so is zero."""
    first = 0 if times is None else 1
    plain = np.empty((len(rows), first + rows.shape[1]), dtype="<f8")
    if times is not None:
        np.add(times, 0.0, out=plain[:, 0])
    np.add(rows, 0.0, out=plain[:, first:])
    gaps = np.isnan(plain)
    if gaps.any():
        plain[gaps] = np.nan
    return plain
