"""A Mosquitto of one's own, on a port of 127.0.0.1 that is free."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from support.patience import PATIENCE_S
from support.programs import free_port

PROGRAM = shutil.which("mosquitto") or shutil.which("/usr/sbin/mosquitto")
"""Where it is; outside a shell's own path, as Debian puts it, or None."""

REQUIRED = os.environ.get("SUBMERGE_LIVE") == "required"
"""Whether tests of real sockets must not be left out."""

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
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *settings: str) -> None:
        """Start it, with settings that go before or replace those of every test."""
        replaced = {line.split()[0] for line in settings}
        usual = [line for line in CONFIG if line.split()[0] not in replaced]
        path = self.folder / "mosquitto.conf"
        path.write_text("\n".join([f"listener {self.port} {self.host}", *settings, *usual]))
        with (self.folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(PROGRAM), "-c", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        until = time.monotonic() + PATIENCE_S
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
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @property
    def runs(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def reload(self) -> None:
        """Let it read its certificates again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def _answers(self) -> bool:
        try:
            socket.create_connection((self.host, self.port), timeout=1.0).close()
        except OSError:
            return False
        return True
