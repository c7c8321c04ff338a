"""ProgramReadings: rows from the lines of JSON that a program prints.

1. The program is started by its words, without a shell, and reads nothing.
2. When it ends, it is started again after a wait that grows; it is short again once the program has
   run for a while. A program that prints one row and ends is read so as well.
3. It has a process group of its own, which ends when the sensor does.
4. One pipe serves all its lives. A line that one of them left unfinished is lost alone.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from submerge import UsageError
from submerge_client.sensors.gather import Hand
from submerge_client.sensors.ndjson import NdjsonReadings
from submerge_client.sensors.tally import ProblemTally, SensorLog, no_log

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
"""Seconds until it is started again: twice as many each time, up to the second."""

STEADY_S = 60.0  # a program that has run for so long is started again after the first wait
LOOK_S = 0.25  # how often the program is looked at
PATIENCE_S = 2.0  # how long a program has to end when it is asked to


Process = subprocess.Popen[bytes]


def begin(command: Sequence[str], out: IO[bytes], errors: IO[bytes] | None = None) -> Process:
    """Start a program in a group of its own, which prints to a file."""
    # The command is the operator's own, and no shell reads it.
    return subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, start_new_session=True
    )


def has_ended(process: Process) -> bool:
    """Return whether a program has ended; its number stays its own until `end`."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def end(process: Process) -> int:
    """End a program and its group: asked, then killed. Return its status."""
    if process.returncode is not None:
        return process.returncode
    _signal(process, signal.SIGTERM)
    until = time.monotonic() + PATIENCE_S
    while not has_ended(process) and time.monotonic() < until:
        time.sleep(LOOK_S / 10)
    _signal(process, signal.SIGKILL)
    return process.wait()


def check_command(command: Sequence[str]) -> None:
    """Refuse a command whose program is not there."""
    if shutil.which(command[0]) is None:
        raise UsageError(
            f"expected a program that can be run, got {command[0]!r}: write its whole path, or"
            " install it; a script needs chmod +x and a first line as #!/usr/bin/env python3"
        )


class ProgramReadings:
    """Rows of a program's lines; counts also how often it "ended"."""

    def __init__(
        self,
        channels: Sequence[str],
        command: Sequence[str],
        *,
        note: SensorLog = no_log,
        pause_s: float = 0.0,
        first_wait_s: float = FIRST_WAIT_S,
    ) -> None:
        check_command(command)
        self._command, self._first_wait_s = tuple(command), first_wait_s
        self._tally = ProblemTally(note, "ended")
        self._channels, self._note, self._pause_s = tuple(channels), note, pause_s
        self._lines: NdjsonReadings | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Lines left out by reason, and how often the program ended."""
        lines = {} if self._lines is None else self._lines.counts
        return {**lines, **self._tally.counts}

    def read(self, hand: Hand, stop: threading.Event) -> None:
        out, into = os.pipe()
        over = threading.Event()
        # Our copy of the end to write to stays open: no life of the program is the lines' end.
        with os.fdopen(out, "rb", 0) as stream, os.fdopen(into, "wb", 0) as output:
            self._lines = NdjsonReadings(
                self._channels, stream=stream, note=self._note, pause_s=self._pause_s
            )
            running = threading.Thread(target=self._run, args=(output, over), name="sensor-program")
            running.start()
            try:
                self._lines.read(hand, stop)
            finally:
                over.set()
                running.join()

    def _run(self, output: IO[bytes], over: threading.Event) -> None:
        """Start the program again and again; the first wait that is over ends it."""
        wait_s = self._first_wait_s
        while not over.is_set():
            begun = time.monotonic()
            why = self._run_once(output, over)
            if over.is_set():
                return
            if time.monotonic() - begun >= STEADY_S:
                wait_s = self._first_wait_s
            what = "the program ended, starting it again"
            self._tally.add("ended", what, level="warning", why=why, wait_s=wait_s)
            _end_line(output, over)
            over.wait(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    def _run_once(self, output: IO[bytes], over: threading.Event) -> str:
        """Run the program to its end; return how it ended."""
        try:
            process = begin(self._command, output)
        except OSError as error:
            return str(error)
        while not over.wait(LOOK_S) and not has_ended(process):
            pass
        return f"status {end(process)}"


def _end_line(output: IO[bytes], over: threading.Event) -> None:
    """End the line that the program may have begun; an empty one says nothing."""
    while not over.is_set():
        # The pipe may be full while the node is behind.
        if select.select((), (output,), (), LOOK_S)[1]:
            output.write(b"\n")
            return


def _signal(process: Process, number: signal.Signals) -> None:
    # The group outlives its first process while others are in it.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
