"""Operators of a real aggregator: commands of another machine, by processes of their own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

from submerge.protocol.permission import Permission
from support.certified import LOOPBACK, Certified
from support.patience import PATIENCE_S, until
from support.programs import PATH, SUBMERGE, Program, Programs, free_port

pytestmark = pytest.mark.slow

ENVIRON = os.environ | {"PYTHONPATH": PATH, "OPENBLAS_NUM_THREADS": "1"}


class Site:
    """A root with an operators' address, and what commands say to it."""

    def __init__(self, programs: Programs) -> None:
        self._programs, self.folder = programs, programs.folder
        self.fleet = Certified(self.folder)
        kit = self.fleet.kit("root", LOOPBACK, permission=Permission("aggregator"))
        self.port = free_port()
        self.config = programs.file(
            "root.toml",
            f"""
node = "root"
kit = "{kit}"
store = "{self.folder}/root.db"
[listen.grpc]
address = "127.0.0.1:{free_port()}"
[status]
address = ""
[operators]
address = "127.0.0.1:{self.port}"
[groups.room]
summary.rank = 1
schema.channels = ["a", "b"]
""",
        )
        self.root = self.start()

    def start(self) -> Program:
        root = self._programs.start("aggregator", "--config", self.config)
        root.until("serving")
        return root

    @property
    def at(self) -> list[str]:
        """Options that lead there."""
        return ["--at", f"https://127.0.0.1:{self.port}", "--ca", str(self.folder / "root.kit")]

    def submerge(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(SUBMERGE), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=ENVIRON, check=False)

    def audit(self) -> list[dict]:
        ran = self.submerge("aggregator", "audit", "--config", self.config, "--json")
        return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_token_is_made_used_and_revoked_while_the_aggregator_runs():
    """Who, whence and what of each order is in the audit log, of refused ones as well."""
    with Programs() as programs:
        site = Site(programs)
        token = site.folder / "night.token"
        made = site.submerge(
            *(
                "aggregator",
                "token",
                "new",
                "night",
                "--scope",
                "judge",
                "--to",
                token,
                "--config",
                site.config,
            )
        )
        assert (0, "") == (made.returncode, made.stderr)
        shown = [*site.at, "--token-file", token]
        until(
            lambda: 0 == site.submerge("nodes", "list", *shown).returncode,
            lambda: "the token is known",
        )
        refused = site.submerge("nodes", "ban", "pump-3", "--yes", *shown)
        assert (2, "submerge: this needs scope operate, yours is judge\n") == (
            refused.returncode,
            refused.stderr,
        )
        kit = site.fleet.kit("anna", permission=Permission("operator"))
        banned = site.submerge("nodes", "ban", "pump-3", "--yes", *site.at, "--kit", kit)
        assert (0, "pump-3 is banned in every group\n") == (banned.returncode, banned.stdout)
        site.submerge("nodes", "unban", "pump-3", "--config", site.config)

        site.submerge("aggregator", "token", "revoke", "night", "--config", site.config)
        until(
            lambda: 2 == site.submerge("nodes", "list", *shown).returncode,
            lambda: "the token is revoked",
        )
        site.root.end()
        by = [(e["event"], e["by"], e["address"]) for e in site.audit() if "by" in e]
        assert ("denied", "token night", LOOPBACK) in by
        assert ("ban", "operator anna", LOOPBACK) in by
        assert ("ban", f"uid {os.getuid()}", "socket") in by
        secret = token.read_text().strip()
        kept = [site.root.log, *(each.read_text() for each in _texts(site.folder))]
        assert not [text for text in kept if secret in text]


def _texts(folder: Path) -> list[Path]:
    return [each for each in folder.glob("root.db.*") if each.name.endswith(("jsonl", "tokens"))]


def test_a_watcher_over_the_network_outlives_an_aggregator_that_restarts():
    """It says once that there is no answer, and goes on; Ctrl-C ends it with status 0."""
    with Programs() as programs:
        site = Site(programs)
        kit = site.fleet.kit("anna", permission=Permission("operator"))
        site.submerge("nodes", "ban", "pump-3", "--yes", "--config", site.config)
        watcher = subprocess.Popen(
            [SUBMERGE, "nodes", "--watch", "--json", *site.at, "--kit", kit],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRON,
        )
        try:
            assert watcher.stdout is not None
            assert watcher.stderr is not None
            assert "pump-3" == json.loads(watcher.stdout.readline())["node"]
            site.root.end()
            assert "Asking again until it answers" in watcher.stderr.readline()
            site.start()
            site.submerge("nodes", "ban", "pump-4", "--yes", "--config", site.config)
            assert "pump-4" == json.loads(watcher.stdout.readline())["node"]
            watcher.send_signal(signal.SIGINT)
            assert 0 == watcher.wait(PATIENCE_S)
        finally:
            watcher.kill()
            watcher.communicate()


def test_on_a_terminal_nodes_are_drawn_again_in_place():
    """As wide as the terminal; Ctrl-C gives the cursor back."""
    with Programs() as programs:
        site = Site(programs)
        for i in range(3):
            site.submerge("nodes", "ban", f"pump-{i}", "--yes", "--config", site.config)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        watcher = subprocess.Popen(
            [SUBMERGE, "nodes", "--watch", "--config", site.config],
            stdout=theirs,
            stderr=theirs,
            env=ENVIRON | {"TERM": "xterm"},
        )
        os.close(theirs)
        seen = bytearray()
        try:
            while seen.count(b"Ctrl-C ends") < 2:
                seen += os.read(ours, 4096)
            watcher.send_signal(signal.SIGINT)
            with suppress(OSError):  # the terminal's other end is closed
                while more := os.read(ours, 4096):
                    seen += more
            assert 0 == watcher.wait(PATIENCE_S)
        finally:
            watcher.kill()
            watcher.wait()
            os.close(ours)
        assert b"pump-2" in seen
        assert b"\x1b[1A" in seen
        assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")
        assert all(len(line) <= 80 for line in _plain(seen).splitlines())


def _plain(text: bytes) -> str:
    """What is left without the terminal's codes."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.decode()).replace("\r", "\n")
