"""Child processes: start, feed, read, kill them, and leave none behind.

One thread does it all: `wait` moves data through every pipe and returns the lines that came.
Nothing here depends on what the lines mean.

1. Leaving the `with` block, in whatever way, ends all processes.
2. The queue of unwritten data has no bound: the caller limits what it writes.
3. On Linux the kernel ends the children of a demo that was itself killed.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Literal, NamedTuple, Self

CHUNK = 1 << 18
PR_SET_PDEATHSIG = 1

Stream = Literal["out", "err"]


class OutputLine(NamedTuple):
    """A line that a process wrote, without its line end."""

    process: Process
    stream: Stream
    line: bytes


class ProcessEnd(NamedTuple):
    """A process has ended and all its output was returned; `status` as in Popen."""

    process: Process
    status: int


class Process:
    """One child process."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes]) -> None:
        self.name = name
        self._popen = popen
        self._unsent = bytearray()
        self._begun: dict[Stream, bytes] = {"out": b"", "err": b""}
        self._open = 2  # output streams
        self._closing = False

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._popen.poll()

    def kill(self) -> None:
        """Kill it (SIGKILL)."""
        self._popen.kill()

    def end(self) -> None:
        """Ask it to end (SIGTERM)."""
        self._popen.terminate()


class Processes:
    """All processes of a demo, within a `with` block."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._all: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._all:
            process.kill()
        for process in self._all:
            process._popen.wait()
            for pipe in (process._popen.stdin, process._popen.stdout, process._popen.stderr):
                if pipe is not None:
                    pipe.close()
        self._selector.close()

    def start(self, name: str, module: Sequence[str], *, fed: bool) -> Process:
        """Start a Python module with arguments; `fed`: it reads its standard input."""
        command = [sys.executable, "-m", *module]
        popen = subprocess.Popen(  # noqa: S603 (our own command)
            command,
            stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=_environment(),
            # Ctrl-C reaches this process only, which then ends them all.
            process_group=0,
            preexec_fn=_dying_with_us(),
        )
        process = Process(name, popen)
        self._all.append(process)
        streams: tuple[tuple[IO[bytes] | None, Stream], ...]
        streams = (popen.stdout, "out"), (popen.stderr, "err")
        for pipe, stream in streams:
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ, (process, stream))
        if popen.stdin is not None:
            os.set_blocking(popen.stdin.fileno(), False)
        return process

    def write(self, process: Process, data: bytes) -> None:
        """Queue `data` for a process's standard input."""
        pipe = process._popen.stdin
        if pipe is None or pipe.closed or not data:
            return
        if not process._unsent:
            self._selector.register(pipe, selectors.EVENT_WRITE, (process, "in"))
        process._unsent += data

    def close_input(self, process: Process) -> None:
        """Close a process's standard input after all queued data."""
        process._closing = True
        if not process._unsent:
            self._close_input(process)

    def wait(self, seconds: float) -> list[OutputLine | ProcessEnd]:
        """Move data, waiting at most so long; return lines and ends in order."""
        events: list[OutputLine | ProcessEnd] = []
        for key, _ in self._selector.select(seconds):
            process, stream = key.data
            if stream == "in":
                self._push(process)
            else:
                events += self._pull(process, stream, key.fd)
        for process in [each for each in self._all if not each._open]:
            if process.status is not None:
                self._all.remove(process)
                self._close_input(process)
                events.append(ProcessEnd(process, process.status))
        return events

    # -- pipes -----------------------------------------------------------------

    def _push(self, process: Process) -> None:
        pipe = process._popen.stdin
        if pipe is None:
            return
        try:
            sent = os.write(pipe.fileno(), process._unsent[:CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:
            sent = len(process._unsent)  # it has ended: `wait` returns that soon
        del process._unsent[:sent]
        if not process._unsent:
            self._selector.unregister(pipe)
            if process._closing:
                self._close_input(process)

    def _pull(self, process: Process, stream: Stream, fd: int) -> list[OutputLine]:
        chunk = os.read(fd, CHUNK)
        *lines, process._begun[stream] = (process._begun[stream] + chunk).split(b"\n")
        if not chunk:
            process._open -= 1
            pipe = process._popen.stdout if stream == "out" else process._popen.stderr
            if pipe is not None:
                self._selector.unregister(pipe)
                pipe.close()
        return [OutputLine(process, stream, line) for line in lines]

    def _close_input(self, process: Process) -> None:
        pipe = process._popen.stdin
        if pipe is not None and not pipe.closed:
            if process._unsent:
                self._selector.unregister(pipe)
                process._unsent.clear()
            pipe.close()


def _environment() -> dict[str, str]:
    """Return our environment without variables that would override the configurations."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SUBMERGE__")}
    return kept | {"OPENBLAS_NUM_THREADS": "1"}


def _dying_with_us() -> Callable[[], None] | None:
    """Return what makes the kernel end a child when its parent is killed."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def set_signal() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    return set_signal
