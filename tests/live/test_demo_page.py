"""`submerge demo --page`: a viewer kills, stops and starts its processes; the line holds."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from typing import Any

import pytest

pytest.importorskip("grpc")
pytest.importorskip("jinja2")

from submerge_lab.demo.nodes import resident
from support.page_client import PageClient
from support.patience import PATIENCE_S, until

pytestmark = pytest.mark.slow


class DemoViewer(PageClient):
    """A demo with two clients, and its viewer."""

    def __init__(self, folder: str) -> None:
        command = [sys.executable, "-m", "submerge_operate", "demo", "--page", "--clients", "2"]
        self.run = subprocess.Popen(
            [*command, "--keep", f"{folder}/kept"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.run.stdout is not None
        what, url = self.run.stdout.readline().split()
        assert "page" == what
        self.port = int(url.split(":")[2].partition("/")[0])

    def opens(self) -> None:
        first = self.get("/demo")
        self.cookie = first.headers["set-cookie"].partition(";")[0]
        page = self.get(first.headers["location"]).body.decode()
        self.proof = page.split('submerge-proof" content="')[1][:64]

    def state(self) -> dict[str, Any]:
        """What the view shows; the line holds whenever there is one."""
        state = self.get("/data/demo").json
        line = state["line"]
        if line is not None:
            assert [] == line["wrong"]
            assert line["fed"] == line["counted"] + line["under_way"] + line["lost"]
        return state

    def process(self, name: str) -> dict[str, Any]:
        return next(each for each in self.state()["processes"] if each["name"] == name)

    def awaits(self, name: str, state: str) -> dict[str, Any]:
        until(lambda: self.process(name)["state"] == state, lambda: f"{name} {state}")
        return self.process(name)

    def breaks(self, name: str, verb: str, state: str) -> None:
        """End a process, see it gone, start it again, and see readings counted again."""
        pid = self.process(name)["pid"]
        assert 200 == self.post(f"/demo/{name}/{verb}").status
        until(lambda: self.process(name)["verbs"] == ["start"], lambda: f"an end of {name}")
        assert (state, None) == (self.process(name)["state"], resident(pid))
        assert 200 == self.post(f"/demo/{name}/start").status
        assert pid != self.awaits(name, "running")["pid"]
        self.awaits_more()

    def awaits_more(self) -> None:
        """Wait until the root has counted something that was fed from now on."""
        least = self.state()["line"]["fed"]
        until(
            lambda: self.state()["line"]["counted"] > least,
            lambda: f"more than {least} readings counted: {self.state()}",
            lambda: self.state()["line"]["counted"],
        )


@pytest.fixture
def viewer():
    with tempfile.TemporaryDirectory() as folder:
        viewer = DemoViewer(folder)
        try:
            yield viewer
        finally:
            viewer.run.kill()
            viewer.run.communicate()


def test_the_line_holds_while_processes_are_killed_stopped_and_started(viewer):
    """A client and an aggregator; Ctrl-C ends all of them, and the last line holds, too."""
    viewer.opens()
    for each in viewer.state()["processes"]:
        viewer.awaits(each["name"], "running")
    until(
        lambda: (viewer.state()["line"] or {"counted": 0})["counted"] > 0,
        lambda: f"readings counted: {viewer.state()}",
    )

    for verb, state, name in (
        ("kill", "killed", "client-1"),
        ("kill", "killed", "aggregator-1"),
        ("stop", "stopped", "client-2"),
        ("kill", "killed", "root"),
    ):
        viewer.breaks(name, verb, state)
    until(lambda: viewer.state()["line"]["open"] == 0, lambda: f"known fates: {viewer.state()}")

    pids = [each["pid"] for each in viewer.state()["processes"]]
    viewer.run.send_signal(signal.SIGINT)
    said, _ = viewer.run.communicate(timeout=PATIENCE_S)
    assert 0 == viewer.run.returncode
    assert "WRONG" not in said
    assert "+ under way 0 +" in said.splitlines()[-1]
    assert [None] * len(pids) == [resident(pid) for pid in pids]


def test_a_demo_that_is_killed_leaves_no_process(viewer):
    """SIGKILL of the demo itself: the kernel ends the others."""
    viewer.opens()
    viewer.awaits("root", "running")
    pids = [each["pid"] for each in viewer.state()["processes"]]
    viewer.run.kill()

    until(lambda: all(resident(pid) is None for pid in pids), lambda: f"an end of {pids}")


def test_options_of_a_run_that_ends_do_not_go_with_it():
    """In one line, before anything starts."""
    command = [sys.executable, "-m", "submerge_operate", "demo", "--page", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)

    assert (2, "") == (done.returncode, done.stdout)
    assert "leave --json and --plot out" in done.stderr
    assert 1 == len(done.stderr.splitlines())
