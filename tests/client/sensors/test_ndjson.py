"""Lines of JSON: what they mean, what they cost when they mean nothing, and when they are heard."""

from __future__ import annotations

import io
import json
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.sensors import ndjson
from submerge_client.sensors.gather import BLOCK
from submerge_client.sensors.lines import LineReader
from submerge_client.sensors.ndjson import NdjsonReadings
from support.patience import PATIENCE_S

CHANNELS = ("a", "b", "c")
nan = math.nan


class Notes(list[tuple[str, dict[str, object]]]):
    """Remembers what was noted."""

    def __call__(self, what: str, /, **facts: object) -> None:
        self.append((what, facts))


@pytest.fixture
def spool(tmp_path) -> Iterator[Callable[[bytes], BinaryIO]]:
    """Bytes as a stream that the system knows."""
    opened: list[BinaryIO] = []

    def stream(content: bytes) -> BinaryIO:
        path = tmp_path / str(len(opened))
        path.write_bytes(content)
        opened.append(path.open("rb"))
        return opened[-1]

    yield stream
    for each in opened:
        each.close()


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """A pipe: its end to read from, and its end to write to."""
    there, here = os.pipe()
    with os.fdopen(there, "rb") as out, os.fdopen(here, "wb", buffering=0) as into:
        yield out, into


@pytest.fixture
def said(spool) -> Callable[[str | bytes], tuple[np.ndarray, NdjsonReadings, Notes]]:
    """All rows of some lines, the sensor that read them, and what it noted."""

    def read(content: str | bytes) -> tuple[np.ndarray, NdjsonReadings, Notes]:
        notes, blocks = Notes(), [np.empty((0, len(CHANNELS)))]
        content = content.encode() if isinstance(content, str) else content
        sensor = NdjsonReadings(CHANNELS, stream=spool(content), note=notes)
        sensor.read(blocks.append, threading.Event())
        return np.concatenate(blocks), sensor, notes

    return read


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[1, 2.5, -3e2]", [1, 2.5, -300]),
        ("[null, NaN, 3]", [nan, nan, 3]),
        ("[1, Infinity, -1e400]", [1, np.inf, -np.inf]),
        (" [1,2,3] \r", [1, 2, 3]),
        ('{"c": 3, "a": 1, "b": 2}', [1, 2, 3]),
        ('{"b": 2}', [nan, 2, nan]),
        ('{"b": null}', [nan, nan, nan]),
        ('{"a": NaN, "b": 2}', [nan, 2, nan]),
        ('{"t": 1751, "b": 2}', [nan, 2, nan]),
        ('{"time": "2026-05-04T12:00:00Z", "b": 2}', [nan, 2, nan]),
        ('{"b": 2, "place": {"lat": 1}, "tags": ["x"]}', [nan, 2, nan]),
        ('{"b": 1, "b": 2}', [nan, 2, nan]),
        ("[123456789012345678901234567890, 0, 0]", [1.2345678901234568e29, 0, 0]),
    ],
)
def test_what_a_line_says(said, line, expected) -> None:
    """Arrays go by place, objects by name; null, NaN and silence are gaps, and infinity is not."""
    rows, sensor, _ = said(line + "\n")

    np.testing.assert_array_equal([expected], rows)
    assert sensor.counts["malformed"] == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"b": 2}', [0, 2, 0]),
        ('{"b": null}', [0, nan, 0]),
        ("{}", [0, 0, 0]),
        ('{"time": "2026-05-04T12:00:00Z"}', [0, 0, 0]),
        ("[1, null, 3]", [1, nan, 3]),
    ],
)
def test_absent_channels_are_zero_where_that_is_set(spool, line, expected) -> None:
    """Of sparse rows only what is not zero is written; null is a gap all the same."""
    blocks: list[np.ndarray] = []
    sensor = NdjsonReadings(CHANNELS, stream=spool(line.encode()), zero=True)
    sensor.read(blocks.append, threading.Event())

    np.testing.assert_array_equal([expected], np.concatenate(blocks))


