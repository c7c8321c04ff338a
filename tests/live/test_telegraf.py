"""Pipes as Telegraf has them: a writer, `submerge client --format influx`, a reader, and a root.

Telegraf itself is not run. `processors.execd` writes metrics to a program's standard input as they
come, and reads its standard output. To stop it, it closes the input, and later sends SIGTERM.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from submerge_client.sensors.influx.line_protocol import parse
from support.patience import PATIENCE_S, until
from support.programs import PATH, SUBMERGE, Programs, free_port

pytestmark = pytest.mark.slow

GROUP = """
[{section}]
channels = ["modbus.pump/flow", "modbus.pump/pressure", "s7comm/current"]
scaling = "none"
[{summary}]
rank = 1
rank_max = 2
"""
ROOT = """
node = "root"
store = "{folder}/root.db"
[listen.grpc]
address = "127.0.0.1:{port}"
insecure = true
[status]
address = "127.0.0.1:0"
[timing]
model_every_s = 0.5
"""
CLIENT = """
node = "{node}"
group = "pumps"
parent = "root"
state = "{node}.state"
log = "debug"
[uplink]
url = "grpc://127.0.0.1:{port}"
insecure = true
[sensor]
kind = "influx"
mode = "{mode}"
[timing]
report_every_s = {every_s}
gather_s = 0.2
"""
WRITER = """
import sys, time
rows, pause_s = int(sys.argv[1]), float(sys.argv[2])
for i in range(rows):
    t, a = 1767225600 + 10 * i, (i * 7919 % 1000) / 500 - 1
    sys.stdout.write(
        f"modbus,host=h,name=pump flow={20 + 5 * a:.3f},pressure={3 + 2 * a:.3f} {t}000000000\\n"
        f"cpu,cpu=cpu0,host=h usage_idle={50 + a} {t}000000000\\n"
        f's7comm,host=h current={1 + a * a:.4f},ok=true,err="a, b" {t}000000000\\n'
        + "no metric at all\\n" * (i % 100 == 50)
    )
    if pause_s:
        sys.stdout.flush()
        time.sleep(pause_s)
"""


class Pipes:
    """A client between a writer and a reader, all of them processes."""

    def __init__(self, folder: Path, port: int, node: str, mode: str, every_s: float) -> None:
        self.folder, self.node = folder, node
        text = CLIENT.format(node=node, port=port, mode=mode, every_s=every_s)
        (folder / f"{node}.toml").write_text(
            text + GROUP.format(section="schema", summary="summary")
        )
        self.written, self.read = folder / f"{node}.in", folder / f"{node}.out"
        self.processes: list[subprocess.Popen] = []

    def start(self, rows: int, pause_s: float = 0.0) -> None:
        """Start all three; `tee` keeps what the client may read."""
        tee = self._run("tee", self.written, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.writer = self._run(sys.executable, "-c", WRITER, rows, pause_s, stdout=tee.stdin)
        tee.stdin.close()
        with (self.folder / f"{self.node}.log").open("wb") as log:
            self.client = self._run(
                *(SUBMERGE, "client", "--format", "influx", "--log-json"),
                *("--config", f"{self.node}.toml"),
                stdin=tee.stdout,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        tee.stdout.close()
        with self.read.open("wb") as out:
            self.reader = self._run("cat", stdin=self.client.stdout, stdout=out)
        self.client.stdout.close()

    def _run(self, *command, **pipes) -> subprocess.Popen:
        environ = os.environ | {"PYTHONPATH": PATH, "OPENBLAS_NUM_THREADS": "1"}
        words = [str(word) for word in command]
        self.processes.append(subprocess.Popen(words, cwd=self.folder, env=environ, **pipes))
        return self.processes[-1]

    @property
    def log(self) -> str:
        """What the client has logged."""
        return (self.folder / f"{self.node}.log").read_text()

    def said(self, what: str) -> list[dict]:
        """Return the client's log lines that say one thing."""
        lines = [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]
        return [line for line in lines if line["what"] == what]

    def until(self, what: str) -> dict:
        """Wait for a log line."""
        until(lambda: self.said(what), lambda: self.log, lambda: len(self.log))
        return self.said(what)[-1]

    def ended(self) -> int:
        """Wait for the client's end, and for what it wrote; return its exit status."""
        status = self.client.wait(PATIENCE_S)
        self.reader.send_signal(signal.SIGCONT)
        self.reader.wait(PATIENCE_S)
        return status

    @property
    def parts(self) -> tuple[bytes, list[bytes]]:
        """What went on, and the lines of ours."""
        lines = self.read.read_bytes().splitlines(keepends=True)
        ours = [line for line in lines if line.startswith(b"submerge,")]
        return b"".join(line for line in lines if not line.startswith(b"submerge,")), ours


