"""`submerge demo`, for real: processes that are fed, killed, and never left behind."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from rich.console import Console

from submerge import UsageError
from submerge_lab.demo.command import command as demo
from submerge_lab.demo.fleet import resident
from submerge_lab.demo.live import fleet_table
from submerge_lab.demo.processes import OutputLine, ProcessEnd, Processes
from submerge_lab.demo.report import lines, picture
from submerge_lab.demo.run import DemoSettings
from submerge_lab.demo.site import free_ports, open_wire
from submerge_lab.plants.room import Room
from submerge_operate import cli
from support.demo_accuracy import RecordedDemo
from support.demo_books import balance_of
from support.patience import PATIENCE_S, until
from support.programs import DETACHED

pytestmark = pytest.mark.soak  # the gate runs the demo of the wheel

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def submerge():
    """Run the group as a program does, in this process."""
    return lambda *arguments: CliRunner().invoke(cli.submerge, ["demo", *map(str, arguments)])


@pytest.fixture
def place():
    """A folder with a short name: aggregators put sockets there."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder).resolve()


# -- processes -------------------------------------------------------------------------


def heard_of(processes):
    """All that is said until the first process is gone."""
    heard = []

    def is_gone():
        heard.extend(processes.wait(0.1))
        return any(isinstance(each, ProcessEnd) for each in heard)

    until(is_gone, lambda: f"an end after {len(heard)} lines", lambda: len(heard))
    return heard


def test_what_is_written_is_read_and_answered():
    """Far more than a pipe holds, both ways at once; the last line, the end, and the status."""
    with Processes() as processes:
        echo = processes.start("echo", ["json.tool", "--json-lines", "--compact"], fed=True)
        rows = [json.dumps([i] * 100, separators=(",", ":")).encode() for i in range(2000)]
        processes.write(echo, b"\n".join(rows) + b"\n")
        processes.close_input(echo)
        *said, gone = heard_of(processes)

    assert [OutputLine(echo, "out", row) for row in rows] == said
    assert ProcessEnd(echo, 0) == gone