def test_an_object_of_other_names_alone_is_no_row_of_zeros(spool) -> None:
    """It is counted, as elsewhere: its program writes other names than the schema has."""
    blocks: list[np.ndarray] = []
    sensor = NdjsonReadings(CHANNELS, stream=spool(b'{"x": 1}'), zero=True)
    sensor.read(blocks.append, threading.Event())

    assert ([], 1) == (blocks, sensor.counts["empty"])


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("[1, 2]", "expected 3 values, got 2"),
        ("[1, 2, 3, 4]", "expected 3 values, got 4"),
        ("[1, 2, true]", "expected a number or null, got bool"),
        ('["1", 2, 3]', "expected a number or null, got str"),
        ('{"a": "1"}', "expected a number or null, got str"),
        ('{"a": [1]}', "expected a number or null, got list"),
        ("5", "expected an array or an object, got int"),
        ("null", "expected an array or an object, got NoneType"),
        ("[1, 2, 3", "Expecting ',' delimiter"),
        ("[1, 2, 3] [4, 5, 6]", "Extra data"),
        ("[1,2," + "9" * 400 + "]", "int too large"),
        ("[" * 100_000, "recursion"),
        (b'{"a": 1, "\xff": 2}', "can't decode byte 0xff"),
        (b"\x00\x01", ""),
    ],
)
def test_a_malformed_line_costs_itself_alone(said, line, error) -> None:
    """Its neighbours are read, and the note has its number as an editor counts."""
    line = line.encode() if isinstance(line, str) else line

    rows, sensor, notes = said(b"[1, 2, 3]\n\n" + line + b"\n[4, 5, 6]\n")

    np.testing.assert_array_equal([[1, 2, 3], [4, 5, 6]], rows)
    assert sensor.counts["malformed"] == 1
    ((what, facts),) = notes
    assert what == "malformed line"
    assert facts["line"] == 3
    assert error in str(facts["error"])


def test_mishaps_are_said_less_and_less_often(said) -> None:
    """The first three of a kind, then each power of ten; all are counted."""
    _, sensor, notes = said("x\n" * 1234)

    assert [1, 2, 3, 10, 100, 1000] == [facts["malformed"] for _, facts in notes]
    assert sensor.counts["malformed"] == 1234


def test_a_name_that_is_no_channel_is_counted_and_noted_once(said) -> None:
    """Names beyond the schema are logged, but not with every line."""
    rows, sensor, notes = said('{"a": 1, "x": 2}\n' * 5 + '{"a": 1, "x": 2, "y": "z", "w": 0}\n')

    assert len(rows) == 6
    assert sensor.counts["unknown"] == 3
    assert [(facts["names"], facts["line"]) for _, facts in notes] == [("x", 1), ("w, y", 6)]


def test_names_without_end_fill_no_memory(said) -> None:
    """A sender that makes up a name a line is remembered so far, and no further."""
    lines = "".join(json.dumps({"a": 1, f"made-up-{i}": 1}) + "\n" for i in range(2000))

    rows, sensor, _ = said(lines)

    assert len(rows) == 2000
    assert sensor.counts["unknown"] <= ndjson.MOST_NAMES


def test_an_object_without_a_channel_is_no_row(said) -> None:
    """A log line in between is not a reading of which all is missing."""
    rows, sensor, _ = said('{"level": "info"}\n{}\n{"a": 1}\n{"time": 5}\n')

    np.testing.assert_array_equal([[1, nan, nan]], rows)
    assert sensor.counts["empty"] == 3


def test_time_may_be_a_channel(spool) -> None:
    """Only where the schema does not ask for it is it passed over."""
    blocks: list[np.ndarray] = []
    sensor = NdjsonReadings(("time", "a"), stream=spool(b'{"time": 5, "a": 1}\n'))
    sensor.read(blocks.append, threading.Event())

    np.testing.assert_array_equal([[5, 1]], np.concatenate(blocks))


def test_a_line_that_is_too_long_is_passed_over(said) -> None:
    """Three mebibytes cost one line, and the next is read."""
    rows, sensor, notes = said(b"[1, 2, 3]\n[" + b"1," * (3 << 19) + b"1]\n[4, 5, 6]")

    np.testing.assert_array_equal([[1, 2, 3], [4, 5, 6]], rows)
    assert sensor.counts["too_long"] == 1
    assert [("line too long", {"level": "info", "too_long": 1, "line": 2})] == notes


def test_blocks_are_of_64_rows_at_most(spool) -> None:
    """What has come in at once is handed on together, but not without limit."""
    content = "".join(json.dumps([i, i, i]) + "\n" for i in range(1000)).encode()
    blocks: list[np.ndarray] = []
    NdjsonReadings(CHANNELS, stream=spool(content)).read(blocks.append, threading.Event())

    assert max(map(len, blocks)) == 64
    np.testing.assert_array_equal(np.arange(1000.0), np.concatenate(blocks)[:, 0])


