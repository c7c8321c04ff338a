"""Copies of real roots: under load, through kills, and back in place with every reading once."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("grpc")

from submerge_aggregator.backup import read_copy
from submerge_aggregator.questions.views import socket_of
from submerge_aggregator.store import Store
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import NoAnswer, UnixSocket
from submerge_operate import cli
from submerge_operate.backup import fetch
from support.kills.configs import OverGrpc
from support.kills.fleet import Fleet
from support.kills.judging import holdings, judge
from support.kills.plan import ROOT
from support.patience import PATIENCE_S, until
from support.programs import SUBMERGE, Program, Programs

pytestmark = pytest.mark.slow


@pytest.fixture
def programs() -> Iterator[Programs]:
    with Programs() as programs:
        yield programs


@pytest.fixture
def fleet(programs) -> Fleet:
    """A root, an aggregator and a client of it, all at work."""
    fleet = Fleet(programs, OverGrpc.on_free_ports())
    for node in (ROOT, "north", "n1"):
        fleet.start(node)
    for node in (ROOT, "north", "n1"):
        fleet.recovered(node)
    return fleet


def submerge(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run([SUBMERGE, *words], capture_output=True, text=True, timeout=PATIENCE_S)


def durable_more(program: Program, rows: int = 200) -> None:
    """Wait until so many more readings of a client have been acknowledged."""

    def readings() -> int:
        reported = program.said("acknowledged")
        return reported[-1].facts["readings"] if reported else 0

    goal = readings() + rows
    until(
        lambda: readings() >= goal, lambda: f"readings\n{program.log}", lambda: len(program.lines)
    )


def verdict(fleet: Fleet) -> list[str]:
    """End a fleet, and say what is wrong with what its stores hold."""
    wrong = fleet.end()
    return wrong + judge(fleet.stores, fleet.incarnations, fleet.most_lives).all


def test_copies_while_reports_go_on_are_all_good(programs, fleet):
    """One after the other, as fast as they come; the fleet loses nothing, and counts all once."""
    config, folder = programs.folder / "root.toml", programs.folder / "copies"
    folder.mkdir()
    admin = AdminClient(UnixSocket(socket_of(fleet.stores[ROOT])))
    for number in range(40):
        fetch(admin, folder / f"{number}.backup", anyway=False)
    fleet.settle()
    checks = [
        # In this process: to start forty would take longer than all else here.
        CliRunner().invoke(cli.submerge, ["backup", "check", str(each), "--config", str(config)])
        for each in folder.iterdir()
    ]

    assert [] == [done.output for done in checks if done.exit_code]
    assert 40 == len(checks)
    assert [] == verdict(fleet)


def test_after_a_restore_each_reading_counts_once(programs, fleet):
    """Nodes hold what they reported since the copy, and the root gets it again."""
    config, copy = programs.folder / "root.toml", programs.folder / "a.backup"
    durable_more(fleet.running["n1"])
    done = submerge("backup", "--config", config, "--to", copy)
    assert (0, "") == (done.returncode, done.stderr)
    at_copy = sum(each.learnt for each in read_copy(copy).identity.groups.values())
    durable_more(fleet.running["n1"], 600)
    refused = submerge("backup", "restore", copy, "--config", config)
    assert (2, True) == (refused.returncode, "stop it first" in refused.stderr)

    assert 0 == fleet.running[ROOT].end()
    done = submerge("backup", "restore", copy, "--config", config)
    assert (0, "") == (done.returncode, done.stderr)
    restored = sum(each.n for each in holdings(fleet.stores[ROOT], 3).values())
    fleet.start(ROOT)
    fleet.recovered(ROOT)
    durable_more(fleet.running["n1"])
    fleet.settle()
    fed = len(fleet.incarnations[-1].fed.ids)

    assert [] == verdict(fleet)
    assert at_copy == restored < fed - 600
    assert fed == sum(each.n for each in holdings(fleet.stores[ROOT], 3).values())


def test_what_only_a_dead_aggregator_had_reported_is_as_it_was_at_the_copy(programs, fleet):
    """It is missing from then on, as the pages say; what the others hold is not."""
    config, copy = programs.folder / "root.toml", programs.folder / "a.backup"
    fleet.start("south"), fleet.start("s1")
    for node in ("south", "s1"):
        fleet.recovered(node)
    durable_more(fleet.running["s1"])
    assert 0 == submerge("backup", "--config", config, "--to", copy).returncode
    durable_more(fleet.running["s1"], 400)
    assert 0 == fleet.running["s1"].end()
    assert 0 == fleet.running["south"].end()
    before = holdings_while_stopped(fleet)
    assert 0 == submerge("backup", "restore", copy, "--config", config).returncode
    copied = {node: each.n for node, each in holdings(fleet.stores[ROOT], 3).items()}
    fleet.start(ROOT)
    fleet.recovered(ROOT)
    fleet._feeders["n1"].stop()
    fleet._settle("n1")
    assert [] == fleet.end()
    after = {node: each.n for node, each in holdings(fleet.stores[ROOT], 3).items()}

    assert copied["south"] == after["south"] <= before["south"] - 400
    assert before["north"] <= after["north"] == len(fleet.incarnations[0].fed.ids)


def holdings_while_stopped(fleet: Fleet) -> dict[str, int]:
    """End the root, and return the readings that it holds, by node."""
    assert 0 == fleet.running[ROOT].end()
    return {node: each.n for node, each in holdings(fleet.stores[ROOT], 3).items()}


def copies_in(folder):
    """Return the names of copies, whole or not; the time of the last one is none."""
    names = [each.name for each in folder.iterdir() if "backup" in each.name]
    return [name for name in names if not name.endswith(".last-backup")]


@pytest.mark.parametrize("pieces", [0, 1])
def test_a_root_that_is_killed_meanwhile_leaves_nothing_half(programs, fleet, monkeypatch, pieces):
    """Before the first piece of a copy, and after it; it starts again, and gives another."""
    path, got, get = programs.folder / "a.backup", [0], AdminClient.get

    def get_and_kill(self: AdminClient, *words: str, **query: str) -> bytes:
        if got[0] == pieces:
            fleet.running[ROOT].kill()
        answer = get(self, *words, **query)
        got[0] += len(words) == 3
        return answer[:100] if len(words) == 3 else answer

    admin = AdminClient(UnixSocket(socket_of(fleet.stores[ROOT])))
    with monkeypatch.context() as patched:
        patched.setattr(AdminClient, "get", get_and_kill)
        with pytest.raises(NoAnswer):
            fetch(admin, path, anyway=False)
    # A kill before the copy has lost its name leaves an empty file, which the next one removes.
    copying = [each.stat().st_size for each in programs.folder.glob("root.db.copying*")]
    assert not any(copying)
    assert [] == copies_in(programs.folder)

    fleet.start(ROOT)
    fleet.recovered(ROOT)
    fetch(admin, path, anyway=False)
    assert not list(programs.folder.glob("root.db.copying*"))
    fleet.settle()
    done = submerge("backup", "check", path, "--config", programs.folder / "root.toml")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert [] == verdict(fleet)


KILLED_COMMAND = """
import os, signal, sys
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import UnixSocket
from submerge_operate import cli
get = AdminClient.get
def get_and_die(self, *words, **query):
    answer = get(self, *words, **query)
    if len(words) == 3 and words[2] != "0":
        os.kill(os.getpid(), signal.SIGKILL)
    return answer[:5000] if len(words) == 3 else answer
