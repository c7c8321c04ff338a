"""A program's lines: read, started again when it ends, and ended with all that it started."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from submerge import UsageError
from submerge_client.sensors.program import ProgramReadings
from support.patience import until


class Reading:
    """A sensor of a Python program, which is read on a thread of its own."""

    def __init__(self, script: str, **chosen: object) -> None:
        self.notes: list[tuple[str, dict[str, object]]] = []
        self.sensor = ProgramReadings(
            ("a", "b"), (sys.executable, "-c", script), note=self.note, **chosen
        )
        self.rows: list[list[float]] = []
        self.stop = threading.Event()
        self._thread = threading.Thread(target=self.sensor.read, args=(self.hand, self.stop))

    def __enter__(self) -> Reading:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join()

    def note(self, what: str, /, **facts: object) -> None:
        self.notes.append((what, facts))

    def ended(self) -> list[dict[str, object]]:
        return [facts for what, facts in list(self.notes) if what.startswith("the program ended")]

    def hand(self, rows: np.ndarray, /, **_: object) -> None:
        self.rows += rows.tolist()


FOREVER = "import sys, time\nprint('[1, 2]', flush=True)\ntime.sleep(9999)\n"


def test_its_lines_are_rows() -> None:
    """As those of standard input, with the same counts."""
    script = FOREVER.replace("[1, 2]", '{"b": 4, "x": 1}\\nnonsense\\n[1, null]')
    with Reading(script) as reading:
        until(lambda: len(reading.rows) == 2)

    np.testing.assert_array_equal([[np.nan, 4], [1, np.nan]], reading.rows)
    assert (1, 1) == (reading.sensor.counts["malformed"], reading.sensor.counts["unknown"])


def test_a_program_that_ends_is_started_again_after_longer_and_longer() -> None:
    """What it left unfinished is lost alone."""
    script = "import sys\nprint('[1, 2]')\nprint('[3, ', end='')\nsys.exit(7)"
    with Reading(script, first_wait_s=0.01) as reading:
        until(lambda: len(reading.rows) >= 3)
        until(lambda: len(reading.ended()) >= 3)

    ended = reading.ended()
    assert [0.01, 0.02, 0.04] == [each["wait_s"] for each in ended[:3]]
    assert {"status 7"} == {each["why"] for each in ended}
    assert all([1, 2] == row for row in reading.rows)
    assert reading.sensor.counts["ended"] >= 3
    assert reading.sensor.counts["malformed"] >= 1


def test_it_ends_with_the_sensor_and_so_does_what_it_started(tmp_path) -> None:
    """Even those that do not want to."""
    numbers = tmp_path / "numbers"
    script = f"""
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(9999)"
child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.DEVNULL)
pathlib.Path({str(numbers)!r}).write_text(f"{{os.getpid()}} {{child.pid}}")
print("[1, 2]", flush=True)
time.sleep(9999)
"""
    with Reading(script) as reading:
        until(lambda: reading.rows)
        program, child = map(int, numbers.read_text().split())

    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)
    # Its parent is init now, which reaps it in its own time.
    until(lambda: is_gone(child))


def is_gone(number: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_node_that_is_behind_does_not_hold_up_the_end() -> None:
    """The pipe is full, and no one reads it any more."""
    script = "print('[1, 2]\\n' * 100000, flush=True)"
    held = threading.Event()
    reading = Reading(script, first_wait_s=0.01)

    def hand(_: np.ndarray, /, **_facts: object) -> None:
        held.set()
        reading.stop.wait()

    reading.hand = hand
    reading._thread = threading.Thread(target=reading.sensor.read, args=(hand, reading.stop))
    with reading:
        until(held.is_set)


@pytest.mark.parametrize("program", ["/nope/reader", "no-such-program", "/"])
def test_a_program_that_is_not_there_is_refused(program) -> None:
    """With what to do, before a thread is started."""
    with pytest.raises(UsageError, match=r"expected a program that can be run, got .*chmod"):
        ProgramReadings(("a",), (program,))