def test_a_single_line_is_handed_on_at_once(pipe) -> None:
    """Nothing waits for a block to fill."""
    out, into = pipe
    rows: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()
    sensor = NdjsonReadings(CHANNELS, stream=out)
    reading = threading.Thread(target=sensor.read, args=(rows.put, threading.Event()))
    reading.start()
    for i in range(3):
        into.write(b"[%d, 0," % i)
        into.write(b" 0]\n")

        np.testing.assert_array_equal([[i, 0, 0]], rows.get(timeout=PATIENCE_S))
    into.close()
    reading.join(PATIENCE_S)
    assert not reading.is_alive(), "the stream has ended"


@pytest.mark.slow
def test_it_stops_while_the_pipe_is_silent(pipe) -> None:
    """Although no line comes."""
    out, _ = pipe
    stop = threading.Event()
    sensor = NdjsonReadings(CHANNELS, stream=out)
    reading = threading.Thread(target=sensor.read, args=([].append, stop))
    reading.start()
    time.sleep(0.1)
    stop.set()
    reading.join(PATIENCE_S)

    assert not reading.is_alive()


def test_it_stops_between_two_blocks(spool) -> None:
    """What was read but not handed on is not forced upon a node that ends."""
    stop = threading.Event()
    handed: list[np.ndarray] = []

    def hand(rows: np.ndarray) -> None:
        handed.append(rows)
        stop.set()

    NdjsonReadings(CHANNELS, stream=spool(b"[1,2,3]\n" * 500)).read(hand, stop)

    assert len(handed) == 1


def test_what_has_come_in_a_pause_is_read_before_the_end(pipe) -> None:
    """A client that is stopped loses no row that its sensor has written."""
    out, into = pipe
    stop = threading.Event()
    handed: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()
    readings = NdjsonReadings(CHANNELS, stream=out, pause_s=3600.0)
    reading = threading.Thread(target=readings.read, args=(handed.put, stop))
    reading.start()
    into.write(b"[1,2,3]\n")
    first = handed.get(timeout=PATIENCE_S)
    into.write(b"[4,5,6]\n[7,8,9]\n")
    stop.set()
    reading.join(PATIENCE_S)

    assert [[1, 2, 3]] == first.tolist()
    assert [[4, 5, 6], [7, 8, 9]] == handed.get(timeout=0).tolist()


def test_what_a_pipe_held_during_a_pause_has_waited(pipe) -> None:
    """Rows before the first pause have not, and neither have those that come fast."""
    out, into = pipe
    handed: queue.SimpleQueue[tuple[int, bool]] = queue.SimpleQueue()

    def hand(rows: np.ndarray, /, *, waited: bool = False) -> None:
        handed.put((len(rows), waited))

    readings = NdjsonReadings(CHANNELS, stream=out, pause_s=0.001)
    reading = threading.Thread(target=readings.read, args=(hand, threading.Event()))
    reading.start()
    got = []
    for rows in (1, 2, BLOCK, 1):
        into.write(b"[1,2,3]\n" * rows)
        got.append(handed.get(timeout=PATIENCE_S))
    into.close()
    reading.join(PATIENCE_S)

    assert [(1, False), (2, True), (BLOCK, True), (1, False)] == got


@pytest.mark.parametrize("stream", [io.BytesIO(b"[1]\n"), None])
def test_what_the_system_cannot_watch_is_refused(stream, monkeypatch) -> None:
    """A closed standard input is said at once, in one line."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError, match="expected lines of JSON on standard input, got none"):
        NdjsonReadings(CHANNELS, stream=stream)


@given(
    content=st.lists(st.sampled_from([b"\n", b"ab", b"c", b"\r", b"0123456789"])).map(b"".join),
    cuts=st.lists(st.integers(0, 80), max_size=6),
)
@example(content=b"0123456789\nab\n", cuts=[5, 11])
def test_however_bytes_come_in_the_lines_are_the_same(content, cuts) -> None:
    """Cut anywhere, numbered from one; those over eight bytes are None."""
    edges = sorted(min(cut, len(content)) for cut in cuts)
    lines = LineReader(longest=8)
    got: list[tuple[int, bytes | None]] = []
    for begin, end in zip([0, *edges], [*edges, len(content)], strict=True):
        got += lines.cut(content[begin:end])
    got += lines.last()
    expected = content.split(b"\n")
    if not expected[-1]:
        expected.pop()

    assert list(enumerate([e if len(e) <= 8 else None for e in expected], 1)) == got
