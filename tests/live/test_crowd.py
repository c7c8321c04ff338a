"""`submerge lab crowd` as a process: it runs until it is asked to end, and tells what it read."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

from submerge_lab.crowd.motes import sections
from submerge_operate import cli
from submerge_operate.pki.authority import Authority
from submerge_operate.pki.directory import text_of
from support.patience import until
from support.programs import Program, Programs, free_port

pytestmark = pytest.mark.slow

NODES = 3

ROOT = """
kit = "{folder}/root.kit"
store = "{folder}/root.db"
[listen.grpc]
address = "127.0.0.1:{port}"
[status]
address = ""
[timing]
model_every_s = 0.5
"""


@pytest.fixture
def programs() -> Iterator[Programs]:
    with Programs() as programs:
        yield programs


class Fleet:
    """A root, and crowds that report to it, each node with a kit of its own."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        now, day = datetime.now(UTC), timedelta(days=1)
        authority = Authority.create("crowd", now=now, lasts=day)
        hosts = {"root": ("127.0.0.1",), **{f"n{i + 1}": () for i in range(NODES)}}
        for node, names in hosts.items():
            certified = authority.certify(node, names, now=now, lasts=day)
            programs.file(f"{node}.kit", text_of(certified, authority).decode())
        self._port = free_port()
        text = ROOT.format(folder=programs.folder, port=self._port) + sections("room")
        self._config = programs.file("root.toml", text)
        self.root = programs.start("aggregator", "--config", self._config)
        self.root.until("serving")

    def crowd(self, *options: str) -> Program:
        """Start a crowd, and wait until each of its nodes scores."""
        crowd = self._programs.start(
            *(
                "lab",
                "crowd",
                "--into",
                f"grpcs://127.0.0.1:{self._port}",
                "--kits",
                self._programs.folder,
            ),
            *("--nodes", str(NODES), "--prefix", "n", "--rate", "20", "--report-every", "0.5"),
            *("--say-every", "0.2", "--json", *options),
        )
        until(lambda: facts(crowd).get("scoring") == NODES, lambda: f"scores: {crowd.log}")
        return crowd

    def held(self) -> int:
        """Return how many readings the root knows of."""
        asked = ("nodes", "list", "--config", str(self._config), "--json")
        listed = CliRunner().invoke(cli.submerge, asked)
        views = json.loads(listed.stdout)
        assert NODES == len(views)
        parts = [part for view in views for part in (*view["rows"], *view["sealed"])]
        return sum(part["learnt"] + part["withheld"] + part["lost"] for part in parts)


def facts(crowd: Program) -> dict[str, int]:
    """Return the newest of its facts."""
    return json.loads(crowd.out[-1]) if crowd.out else {}


def test_every_row_of_a_crowd_is_with_its_parent_in_the_end(programs, tmp_path):
    """SIGTERM ends all nodes gracefully: as many were read as the root holds."""
    fleet = Fleet(programs)
    crowd = fleet.crowd("--alive", str(tmp_path / "alive"))
    until((tmp_path / "alive").exists, lambda: "a sign of life")
    assert 0 == crowd.end()

    reported = facts(crowd)
    assert reported["rows"] == reported["delivered"] == fleet.held() > 0
    assert 0 == reported["unreported"] == reported["lost"]


def test_a_crowd_that_comes_back_tells_what_it_had_kept(programs, tmp_path):
    """What it could not tell while its parent hung is in its checkpoints; the next run tells it."""
    fleet = Fleet(programs)
    state = "--state", str(tmp_path)
    first = fleet.crowd(*state)
    fleet.root.signal(signal.SIGSTOP)
    assert 0 == first.end()
    assert 0 < facts(first)["unreported"]
    fleet.root.signal(signal.SIGCONT)
    second = fleet.crowd(*state)
    assert 0 == second.end()

    assert facts(first)["rows"] + facts(second)["rows"] == fleet.held()
