"""Metrics as rows, over pipes: what goes on, what makes rows, and what stops them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from submerge import UsageError
from submerge_client.config.sensors import InfluxSensor
from submerge_client.sensors.influx.outlet import MetricOutlet
from submerge_client.sensors.influx.readings import InfluxReadings
from support.patience import PATIENCE_S, until

CHANNELS = ("pump/flow", "pump/on", "plc.x/heat")
GOLDEN = b"""\
# from two plugins
pump,host=a flow=1.5,on=t,name="a b" 10
plc,host=a,tag=x heat=30i 10
nonsense
cpu,host=a,cpu=cpu0 usage=4 10
pump,host=b flow=NaN 20
pump flow=2,on=false 20\r
plc,tag=x heat=31u 20
\xff\xfe f=1 30
pump flow=3 30"""


class Run:
    """A sensor that reads a pipe in a thread of its own."""

    def __init__(self, *, processor: bool = True, wait_s: float = 60.0, **config) -> None:
        here, self.into = os.pipe()
        self.stream = os.fdopen(here, "rb", 0)
        self.end, self.out = os.pipe()
        self.outlet = MetricOutlet(self.out) if processor else None
        self.noted, self.blocks, self.error = [], [], None
        self.stop = threading.Event()
        self.sensor = InfluxReadings(
            CHANNELS,
            InfluxSensor(**config),
            stream=self.stream,
            outlet=self.outlet,
            note=lambda what, **facts: self.noted.append((what, facts)),
            gather_s=wait_s,
        )
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        try:
            self.sensor.read(lambda rows, **_: self.blocks.append(rows), self.stop)
        except UsageError as error:
            self.error = error

    @property
    def rows(self) -> np.ndarray:
        return np.concatenate([np.empty((0, 3)), *self.blocks])

    def write(self, data: bytes) -> None:
        os.write(self.into, data)

    def end_input(self) -> None:
        os.close(self.into)
        self.into = -1

    def over(self) -> bytes:
        """End the input, wait for the sensor, and return what went on."""
        if self.into >= 0:
            self.end_input()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()
        if self.outlet is not None:
            self.outlet.finish()
        os.close(self.out)
        self.out = -1
        seen = b""
        while self.end >= 0 and (piece := os.read(self.end, 1 << 16)):
            seen += piece
        return seen

    def close(self) -> None:
        self.stop.set()
        if self.into >= 0:
            self.end_input()
        self.thread.join(PATIENCE_S)
        self.stream.close()
        if self.outlet is not None:
            self.outlet.waker.close()
        for descriptor in (self.end, self.out):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def run() -> Iterator:
    made: list[Run] = []

    def begin(**settings) -> Run:
        made.append(Run(**settings))
        return made[-1]

    yield begin
    for each in made:
        each.close()


@pytest.mark.parametrize("processor", [True, False])
def test_golden(run, processor):
    """Every byte goes on, also of lines that mean nothing; an output prints nothing."""
    one = run(processor=processor)
    one.write(GOLDEN)
    seen = one.over()

    assert (GOLDEN if processor else b"") == seen
    expected = [[1.5, 1.0, 30.0], [2.0, 0.0, 31.0], [3.0, np.nan, np.nan]]
    np.testing.assert_array_equal(expected, one.rows)
    assert 3 == one.sensor.counts["malformed"]
    assert ("no channels of the schema, ignored", {"names": "cpu.cpu0/usage"}) in one.noted
    if processor:
        assert [10, 20, 30] == [one.outlet.times.of(row) for row in range(3)]


def test_at_once(run):
    """A metric goes on before its row is closed, and a part of a line before the line is."""
    one = run()
    one.write(b"pump flow=1 10\npump fl")

    assert b"pump flow=1 10\npump fl" == os.read(one.end, 1 << 16)
    assert 0 == len(one.rows)


def test_closed_by_time(run):
    """A row closes `gather_s` after its first line, although nothing comes any more."""
    one = run(wait_s=0.01)
    one.write(b"pump flow=1 10\n")

    until(lambda: len(one.rows) == 1)
    np.testing.assert_array_equal([[1.0, np.nan, np.nan]], one.rows)


@pytest.mark.slow
def test_stops_reading(run):
    """While its reader takes nothing the sensor reads no more, and all goes on when it does."""
    one, line = run(), b"pump flow=1 %d\n"
    sent = b"".join(line % i for i in range(40_000))
    writer = threading.Thread(target=_write_all, args=(one.into, sent))
    one.into = -1
    writer.start()
    until(lambda: one.outlet.counts["blocked"] == 1)
    held = len(one.rows)
    seen = b""
    while len(seen) < len(sent):
        seen += os.read(one.end, 1 << 16)
    writer.join(PATIENCE_S)
    one.over()

    assert sent == seen
    # Two pipes of 64 KiB, and one chunk, are in transit: the rest had not been read.
    assert 0 < held * len(line) < 1 << 18
    assert 40_000 == len(one.rows)


def test_reader_gone(run):
    """Without a reader it stops by itself, when what it has read is handed over."""
    one = run()
    one.write(b"pump flow=1,on=t 10\n")
    until(lambda: not one.outlet.is_waiting)
    os.close(one.end)
    one.end = -1
    one.thread.join(PATIENCE_S)

    assert "expected a reader of standard output, got: its reader has ended" in str(one.error)
    assert 1 == len(one.rows)


def test_stopped(run):
    """When it is stopped, what its pipe holds still goes on and is handed over."""
    one = run()
    one.write(b"pump flow=1 10\npump flow=2 20\n")
    one.stop.set()
    one.thread.join(PATIENCE_S)

    assert b"pump flow=1 10\npump flow=2 20\n" == one.over()
    assert 2 == len(one.rows)


def test_without_times(run):
    """Lines without a time are a row of the time at which they come."""
    one = run(precision="ms", processor=False)
    one.write(b"pump flow=1,on=f\nplc,tag=x heat=2\n")
    one.over()

    np.testing.assert_array_equal([[1.0, 0.0, 2.0]], one.rows)


def test_unusable(run):
    """A number that no engine takes is counted; a word is a number where the settings say so."""
    one = run(states={"open": 4.0}, processor=False)
    one.write(b'pump flow=1e300,on="open" 10\nplc,tag=x heat="no" 10\n')
    one.over()

    np.testing.assert_array_equal([[np.nan, 4.0, np.nan]], one.rows)
    assert 1 == one.sensor.counts["unusable"]


def _write_all(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb", 0) as stream:
        left = memoryview(data)
        while left:
            left = left[stream.write(left) :]
