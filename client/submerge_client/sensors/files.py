"""FileReplay: the rows of files in their order, at any speed, as if from a sensor.

1. Columns are found by name: each channel has one, and others are ignored. A file without a
   header, or a schema without names, goes by position: the width must fit.
2. At `speed` rows a second, no row comes before its time or more than a twentieth of a second
   after it; after a second of delay the schedule moves. At 0, rows come as fast as they are taken.
3. The constructor opens every file. `read` raises a UsageError with the place of a bad number.
"""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from submerge import Array, Channel
from submerge.headings import called
from submerge_client.config.sensors import FileSensor
from submerge_client.datasets import Flow
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import columns_but
from submerge_client.sensors.tally import SensorLog, no_log

TOGETHER_S = 0.05  # rows that are due within this time are handed over together

BEHIND_S = 1.0
BLOCK = 64


class FileReplay:
    """Rows from files; counts "passes" over all, "zeros" as gaps, and "late" by over 1 s."""

    def __init__(
        self,
        channels: Sequence[str],
        config: FileSensor,
        *,
        note: SensorLog = no_log,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        self._speed, self._loop = config.speed, config.loop
        self._zero_is_missing = config.zero_is_missing
        self._clock = clock
        self._wait = wait
        self.counts = {"passes": 0, "zeros": 0, "late": 0}
        self._flows: list[tuple[Flow, list[int]]] = []
        for path in config.paths:
            flow = Flow.of(path)
            for remark in flow.notes:
                note("replay", file=flow.path.name, remark=remark)
            self._flows.append((flow, _columns(flow, channels, config.skip)))

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        due = self._clock()
        for rows in self._pieces():
            if self._speed:
                due = self._when_due(due + (len(rows) - 1) / self._speed, stop) + 1 / self._speed
            if stop.is_set():
                return
            hand(rows)

    def _pieces(self) -> Iterator[Array]:
        most = 1 + int(self._speed * TOGETHER_S) if self._speed else BLOCK
        while True:
            for flow, used in self._flows:
                for rows in flow.blocks(used):
                    if self._zero_is_missing:
                        zeros = rows == 0
                        self.counts["zeros"] += int(np.count_nonzero(zeros))
                        rows = np.where(zeros, np.nan, rows)
                    for begin in range(0, len(rows), most):
                        yield rows[begin : begin + most]
            self.counts["passes"] += 1
            if not self._loop:
                return

    def _when_due(self, due: float, stop: threading.Event) -> float:
        """Wait until rows are due; return that time, or now if that was long ago."""
        now = self._clock()
        while now < due and not stop.is_set():
            self._wait(stop, due - now)
            now = self._clock()
        if now - due <= BEHIND_S:
            return due
        self.counts["late"] += 1
        return now


def _columns(flow: Flow, channels: Sequence[str], skip: Collection[str]) -> list[int]:
    left = columns_but(flow.path, flow.names, skip)
    # A heading may have a unit beside the channel's name.
    named = called([Channel(name) for name in channels], [flow.names[i] for i in left])
    places = dict(zip(named, left, strict=True))
    nameless = list(channels) == [f"x{i}" for i in range(len(channels))]
    if flow.named and (not nameless or places.keys() >= set(channels)):
        for name in channels:
            if name not in places:
                near = difflib.get_close_matches(name, places, n=1)
                has = ", ".join(list(places)[:10]) + ", …" * (len(places) > 10)
                raise refusal(
                    flow.path,
                    expected=f"a column {name!r} for the channel of that name",
                    got="no such column",
                    hint=f"did you mean {near[0]!r}?" if near else f"it has {has}",
                )
        return [places[name] for name in channels]
    if len(left) != len(channels):
        raise refusal(
            flow.path,
            expected=f"{len(channels)} columns, one a channel",
            got=str(len(left)),
            hint="give it a header with the channels' names, or skip columns",
        )
    return left
