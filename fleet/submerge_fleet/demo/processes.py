"""The operating system's processes: started, fed, listened to, killed, and never left behind.

One thread does it all: `wait` moves what can be moved on every pipe and returns what was
said since. Nothing here knows what the lines mean.

1. Whoever leaves the `with` block, by whatever way, leaves no process behind.
2. What is written waits here without bound: whoever writes looks at what comes back.
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
GRACE_S = 3.0
"""For a process that is asked to end before it is made to."""

PR_SET_PDEATHSIG = 1

Stream = Literal["out", "err"]


class OutputLine(NamedTuple):
    """A line that a process wrote, without its end."""

    process: Process
    stream: Stream
    line: bytes


class Gone(NamedTuple):
    """A process has ended, and all that it wrote was handed over; status as Popen has it."""

    process: Process
    status: int


class Process:
    """One process.

    Attributes
    ----------
    name : str
    """

    def __init__(self, name: str, popen: subprocess.Popen[bytes]) -> None:
        self.name = name
        self._popen = popen
        self._unsent = bytearray()
        self._begun: dict[Stream, bytes] = {"out": b"", "err": b""}
        self._open = 2  # of its streams
        self._closing = False

    @property
    def pid(self) -> int:
        """Its number."""
        return self._popen.pid

    @property
    def status(self) -> int | None:
        """None while it lives."""
        return self._popen.poll()

    def kill(self) -> None:
        """End it without a word (SIGKILL)."""
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
        """Start a module of this interpreter's, and its arguments; `fed`: it reads its input."""
        command = [sys.executable, "-m", *module]
        popen = subprocess.Popen(  # noqa: S603 (our own command)
            command,
            stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=_environment(),
            # Ctrl-C is for us: we then end them all.
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
        """Let a process read `data`, as soon as it does."""
        pipe = process._popen.stdin
        if pipe is None or pipe.closed or not data:
            return
        if not process._unsent:
            self._selector.register(pipe, selectors.EVENT_WRITE, (process, "in"))
        process._unsent += data

    def close_input(self, process: Process) -> None:
        """Let a process read the end of its input, after all that was written."""
        process._closing = True
        if not process._unsent:
            self._close_input(process)

    def wait(self, seconds: float) -> list[OutputLine | Gone]:
        """Move what can be moved, waiting at most so long; return what was said, in order."""
        heard: list[OutputLine | Gone] = []
        for key, _ in self._selector.select(seconds):
            process, stream = key.data
            if stream == "in":
                self._push(process)
            else:
                heard += self._pull(process, stream, key.fd)
        for process in [each for each in self._all if not each._open]:
            if process.status is not None:
                self._all.remove(process)
                self._close_input(process)
                heard.append(Gone(process, process.status))
        return heard

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
            sent = len(process._unsent)  # it is gone, and we hear of it soon
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
    """Ours, but for what would override the configurations that we write."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SUBMERGE__")}
    return kept | {"OPENBLAS_NUM_THREADS": "1"}


def _dying_with_us() -> Callable[[], None] | None:
    """Let the kernel end a child whose parent was killed and could not do it."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def set_signal() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    return set_signal
