"""The outlet: bytes go on as they came, ours stand between lines, and nothing is lost silently."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_client import logs
from submerge_client.sensors.influx.outlet import SLOW_S, MetricOutlet

SMALLEST = 4096
"""Bytes of the smallest pipe."""


class Pipe:
    """A pipe, the outlet at its one end, and a clock that the test moves."""

    def __init__(self) -> None:
        self.end, self.into = os.pipe()
        fcntl.fcntl(self.into, fcntl.F_SETPIPE_SZ, SMALLEST)
        os.set_blocking(self.end, False)
        self.now = 0.0
        self.outlet = MetricOutlet(self.into, steady=lambda: self.now)

    def read(self, most: int = 1 << 20) -> bytes:
        try:
            return os.read(self.end, most)
        except BlockingIOError:
            return b""

    def end_reading(self) -> None:
        os.close(self.end)
        self.end = -1

    def close(self) -> None:
        self.outlet.waker.close()
        for descriptor in (self.end, self.into):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


@pytest.fixture
def lines(caplog) -> Callable[[], list[str]]:
    """The log so far."""
    caplog.set_level("INFO", logs.log.name)
    return lambda: caplog.messages


def test_between_lines(pipe):
    """What is ours waits for the end of the line that goes on."""
    pipe.outlet.pass_on(b"one f=1 1\ntw")
    pipe.outlet.add(b"ours f=1 1\n")
    pipe.outlet.write()
    first = pipe.read()
    pipe.outlet.pass_on(b"o f=2 2\nthree f=")
    pipe.outlet.add(b"ours f=2 2\n")
    pipe.outlet.pass_on(b"3 3\n")

    assert b"one f=1 1\ntw" == first
    assert b"o f=2 2\nours f=1 1\nthree f=3 3\nours f=2 2\n" == pipe.read()


@given(st.lists(st.one_of(st.binary(max_size=9), st.just(None)), max_size=20))
def test_unchanged(steps):
    """However bytes are cut, and whatever comes between them, they are the same without ours."""
    pipe, ours = Pipe(), b"\xff\xfe ours\n"
    came = [step.replace(b"\xff", b"\n") for step in steps if step is not None]
    for step in steps:
        if step is None:
            pipe.outlet.add(ours)
        else:
            pipe.outlet.pass_on(step.replace(b"\xff", b"\n"))
    pipe.outlet.finish(0.0)
    seen = pipe.read()
    pipe.close()

    pieces = seen.split(ours)
    assert len(pieces) == steps.count(None) + 1
    assert all(piece.endswith(b"\n") for piece in pieces[:-1] if piece)
    whole = b"".join(pieces)
    added = not b"".join(came).endswith(b"\n") and whole.endswith(b"\n")
    assert b"".join(came) == (whole[:-1] if added else whole)


def test_blocked(pipe, lines):
    """A reader that takes nothing is said once, and so is its return; every byte arrives."""
    sent = b"m f=1 1\n" * 2000
    pipe.outlet.pass_on(sent)
    assert pipe.outlet.is_waiting
    assert "" == pipe.outlet.problem
    for _ in range(3):
        pipe.now += SLOW_S
        pipe.outlet.write()
    blocked = pipe.outlet.problem
    seen = b""
    while pipe.outlet.is_waiting:
        seen += pipe.read()
        pipe.outlet.write()
    seen += pipe.read()

    assert "standard output is blocked, reading stops" == blocked
    assert "" == pipe.outlet.problem
    assert (sent, 1) == (seen, pipe.outlet.counts["blocked"])
    assert "standard output is blocked: reading stops until its reader goes on" == lines()[0]
    assert ["standard output is read again"] == lines()[1:]


def test_gone(pipe, lines):
    """A reader that is gone is found out without a write; what can go nowhere is counted."""
    pipe.outlet.pass_on(b"m f=1 1\n" * 2000)
    pipe.end_reading()
    pipe.outlet.look()
    pipe.outlet.pass_on(b"m f=2 2\nm f=3 3")
    pipe.outlet.add(b"ours f=1 1\n")

    assert "its reader has ended" == pipe.outlet.gone
    went = SMALLEST // len(b"m f=1 1\n")
    assert {"blocked": 0, "not_passed_on": 2000 - went + 2, "unsaid": 1} == pipe.outlet.counts
    assert "metrics did not go on" in lines()


def test_written_to_nobody(pipe):
    """A write finds out that the reader is gone."""
    pipe.end_reading()
    pipe.outlet.pass_on(b"m f=1 1\n")

    assert ("its reader has ended", 1) == (pipe.outlet.gone, pipe.outlet.counts["not_passed_on"])


def test_end_of_a_blocked_one(pipe, lines):
    """What a blocked reader does not take before the end is counted, a cut line among it."""
    pipe.outlet.pass_on(b"m f=1 1\n" * 600)
    pipe.outlet.add(b"ours f=1 1\n" * 2)
    pipe.outlet.finish(0.0)

    assert (600 - 512, 2) == tuple(pipe.outlet.counts[what] for what in ("not_passed_on", "unsaid"))
    assert ["metrics did not go on"] == lines()


def test_unended_last_line(pipe):
    """Only where the input ends within a line is a line break put in, before ours."""
    pipe.outlet.pass_on(b"m f=1 1")
    pipe.outlet.add(b"ours f=1 1\n")
    pipe.outlet.finish()

    assert b"m f=1 1\nours f=1 1\n" == pipe.read()


def test_a_file(tmp_path):
    """Standard output may be a file."""
    with (tmp_path / "out").open("wb") as file:
        outlet = MetricOutlet(file.fileno())
        outlet.pass_on(b"m f=1 1\n")
        outlet.look()
        outlet.finish(0.0)

    assert b"m f=1 1\n" == (tmp_path / "out").read_bytes()
    assert 0 == sum(outlet.counts.values())
