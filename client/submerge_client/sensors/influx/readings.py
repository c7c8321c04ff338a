"""InfluxReadings: metrics of Telegraf, in line protocol on standard input, as rows.

1. As a processor, all bytes go on to standard output unchanged, before their lines are read
   (`outlet`). As an output, nothing is printed.
2. A metric's fields belong to channels by their names (`names`); lines of one timestamp make a row
   (`rows`), which closes after `gather_s`. A line that is no metric is counted and noted; it goes
   on all the same.
3. While something waits for the reader of standard output, nothing is read: the pipe fills, and
   Telegraf waits. The node goes on with the rows that it has.
4. At the end of the input, what waits goes on; when it is stopped, so does what the pipe holds. The
   rows are closed and handed over. Where the reader is gone, the sensor fails after that.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Sequence
from typing import BinaryIO

import numpy as np

from submerge import UsageError
from submerge_client.config.sensors import InfluxSensor
from submerge_client.sensors.gather import BLOCK, Hand
from submerge_client.sensors.influx.decoder import KINDS, MetricDecoder
from submerge_client.sensors.influx.outlet import MetricOutlet
from submerge_client.sensors.influx.rows import TimedRow, TimedRows
from submerge_client.sensors.lines import LineReader
from submerge_client.sensors.ndjson import CHUNK, PATIENCE_MS, readable
from submerge_client.sensors.tally import ProblemTally, SensorLog, no_log

LAST_BYTES = 1 << 16
"""What a pipe holds: so much is read after the sensor is stopped."""

FIRST_NAMES_S, NAMES_S = 5.0, 60.0
"""Seconds until the first log line with unknown names, and between two of them."""

MOST_NAMED = 20
"""Names in such a line."""


class InfluxReadings:
    """Rows from metrics.

    channels : The schema's names, in its order.
    stream : A pipe, file or terminal; standard input by default.
    outlet : Where all bytes go on to; None: nowhere.
    note : Takes remarks for the log.
    gather_s : How long a row waits for its lines.
    steady : A steady clock, in seconds.

    Raises UsageError if there is nothing to read from.
    """

    def __init__(
        self,
        channels: Sequence[str],
        config: InfluxSensor,
        *,
        stream: BinaryIO | None = None,
        outlet: MetricOutlet | None = None,
        note: SensorLog = no_log,
        gather_s: float = 0.0,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = readable(stream, "metrics in line protocol")
        self._outlet, self._note, self._steady = outlet, note, steady
        self._tally = ProblemTally(note, *KINDS)
        self._rows = TimedRows(len(channels), gather_s)
        self._decoder = MetricDecoder(channels, config, self._rows, self._tally)
        self._lines = LineReader()
        self._name_at = steady() + FIRST_NAMES_S

    @property
    def counts(self) -> dict[str, int]:
        """Lines and readings left out by reason, rows out of order, and the outlet's counts."""
        passed = {} if self._outlet is None else self._outlet.counts
        return {**self._tally.counts, **self._rows.counts, **passed}

    def read(self, hand: Hand, stop: threading.Event) -> None:
        """Hand over rows until the stream ends or `stop` is set.

        Raises UsageError if the reader of standard output is gone.
        """
        has_ended = False
        while not (has_ended or stop.is_set() or self._is_gone):
            if self._wait():
                has_ended = not self._read_once()
            self._hand(self._rows.take(self._steady()), hand)
            self._name_unknown()
        left = 0 if has_ended or self._is_gone else LAST_BYTES
        while left > 0 and self._has_input() and (size := self._read_once(left)):
            left -= size
        for number, line in self._lines.last():
            self._decoder.take(number, line, self._steady())
        self._hand(self._rows.take(self._steady(), all_of_them=True), hand)
        self._name_unknown(at_end=True)
        # The reader may still go on: it has time until a signal.
        while self._outlet is not None and self._outlet.is_waiting and not stop.is_set():
            self._wait()
        if self._outlet is not None and self._outlet.gone:
            raise UsageError(
                f"expected a reader of standard output, got: {self._outlet.gone};"
                " start what reads it again, and then this program"
            )

    # -- the pipes ---------------------------------------------------------------

    @property
    def _is_gone(self) -> bool:
        return self._outlet is not None and bool(self._outlet.gone)

    def _wait(self) -> bool:
        """Wait a little for input, or for the reader; return whether there is input to read."""
        wait_s = self._rows.due_at - self._steady()
        wait_ms = max(0.0, min(PATIENCE_MS, 1000.0 * wait_s))
        poll, outlet = select.poll(), self._outlet
        if outlet is None:
            poll.register(self._stream, select.POLLIN)
            return bool(poll.poll(wait_ms))
        poll.register(outlet.waker, select.POLLIN)
        # Of a pipe without a reader, poll says so whatever it is asked.
        poll.register(outlet, select.POLLOUT if outlet.is_waiting else 0)
        if not outlet.is_waiting:
            poll.register(self._stream, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(wait_ms)}
        outlet.waker.hush()
        outlet.write()
        if not outlet.is_waiting:
            outlet.look()
        return self._stream.fileno() in ready and not outlet.is_waiting

    def _has_input(self) -> bool:
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        return bool(poll.poll(0))

    def _read_once(self, most: int = CHUNK) -> int:
        """Read what there is; let it go on, and put its lines into rows. Return the bytes."""
        try:
            chunk = os.read(self._stream.fileno(), min(most, CHUNK))
        except BlockingIOError:
            return 1
        except OSError as error:
            self._note("input broke off", error=str(error))
            chunk = b""
        if chunk and self._outlet is not None:
            self._outlet.pass_on(chunk)
        now = self._steady()
        for number, line in self._lines.cut(chunk) if chunk else ():
            self._decoder.take(number, line, now)
        return len(chunk)

    # -- rows --------------------------------------------------------------------

    def _hand(self, rows: Sequence[TimedRow], hand: Hand) -> None:
        for begin in range(0, len(rows), BLOCK):
            block = rows[begin : begin + BLOCK]
            if self._outlet is not None:
                self._outlet.times.add([row.time for row in block])
            # They have waited for their lines; scores are to follow soon.
            hand(np.array([row.values for row in block], dtype=np.float64), waited=True)

    def _name_unknown(self, *, at_end: bool = False) -> None:
        """Log the names that the schema lacks, if it is time to."""
        now = self._steady()
        if now < self._name_at and not at_end:
            return
        self._name_at = now + NAMES_S
        names = self._decoder.take_unlisted()
        if names:
            some = ", ".join(names[:MOST_NAMED]) + ", …" * (len(names) > MOST_NAMED)
            self._note("no channels of the schema, ignored", names=some)
