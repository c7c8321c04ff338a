"""`submerge demo --page`: what is killed is started again; every reading is accounted for."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

pytest.importorskip("grpc")
pytest.importorskip("jinja2")

from submerge_lab.demo.fleet import resident
from submerge_lab.demo.page import PageDemo
from submerge_lab.demo.run import DemoSettings
from submerge_lab.demo.site import open_wire
from support.demo_books import balance_of
from support.page_client import PageClient
from support.patience import PATIENCE_S, until

pytestmark = pytest.mark.slow

LAST = re.compile(
    r"readings +(\S+) fed = (\S+) counted \+ (\S+) declared lost \+ (\S+) lost with killed"
)


# -- as a person sees it --------------------------------------------------------------


class DemoViewer(PageClient):
    """A demo with two clients, and who looks at its page."""

    def __init__(self, folder: str) -> None:
        command = [sys.executable, "-m", "submerge_operate", "demo", "--page", "--clients", "2"]
        self.run = subprocess.Popen(
            [*command, "--keep", f"{folder}/kept"], stdout=subprocess.PIPE, text=True
        )
        self.link = self.says("page")
        self.port = int(self.link.split(":")[2].partition("/")[0])
        pairs = (each.split() for each in self.says("fleet").split(", "))
        self.pids = {name: int(pid) for name, pid in pairs}

    def says(self, what: str) -> str:
        """The rest of the next line, which begins with a word."""
        assert self.run.stdout is not None
        said, _, rest = self.run.stdout.readline().partition(" ")
        assert what == said
        return rest.strip()

    def kills(self, name: str) -> None:
        """End a process as a power cut does; it is started again."""
        before = self.pids[name]
        os.kill(before, signal.SIGKILL)
        again, pid = self.says("again").split()
        assert (name, None) == (again, resident(before))
        self.pids[name] = int(pid)


@pytest.fixture
def viewer():
    with tempfile.TemporaryDirectory() as folder:
        viewer = DemoViewer(folder)
        try:
            yield viewer
        finally:
            viewer.run.kill()
            viewer.run.communicate()


def test_the_page_of_the_root_shows_the_fleet(viewer):
    """By its link; after a kill of the root, too. Ctrl-C ends all of them."""
    viewer.says("try")
    viewer.follows(viewer.link)

    def shown() -> str:
        try:
            return viewer.get("/data/fleet/room").body.decode()
        except OSError:
            return ""

    until(lambda: "client-2" in shown(), lambda: f"the fleet on the page: {shown()}")
    viewer.kills("root")
    until(lambda: "client-2" in shown(), lambda: f"the fleet on the page again: {shown()}")

    viewer.run.send_signal(signal.SIGINT)
    said, _ = viewer.run.communicate(timeout=PATIENCE_S)
    fed, *parts = (int(each.replace(",", "")) for each in LAST.search(said).groups())
    assert 0 == viewer.run.returncode
    assert 0 < fed == sum(parts)
    assert dict.fromkeys(viewer.pids) == {n: resident(p) for n, p in viewer.pids.items()}


def test_a_demo_that_is_killed_leaves_no_process(viewer):
    """SIGKILL of the demo itself: the kernel ends the others."""
    viewer.run.kill()

    pids = viewer.pids.values()
    until(lambda: all(resident(pid) is None for pid in pids), lambda: f"an end of {pids}")


def test_options_of_a_run_that_ends_do_not_go_with_it():
    """In one line, before anything starts."""
    command = [sys.executable, "-m", "submerge_operate", "demo", "--page", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)

    assert (2, "") == (done.returncode, done.stdout)
    assert "leave --json and --plot out" in done.stderr
    assert 1 == len(done.stderr.splitlines())


# -- every reading --------------------------------------------------------------------


class KilledDemo(PageDemo):
    """Kills its processes in turn, each once both clients are acknowledged again."""

    waiting = ("client-1", "aggregator-1", "client-2", "root")
    least: Mapping[str, int] = MappingProxyType({})

    def tick(self) -> None:
        super().tick()
        clients = self.fleet.of("client")
        if any(node.state != "running" for node in self.fleet.nodes.values()) or not all(
            node.stints[-1].acknowledged and node.acknowledged > self.least.get(node.name, 0)
            for node in clients
        ):
            return
        if not self.waiting:
            raise KeyboardInterrupt
        name, *others = self.waiting
        self.waiting = tuple(others)
        self.fleet.nodes[name].process.kill()
        self.fleet.wait_until(
            lambda: self.fleet.nodes[name].state == "killed", f"lose {name}", lambda: None
        )
        self.least = {node.name: node.acknowledged for node in clients}


def test_every_reading_is_accounted_for_whatever_is_killed(capsys):
    """Two clients, their aggregator and the root, one after the other, while readings come.

    By the stores at the end: no acknowledged reading is missing, none is counted twice, and an
    aggregator and the root agree on each.
    """
    settings = DemoSettings(seed=1, clients=2, seconds=14 * 60.0)
    with tempfile.TemporaryDirectory() as folder, open_wire(None, mqtt=False) as wire:
        demo = KilledDemo(settings, Path(folder), wire, print)
        demo.run()
        balance = balance_of(demo.fleet)
    said = capsys.readouterr().out

    assert () == balance.wrong
    assert ["client-1", "aggregator-1", "client-2", "root"] == re.findall(r"again +(\S+)", said)
    fed, counted, lost, killed = (int(each.replace(",", "")) for each in LAST.search(said).groups())
    assert (balance.fed, balance.learnt + balance.withheld) == (fed, counted)
    assert (balance.declared_lost, sum(balance.lost_with_kill.values())) == (lost, killed)
