"""Programs: real `submerge` processes, what they log, and what they read.

A program is one process of `submerge client` or `submerge aggregator`. Its log comes as JSON
lines, each with the time at which it reached us. Whoever starts programs ends them, in every
case: `Programs` is a context that kills what still runs.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from support.patience import PATIENCE_S, until

TESTS = Path(__file__).parents[1]
PATH = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
SUBMERGE = Path(sys.executable).with_name("submerge")

_DETACHING = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""
DETACHED = (sys.executable, "-c", _DETACHING)
"""What to put before a command, so that it starts as `nohup COMMAND &` in a script does: with
SIGINT and SIGHUP ignored."""

PORTS = range(10_000, 32_000)
"""Where ports are looked for: below those that the kernel gives to connections that go out,
one of which might take a port between two lives of the program that it is meant for."""

WORKERS = 16

_GIVEN: set[int] = set()
"""Processes of one run that may look for ports at the same time."""

Thing = TypeVar("Thing")


class Line(NamedTuple):
    """A line of a log.

    at : when it reached us, by time.monotonic
    level : "" for one that is no line of ours, as a traceback's
    """

    at: float
    what: str
    level: str
    facts: dict[str, Any]


class Program:
    """One process.

    Parameters
    ----------
    *args : str or Path
        What follows `submerge`.
    command : sequence, optional
        What stands in its place.

    Attributes
    ----------
    lines : list of Line
        Of its log, so far; the order is that in which they came.
    began : float
        By time.monotonic.
    """

    def __init__(
        self,
        *args: str | Path,
        command: Sequence[str | Path] = (SUBMERGE,),
    ) -> None:
        self.lines: list[Line] = []
        self.began = time.monotonic()
        # A test counts rows as they come, and looks for them in the model.
        plain = {"client": ("ROWS", "1"), "aggregator": ("FLOOR", "false")}
        setting, value = plain.get(str(args[0]) if args else "", ("", ""))
        single = {f"SUBMERGE__PRIVACY__{setting}": value} if setting else {}
        self._process = subprocess.Popen(
            [*command, *args, "--log-json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": PATH, "OPENBLAS_NUM_THREADS": "1"} | single,
        )
        self.out: list[bytes] = []
        """What it wrote to standard output, by lines."""
        self._readers = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._collect, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def incarnations(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def write(self, data: bytes) -> bool:
        """Give it something to read; return whether it is there to read it.

        Waits while its pipe is full.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            return False
        return True

    def said(self, what: str) -> list[Line]:
        """Return the lines that say one thing."""
        return [line for line in list(self.lines) if line.what == what]

    def until(self, what: str, **facts: Any) -> Line:
        """Wait for a line that says something, with these facts."""
        found: list[Line] = []

        def is_said() -> bool:
            found[:] = [line for line in self.said(what) if facts.items() <= line.facts.items()]
            return bool(found)

        until(
            is_said,
            lambda: f"{what!r} with {facts} in the log:\n{self.log}",
            lambda: len(self.lines),
        )
        return found[-1]

    @property
    def log(self) -> str:
        """The whole log, to be read by a person."""
        return "\n".join(f"{line.level:7} {line.what} {line.facts}" for line in list(self.lines))

    def signal(self, number: int) -> None:
        """Send it a signal, if it is there."""
        if self.incarnations:
            self._process.send_signal(number)

    def kill(self) -> None:
        """`kill -9`, and read what it has said to the end."""
        self.signal(signal.SIGKILL)
        self.ended()

    def end(self) -> int:
        """Ask it to end, as a supervisor does; return its exit status."""
        self.signal(signal.SIGTERM)
        return self.ended()

    def ended(self, within_s: float = PATIENCE_S) -> int:
        """Wait until it has ended; return its exit status, negative for a signal."""
        try:
            status = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"it does not end; its log:\n{self.log}") from None
        for reader in self._readers:
            reader.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):  # what it did not read before it died
                pipe.close()
        return status

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for text in self._process.stderr:
            at = time.monotonic()
            try:
                facts = json.loads(text)
                line = Line(at, facts.pop("what"), facts.pop("level"), facts)
            except (ValueError, KeyError, AttributeError):
                line = Line(at, text.decode(errors="replace").rstrip("\n"), "", {})
            self.lines.append(line)

    def _collect(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            self.out.append(text)


class Programs:
    """A folder, and the programs that use it; in the end both are gone, in every case."""

    def __init__(self) -> None:
        self._ended = ExitStack()
        # Not pytest's: an aggregator's socket stands beside its store, and its path is short.
        folder = tempfile.TemporaryDirectory(prefix="submerge-")
        self.folder = Path(self._ended.enter_context(folder))
        self._started: list[Program] = []

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        with self._ended:
            for program in self._started:
                program.signal(signal.SIGKILL)
            for program in self._started:
                program.ended()

    def with_a(self, thing: AbstractContextManager[Thing]) -> Thing:
        """Enter a context that is left when all programs have ended."""
        return self._ended.enter_context(thing)

    def start(self, *args: str | Path, **how: Any) -> Program:
        """Start a program as `Program` does."""
        program = Program(*args, **how)
        self._started.append(program)
        return program

    def file(self, name: str, text: str) -> Path:
        """Write a file in the folder."""
        path = self.folder / name
        path.write_text(text)
        return path


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on.

    No two workers of pytest-xdist are given the same: each has a share of its own; and none
    is given twice, because the program that asked may not listen on it yet.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    share = PORTS[worker::WORKERS]
    while True:
        port = secrets.choice(share)
        if port in _GIVEN:
            continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _GIVEN.add(port)
            return port