@pytest.fixture(scope="module")
def root() -> Iterator[tuple[Path, int]]:
    """A root that runs, its folder, and its port."""
    with Programs() as programs:
        port = free_port()
        text = ROOT.format(port=port, folder=programs.folder) + GROUP.format(
            section="groups.pumps.schema", summary="groups.pumps.summary"
        )
        path = programs.file("root.toml", text)
        programs.start("aggregator", "--config", path).until("serving")
        yield programs.folder, port


@pytest.fixture
def pipes(root) -> Iterator:
    made: list[Pipes] = []

    def between(node: str, mode: str = "processor", every_s: float = 0.5) -> Pipes:
        made.append(Pipes(*root, node, mode, every_s))
        return made[-1]

    yield between
    for each in made:
        for process in each.processes:
            process.kill()
            process.wait(PATIENCE_S)


def test_golden_lines(pipes):
    """What goes in comes out byte for byte, and ours stand behind the rows that they score."""
    one = pipes("golden")
    one.start(1_000_000, 0.002)
    until(lambda: len(one.parts[1]) > 20, lambda: one.log, lambda: len(one.log))
    one.writer.terminate()  # between two of its lines: the end of the input
    status = one.ended()
    passed, ours = one.parts
    times = [parse(line.rstrip()).time for line in ours]
    out, rows = one.read.read_bytes(), passed.count(b"\ns7comm")

    assert (0, one.written.read_bytes()) == (status, passed)
    # The first rows were learnt before there was a model; each later one has one metric.
    assert times == [(1767225600 + 10 * i) * 10**9 for i in range(rows - len(times), rows)]
    for line, time in zip(ours, times, strict=True):
        assert out.index(b',ok=true,err="a, b" %d\n' % time) < out.index(line)
    ended = one.until("ended")
    malformed = passed.count(b"no metric")
    assert (rows, rows, malformed) == (ended["rows"], taken_in(ended), ended["sensor_malformed"])


def test_output(pipes):
    """An output prints nothing, and learns the same rows."""
    one = pipes("output", "output")
    one.start(300)
    status, ended = one.ended(), one.until("ended")

    assert (0, b"") == (status, one.read.read_bytes())
    assert (300, 300) == (ended["rows"], taken_in(ended))


def taken_in(ended: dict) -> int:
    """Rows that were learnt, or withheld by an alarm of the first rows."""
    return ended["learnt"] + ended.get("withheld", 0)


def test_stuck_reader(pipes):
    """Without its reader it reads no more, and reports; with it all goes on, and none is lost."""
    one = pipes("stuck", every_s=3.0)
    one.start(20_000)
    one.reader.send_signal(signal.SIGSTOP)
    one.until("standard output is blocked: reading stops until its reader goes on")
    one.until("acknowledged")
    taken = one.written.stat().st_size
    assert one.client.poll() is None
    one.reader.send_signal(signal.SIGCONT)
    one.until("standard output is read again")
    status, ended = one.ended(), one.until("ended")

    written = one.written.read_bytes()
    assert taken < len(written) / 2
    assert (0, written) == (status, one.parts[0])
    assert (20_000, 20_000, 1) == (ended["rows"], taken_in(ended), ended["sensor_blocked"])
    assert "sensor_not_passed_on" not in ended


def test_stopped_while_stuck(pipes):
    """Stopped while its reader takes nothing, it counts the lines that did not go on."""
    one = pipes("stopped", every_s=3.0)
    one.start(20_000)
    one.reader.send_signal(signal.SIGSTOP)
    one.until("standard output is blocked: reading stops until its reader goes on")
    one.client.terminate()
    status = one.ended()
    passed, _ = one.parts
    written, ended = one.written.read_bytes(), one.until("ended")

    assert 0 == status
    assert written.startswith(passed)
    # Read is what went on and what was counted. A row has three lines, and some have a fourth.
    read = passed.count(b"\n") + ended["sensor_not_passed_on"]
    rows = len(set(re.findall(rb" (\d+)000000000\n", b"\n".join(written.split(b"\n")[:read]))))
    assert abs(rows - ended["rows"]) <= 1
    assert ended["rows"] == taken_in(ended)


def test_killed_reader(pipes):
    """Without a reader it says so and ends with status 1; the rows that it read are learnt."""
    one = pipes("killed")
    one.start(20_000, 0.001)
    until(lambda: one.read.stat().st_size)
    one.reader.kill()
    status = one.ended()
    failed, ended = one.until("the sensor failed"), one.until("ended")

    assert 1 == status
    assert "expected a reader of standard output, got: its reader has ended" in failed["why"]
    assert 0 < ended["rows"] == taken_in(ended)
