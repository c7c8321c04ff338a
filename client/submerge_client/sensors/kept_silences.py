"""KeptSilences: the usual silences of channels in a small file, so that a restart knows them.

Without it, a restart holds each value for `silences.FIRST_S` again. The file is beside the client's
checkpoint, and holds JSON: {"form": 1, "longest_s": {"bath/temperature": 600.0}}.

1. It is written when the sensor ends, and at most once in `WRITE_S`: cards wear.
2. A file that is missing, damaged or of another form is as none; it is replaced.
3. Only channels of the schema are read. Values are not kept: after a restart a channel is a gap
   until its device speaks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from submerge_client.atomic_file import atomic_write
from submerge_client.sensors.silences import MOST_S, Silences
from submerge_client.sensors.tally import SensorLog

WRITE_S = 6 * 3600.0

LARGEST = 1 << 20
"""Bytes; a longer file is not ours."""


class KeptSilences:
    """Silences that outlive the process.

    path : None keeps nothing.
    channels : Their names, in the order of `silences`.
    silences : Takes what the file knows.
    note : Takes remarks for the log.
    now : Seconds on any steady clock.
    """

    def __init__(
        self,
        path: Path | None,
        channels: Sequence[str],
        silences: Silences,
        *,
        note: SensorLog,
        now: float,
    ) -> None:
        self._path, self._channels, self._silences = path, tuple(channels), silences
        self._note, self._due_at, self._failed = note, now + WRITE_S, False
        known = {} if path is None else _read(path)
        for place, name in enumerate(channels):
            seconds = known.get(name)
            if isinstance(seconds, float | int) and 0 < seconds <= MOST_S:
                silences.recall(place, float(seconds))
        self._written = silences.longest_s.copy()

    def write(self, now: float = math.inf) -> None:
        """Write the file if it is due, and anything has changed; without `now`, it is due."""
        if self._path is None or now < self._due_at:
            return
        self._due_at = now + WRITE_S
        longest = self._silences.longest_s
        if (longest == self._written).all():
            return
        known = {name: s for name, s in zip(self._channels, longest.tolist(), strict=True) if s > 0}
        try:
            atomic_write(
                self._path, json.dumps({"form": 1, "longest_s": known}).encode(), mode=0o600
            )
        except OSError as error:
            if not self._failed:
                self._note("silences not written", path=str(self._path), why=str(error))
            self._failed = True
            return
        self._written, self._failed = longest.copy(), False


def _read(path: Path) -> dict[str, object]:
    """Return the silences in a file by name; {} if it is not such a file."""
    try:
        with path.open("rb") as file:
            content = msgspec.json.decode(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.get("form") != 1:
        return {}
    known = content.get("longest_s")
    return known if isinstance(known, dict) else {}