AdminClient.get = get_and_die
sys.argv[0] = "submerge"
cli.main()
"""


def test_a_command_that_is_killed_leaves_no_file_that_looks_whole(programs, fleet):
    """The root frees the copy once it notices, and gives another one."""
    config, path = programs.folder / "root.toml", programs.folder / "a.backup"
    words = ("backup", "--config", config, "--to", path)
    died = subprocess.run([sys.executable, "-c", KILLED_COMMAND, *words], timeout=PATIENCE_S)
    (part,) = copies_in(programs.folder)

    assert -signal.SIGKILL == died.returncode
    assert part.startswith(".a.backup.")
    busy = submerge(*words)
    assert (1, True) == (busy.returncode, "another backup is under way" in busy.stderr)
    until(lambda: submerge(*words).returncode == 0, lambda: "the root to notice")
    assert 0 == submerge("backup", "check", path, "--config", config).returncode
    fleet.settle()
    assert [] == verdict(fleet)


KILLED_RESTORE = """
import os, signal, sys
from submerge_operate import cli
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "link":
    os.link = die
elif sys.argv[1] == "write":
    os.fchown = die
elif sys.argv[1] == "fsync":
    os.fsync = die
else:
    os.replace = os.rename = die
del sys.argv[1]
sys.argv[0] = "submerge"
cli.main()
"""


def test_a_restore_that_is_killed_leaves_the_store_as_it_was(programs, fleet):
    """Whole under its name, wherever it is killed; the next restore goes through."""
    config = programs.folder / "root.toml"
    early, late = copies = [programs.folder / f"{name}.backup" for name in ("early", "late")]
    for copy in copies:
        assert 0 == submerge("backup", "--config", config, "--to", copy).returncode
        durable_more(fleet.running["n1"])
    fleet.settle()
    assert [] == fleet.end()
    points = ("write", "link", "fsync", "replace")
    for point, copy in zip(points, (early, late, early, late), strict=True):
        before, words = kept(fleet), ("backup", "restore", copy, "--config", config)
        died = subprocess.run([sys.executable, "-c", KILLED_RESTORE, point, *words])

        assert read_copy(copy).kept != before
        if died.returncode == -signal.SIGKILL:  # not where this user never comes to that point
            assert before == kept(fleet)
        assert 0 == submerge(*words).returncode
        assert read_copy(copy).kept == kept(fleet)


def kept(fleet: Fleet) -> object:
    """Return what the root's store holds."""
    with closing(Store(fleet.stores[ROOT])) as opened:
        return opened.load()


def test_two_commands_at_once(programs, fleet):
    """One of them gets its copy, and the other a line; or both do, one after the other."""
    config = programs.folder / "root.toml"
    statuses: list[int] = []

    def run(number: int) -> None:
        path = programs.folder / f"{number}.backup"
        statuses.append(submerge("backup", "--config", config, "--to", path).returncode)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)
    good = [
        submerge("backup", "check", each, "--config", config).returncode
        for each in programs.folder.glob("?.backup")
    ]
    assert statuses.count(0) == len(good) >= 1
    assert {0} == {*good}
    assert {0, 1} >= {*statuses}
    fleet.settle()
    assert [] == verdict(fleet)
