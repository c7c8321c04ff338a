"""Brokers for tests, on ports of 127.0.0.1 that are free."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = Path("/usr/sbin/mosquitto")

CONFIG = (
    "allow_anonymous true",
    # More than its default of 1000 reports may come back at once; the rest would be dropped.
    "max_queued_messages 0",
    "connection_messages false",
    "persistence false",
    "user root",  # when started as root: it must read what only root may
)


class Mosquitto:
    """A broker; what it keeps is gone when it is stopped, unless its settings say otherwise."""

    host = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind((self.host, 0))
            self.port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *settings: str) -> None:
        """Start it, with settings that go before or replace those of every test."""
        replaced = {line.split()[0] for line in settings}
        usual = [line for line in CONFIG if line.split()[0] not in replaced]
        path = self.folder / "mosquitto.conf"
        path.write_text("\n".join([f"listener {self.port} {self.host}", *settings, *usual]))
        with (self.folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "-c", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        until = time.monotonic() + 10.0
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "mosquitto.log").read_text())
            time.sleep(0.005)

    def stop(self) -> None:
        """End it, and nobody else."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _answers(self) -> bool:
        try:
            socket.create_connection((self.host, self.port), timeout=1.0).close()
        except OSError:
            return False
        return True


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker that runs."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not installed")
    broker = Mosquitto(tmp_path)
    broker.start()
    yield broker
    broker.stop()