def test_nothing_is_left_behind():
    """Whatever goes wrong inside, the process that ran is gone after it; so is its memory."""
    pids = []

    def interrupted():
        with Processes() as processes:
            pids.append(processes.start("sleeper", ["asyncio"], fed=True).pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    (pid,) = pids
    assert resident(pid) is None
    assert resident(os.getpid()).now > 10e6
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_killed_process_is_heard_to_its_end():
    """Its status says how it ended; what it could not read is dropped."""
    with Processes() as processes:
        deaf = processes.start("deaf", ["asyncio"], fed=True)
        processes.write(deaf, b"\n" * 1_000_000)
        deaf.kill()
        *_, gone = heard_of(processes)
        processes.write(deaf, b"more")

    assert ProcessEnd(deaf, -9) == gone


# -- the whole -----------------------------------------------------------------


def run_of(settings, **room):
    """A small fleet for a few seconds: the demo, its outcome, what a person saw.

    room : of `Room`, where it is not that of the settings
    """
    seen = io.StringIO()
    console = Console(width=80, file=seen)

    def look():
        if not seen.getvalue() and run.alarms.raised:
            console.print(fleet_table(run, width=80))

    with tempfile.TemporaryDirectory() as folder, open_wire(None, mqtt=False) as wire:
        run = RecordedDemo(settings, Path(folder), wire)
        if room:
            run.room = Room(seed=settings.seed, days=settings.days, **room)
        outcome = run.run(look)
        balance, accuracy = balance_of(run.fleet), run.accuracy()
    console.print(fleet_table(run, width=80))
    return SimpleNamespace(
        demo=run, outcome=outcome, seen=seen.getvalue(), balance=balance, accuracy=accuracy
    )


SHORT = DemoSettings(seed=1, days=2.0, clients=2, seconds=3.0)


@pytest.fixture(scope="module")
def short():
    """Two days of a linear group."""
    return run_of(SHORT)


@pytest.fixture(scope="module")
def sound():
    """The same without faults of sensors: what is learnt of one that is broken is a choice."""
    return run_of(SHORT, faults=())


@pytest.fixture(scope="module")
def kernel():
    """Two days of a kernel group, without faults of sensors."""
    return run_of(replace(SHORT, rank=16, features=128), faults=())


@pytest.mark.parametrize("group", ["short", "kernel"])
def test_every_reading_is_accounted_for(group, request):
    """With a client and an aggregator killed on the way; the other client is exact.

    By all stores, and by what each client process was given and had acknowledged.
    """
    run = request.getfixturevalue(group)
    balance, counts = run.balance, run.outcome.counts

    assert balance.wrong == ()
    assert balance.fed == run.demo.room.n_snapshots == 5574
    assert balance.exact == 1
    assert balance.fed == (
        balance.learnt
        + balance.withheld
        + balance.declared_lost
        + sum(balance.lost_with_kill.values())
    )
    assert (balance.learnt, balance.withheld, balance.declared_lost) == (
        counts.learnt,
        counts.withheld,
        counts.lost,
    )
    assert run.outcome.lost_with_kill == sum(balance.lost_with_kill.values())
    assert all(failure.back_s is not None for failure in run.outcome.failures)


def test_each_fault_is_found_or_missed(short):
    """Each true fault once, found while it holds or soon after; what else is named is false."""
    outcome = short.outcome
    of_faults = [each for each in outcome.verdicts if each.fault is not None]

    assert [each.fault for each in of_faults] == list(short.demo.room.faults)
    assert outcome.count("found") + outcome.count("missed") == len(short.demo.room.faults)
    assert outcome.count("false") == len(outcome.verdicts) - len(of_faults)
    assert all((each.alarm is not None) == (each.outcome == "found") for each in of_faults)


def test_the_merged_model_is_near_exact_pca(sound):
    """Of all rows that the root holds, with gaps as they would have been read."""
    accuracy, readings = sound.accuracy

    assert readings is None
    assert 1 <= accuracy.ratio < 1.4
    assert accuracy.energy_kept > 0.9


def test_a_kernel_groups_model_is_near_exact_pca(kernel):
    """Of all rows' features, and of the readings themselves."""
    features, linear = kernel.accuracy

    assert 1 <= features.ratio < 1.4
    assert 1 <= linear.ratio < 1.4
    assert features.energy_kept > 0.9
    assert linear.energy_kept > 0.9


def test_a_kernel_group_says_that_it_is_one(kernel):
    """While it runs and in the end; its rows have anomaly scores."""
    said = dict(lines(kernel.outcome))

    assert "a kernel, 128 features" in " ".join(kernel.seen.split())
    assert " anomaly score " in kernel.seen
    assert "a Gaussian kernel, 128 features" in said["fleet"]
    assert {"readings", "faults", "alarms"} < said.keys()
    assert "anomaly score above 1" in said["scores"]


def test_every_process_is_told_of(short):
    """Live and in the figures: state, rows, memory; within 80 columns."""
    names = ["root", "aggregator-1", "client-1", "client-2"]

    assert names == [each.node for each in short.outcome.usage]
    assert all(each.peak_bytes > 20e6 for each in short.outcome.usage)
    assert all(each.sent_bytes > 0 for each in short.outcome.of("client"))
    assert all(name in short.seen for name in names)
    assert "ended" in short.seen
    assert "…" not in short.seen


def test_the_picture_fits_the_terminal(short):
    """At 80 and at 130 columns no line is longer, and each fault has its own."""
    run, outcome = short.demo, short.outcome
    for width in (80, 130):
        drawn = picture(outcome, run.history, run.watch.limits.spe, width=width)
        assert max(len(line.plain) for line in drawn) <= width
        text = "\n".join(line.plain for line in drawn)
        assert all(fault.channel in text for fault in run.room.faults)


def test_every_figure_is_told(short):
    """A line each, for a person."""
    names = [name for name, _ in lines(short.outcome)]

    for name in (
        "room",
        "fleet",
        "readings",
        "recovery",
        "traffic",
        "memory",
        "alarms",
        "faults",
    ):
        assert name in names


def shown_by(path):
    """The heading of a demo's picture, and its panels with each number as 0."""
    from PIL import Image

    with Image.open(path) as picture:
        heading, *panels = picture.text["Description"].split("\n")
        return heading, [re.sub(r"[\d.]+", "0", panel) for panel in panels], picture.size


def test_the_picture_in_the_docs_is_what_the_demo_draws(short, tmp_path):
    """docs/demo.png is of a whole run, as large, with the panels, labels and legends of today."""
    from submerge_lab.demo.plot import draw

    draw(tmp_path / "demo.png", short.demo, short.outcome)
    heading, *shape = shown_by(tmp_path / "demo.png")
    in_docs, *shape_in_docs = shown_by(DOCS / "demo.png")
    whole = {option.name: option.default for option in demo.params}

    assert heading.startswith("54 motes, 2 days, 2 clients: ")
    assert in_docs.startswith(f"54 motes, {whole['days']:g} days, {whole['clients']} clients: ")
    assert shape == shape_in_docs


@pytest.mark.parametrize("more", [(), ("--kernel",)])
def test_the_command_prints_one_object_and_leaves_nothing(submerge, place, monkeypatch, more):
    """All figures, on standard output alone; over MQTT, whose broker is its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    done = submerge("--days", 2, "--seconds", 3, "--clients", 2, "--mqtt", "--json", *more)

    assert (done.exit_code, done.stderr) == (0, ""), done.stdout
    figures = json.loads(done.stdout)
    assert {"counts", "failures", "usage", "verdicts", "missed", "false"} < set(figures)
    assert figures["found"] + figures["missed"] == 6
    assert figures["snapshots"] == sum(figures["counts"].values())
    assert figures["wire"] == "MQTT, aMQTT on loopback"
    assert list(place.iterdir()) == []


def test_a_broker_that_is_not_there_is_refused(submerge):
    """Before anything is started."""
    port = free_ports(["broker"])["broker"]
    nobody = submerge("--mqtt", f"127.0.0.1:{port}").exception
    nowhere = submerge("--mqtt", "127.0.0.1:99999").exception

    assert isinstance(nobody, UsageError)
    assert "start one, or use --mqtt alone" in str(nobody)
    assert "mqtt://host:port" in str(nowhere)


def processes_of(folder: Path) -> list[str]:
    """Command lines that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it has ended since
        if f"{folder}/" in text:
            found.append(text)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("number", "before"),
    [
        pytest.param(signal.SIGINT, (), id="SIGINT"),
        pytest.param(signal.SIGINT, DETACHED, id="SIGINT below nohup and &"),
        pytest.param(signal.SIGTERM, (), id="SIGTERM"),
        pytest.param(signal.SIGKILL, (), id="SIGKILL"),
    ],
)
def test_however_it_is_stopped_nobody_is_left_behind(place, number, before):
    """Ctrl-C, a supervisor's SIGTERM, even a SIGKILL of the demo itself.

    Below `nohup` it outlives its terminal; and Ctrl-C counts where SIGINT came down ignored.
    """
    folder = place / "kept"
    command = [sys.executable, "-m", "submerge_operate", "demo", "--quiet", "--clients", "1"]
    with subprocess.Popen(
        [*before, *command, "--keep", str(folder)], stderr=subprocess.DEVNULL
    ) as run:
        until((folder / "client-1.state").exists, lambda: "a client that reads")
        assert len(processes_of(folder)) == 3  # a root, an aggregator, a client

        if before:
            run.send_signal(signal.SIGHUP)
        run.send_signal(number)
        status = run.wait(PATIENCE_S)
    until(lambda: not processes_of(folder), lambda: f"an end of {processes_of(folder)}")

    assert status == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
