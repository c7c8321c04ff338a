"""Real processes for the rooms that measure them: started, watched through /proc, ended.

Linux only. Whoever starts something does so in a `with`: nothing outlives a room, and only
what a room has started is ended.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SUBMERGE = Path(sys.executable).with_name("submerge")
HOST = "127.0.0.1"

WITHIN_S = 20.0
"""How long a program may take to start, or to end."""

BROKER = """\
listener {port} {host}
allow_anonymous true
persistence false
max_queued_messages 0
connection_messages false
set_tcp_nodelay true
user root
"""


class Process:
    """A program that runs, and what the kernel says of it."""

    def __init__(
        self,
        command: list[str | Path],
        *,
        core: int | None,
        log: Path,
        env: Mapping[str, str] | None = None,
        **how: Any,
    ) -> None:
        # Before it has threads: they would keep the cores that they began on.
        pinned = None if core is None else lambda: os.sched_setaffinity(0, {core})
        with log.open("ab") as errors:
            self.popen = subprocess.Popen(  # noqa: S603 (a room says what it starts)
                command,
                stderr=errors,
                preexec_fn=pinned,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **(env or {})},
                **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL} | how,
            )
        self.log = log

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds, shared libraries included (VmRSS)."""
        return int(self._status("VmRSS").split()[0]) * 1024

    @property
    def most_resident(self) -> int:
        """The most that it has held so far (VmHWM)."""
        return int(self._status("VmHWM").split()[0]) * 1024

    @property
    def proportional(self) -> int:
        """Bytes of memory, of each shared page its share (PSS)."""
        lines = self._file("smaps_rollup").splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * 1024

    @property
    def threads(self) -> int:
        """How many it has."""
        return int(self._status("Threads"))

    @property
    def descriptors(self) -> int:
        """Open files and sockets."""
        return len(os.listdir(f"/proc/{self.popen.pid}/fd"))

    @property
    def cpu_s(self) -> float:
        """Seconds that it has computed, its system calls included."""
        # The name in parentheses may hold anything.
        fields = self._file("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.popen.poll() is None

    def said(self) -> str:
        """Return its log, to be read by a person."""
        return self.log.read_text(errors="replace")

    def end(self, within_s: float = WITHIN_S) -> int:
        """Ask it to end, insist if it does not, and return its exit status."""
        if self.runs:
            self.popen.terminate()
        try:
            return self.popen.wait(within_s)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            return self.popen.wait()

    def _status(self, field: str) -> str:
        lines = self._file("status").splitlines()
        return next(line.split(":", 1)[1] for line in lines if line.startswith(f"{field}:"))

    def _file(self, name: str) -> str:
        return Path(f"/proc/{self.popen.pid}/{name}").read_text()


class Site:
    """A folder, and the programs in it; all of it is gone in the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[Process] = []

    def run(self, *command: str | Path, name: str, core: int | None = None, **how: Any) -> Process:
        """Start a program, on one core if one is named."""
        process = Process(list(command), core=core, log=self.folder / f"{name}.log", **how)
        self._started.append(process)
        return process

    def broker(self, *, core: int | None = None) -> int:
        """Start Mosquitto; return its port."""
        program = mosquitto()
        if program is None:
            raise RuntimeError("expected mosquitto on the path, found none: install it")
        port = free_port()
        path = self.folder / "mosquitto.conf"
        path.write_text(BROKER.format(port=port, host=HOST))
        process = self.run(program, "-c", path, name="mosquitto", core=core)
        _wait(lambda: _listens(port), process)
        return port

    def aggregator(
        self, config: str, *, core: int | None = None, source: Path | None = None
    ) -> tuple[Process, int]:
        """Start an aggregator, with a status address; return it, and that address's port.

        source : another checkout, whose code it runs
        """
        env = None if source is None else {"PYTHONPATH": source_path(source)}
        port = free_port()
        path = self.folder / "root.toml"
        path.write_text(config + f'\n[status]\naddress = "{HOST}:{port}"\n')
        command = [SUBMERGE, "aggregator", "--config", path]
        process = self.run(*command, name="aggregator", core=core, env=env)
        _wait(lambda: bool(numbers(port).get("submerge_ready")), process)
        return process, port

    def end(self) -> None:
        """End all that runs, the newest first."""
        for process in reversed(self._started):
            process.end()


@contextmanager
def site() -> Iterator[Site]:
    """Make a place for programs, in a folder of its own; TMPDIR says on which disk."""
    with TemporaryDirectory(prefix="submerge-") as folder:
        place = Site(Path(folder))
        try:
            yield place
        finally:
            place.end()


def numbers(port: int) -> dict[str, float]:
    """Return what an aggregator says of itself, by the metrics' names; {} if it does not."""
    with suppress(OSError):
        with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=10.0) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}
    return {}


def source_path(checkout: Path) -> str:
    """Return a PYTHONPATH for the code of a checkout."""
    packages = ("core", "proto", "client", "aggregator", "fleet")
    return os.pathsep.join(str(checkout / package) for package in packages)


def mosquitto() -> str | None:
    """Return where the broker is; None if it is not installed."""
    return shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@cache
def cores() -> tuple[int | None, int | None]:
    """Return one core to measure on and one for all else; None where there are not two.

    As at first: a caller confines itself to the other one afterwards.
    """
    have = sorted(os.sched_getaffinity(0))
    return (have[0], have[1]) if len(have) > 1 else (None, None)


@contextmanager
def other_core() -> Iterator[None]:
    """Leave the first core to what is measured."""
    allowed = os.sched_getaffinity(0)
    _, other = cores()
    if other is not None:
        os.sched_setaffinity(0, {other})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def load() -> str:
    """Say how busy the machine is, over the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def _wait(happens: Any, process: Process) -> None:
    ends = time.monotonic() + WITHIN_S
    while not happens():
        if not process.runs or time.monotonic() > ends:
            raise RuntimeError(f"it does not start; it says:\n{process.said()}")
        time.sleep(0.05)
