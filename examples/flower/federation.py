"""Flower's own simulation, started as its users do: a SuperLink on this machine, and `flwr run`.

The SuperLink has a process group of its own, and all of it is ended, whatever happens. Its state,
its ports and its log are the test's own.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_S = 900
BIN = Path(sys.executable).parent

ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


class Federation:
    """A running SuperLink in simulation mode."""

    def __init__(self, home: Path, port: int) -> None:
        self.log = home / "superlink.log"
        self._at = f"127.0.0.1:{port}"
        self._environment = os.environ | ENVIRONMENT | {"FLWR_HOME": str(home)}
        self._environment["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        home.mkdir()
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "test"\n\n[superlink.test]\naddress = "{self._at}"\n'
            "insecure = true\n"
        )
        at = ("--host", "127.0.0.1", "--port", str(port), "--insecure")
        how = ("--simulation", "--isolation", "subprocess")
        installs = "--disable-runtime-dependency-installation"  # what the app needs is here
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [BIN / "flower-superlink", *at, *how, installs],
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def answers(self) -> bool:
        """Whether it is there; an error if it has ended."""
        assert self._process.poll() is None, self.log.read_text()
        try:
            with urllib.request.urlopen(f"http://{self._at}/health", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def run(self, app: Path, nodes: int) -> str:
        """Run an app with so many clients; return all that was printed."""
        sizes = f"num-supernodes={nodes} client-resources-num-cpus=1"
        done = subprocess.run(
            [BIN / "flwr", "run", app, "test", "--federation-config", sizes, "--stream"],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
        )
        return done.stdout

    def end(self) -> None:
        """End it, and all that it has started."""
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(20)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()


@contextmanager
def federation(folder: Path) -> Iterator[Federation]:
    """A SuperLink for the time of the body."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = Federation(folder / "flower", port)
    try:
        while not running.answers():
            time.sleep(0.2)
        yield running
    finally:
        running.end()
