"""Metrics of Telegraf through a client: lines a second beside a plain copy, and the delay of one.

    python benchmarks/telegraf.py

A process between two pipes reads what this program writes, and this program reads what it writes:
a copy in Python (32 KiB at a time), and `submerge client --format influx` with a root that has made
a model. Telegraf's part is played by this program. The client's lines come three to a row of five
channels; in the second run of it, no line is of a channel. All of them share the machine's cores.
"""

import os
import statistics
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from processes import SUBMERGE, Process, free_port

STARTS = ("client/submerge_client", "core/submerge", "proto/submerge_proto")
"""What it measures beside itself, for the mark of its page."""

COPY = """
import os
while chunk := os.read(0, 1 << 15):
    os.write(1, chunk)
"""
LINES = 150_000
PINGS = 300
GROUP = """
[{schema}]
channels = [
    "modbus.pump/flow", "modbus.pump/pressure", "s7comm/current", "s7comm/heat", "snmp/load"
]
scaling = "none"
[{summary}]
rank = 2
rank_max = 3
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
model_every_s = 1.0
"""
CLIENT = """
node = "bench"
group = "pumps"
parent = "root"
state = "{folder}/{name}.state"
[uplink]
url = "grpc://127.0.0.1:{port}"
insecure = true
[sensor]
kind = "influx"
name = "{template}"
[timing]
report_every_s = 2.0
gather_s = 0.2
"""


def lines(first: int, rows: int) -> bytes:
    """Return three lines for each row."""
    out = []
    for i in range(first, first + rows):
        t, a, b = (1767225600 + 10 * i) * 10**9, (i * 7919 % 1000) / 500 - 1, (i * 31 % 77) / 40 - 1
        out.append(
            f"modbus,host=edge,name=pump flow={20 + 5 * a:.4f},pressure={3 + 2 * b:.4f} {t}\n"
            f's7comm,host=edge current={1 + a * b:.4f},heat={30 + a:.3f},ok=true,err="none" {t}\n'
            f"snmp,host=edge load={50 + b:.3f} {t}\n"
        )
    return "".join(out).encode()


class Between:
    """A process between two pipes; a thread reads what comes out of it."""

    def __init__(self, command: list, folder: Path) -> None:
        self.process = Process(
            command, core=None, log=folder / "log", stdin=-1, stdout=-1, cwd=folder
        )
        self.came = self.ours = 0
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while chunk := os.read(self.process.popen.stdout.fileno(), 1 << 16):
            with self.changed:
                ours = chunk.count(b"submerge,node=")
                self.ours += ours
                self.came += chunk.count(b"\n") - ours
                self.changed.notify()

    def write(self, data: bytes) -> None:
        """Write to it; it waits while the pipe is full."""
        self.process.popen.stdin.write(data)
        self.process.popen.stdin.flush()

    def until(self, is_so) -> None:
        """Wait for something that more lines bring about."""
        with self.changed:
            if not self.changed.wait_for(is_so, 120.0):
                sys.exit(f"it does not go on:\n{self.process.said()}")


def measured(name: str, between: Between, *, scores: bool) -> str:
    """Write rows, and return a line of the table."""
    first = 0
    while not first or (scores and between.ours < 100):
        between.write(lines(first, 20))
        first += 20
        time.sleep(0.05)
    between.until(lambda: between.came >= 3 * first)
    data, cpu_s, begun = lines(first, LINES // 3), between.process.cpu_s, time.perf_counter()
    between.write(data)
    between.until(lambda: between.came >= 3 * first + LINES)
    took_s = time.perf_counter() - begun
    cpu_us = (between.process.cpu_s - cpu_s) / LINES * 1e6
    delays_ms, first = [], first + LINES // 3
    for i in range(PINGS):
        time.sleep(0.01)
        aim, begun = between.came + 3, time.perf_counter()
        between.write(lines(first + i, 1))
        between.until(lambda aim=aim: between.came >= aim)
        delays_ms.append((time.perf_counter() - begun) * 1e3)
    median, worst = statistics.median(delays_ms), statistics.quantiles(delays_ms, n=100)[98]
    return (
        f"| {name} | {LINES / took_s:,.0f} | {cpu_us:.2f} us | {median:.2f} ms | {worst:.2f} ms |"
    )


def main() -> None:
    load = os.getloadavg()[0]
    print(
        f"load {load:.1f} when it began, {os.cpu_count()} cores, Python {sys.version.split()[0]}\n"
    )
    print("| between the pipes | lines a second | processor time a line | delay, median | 99 % |")
    print("|---|---|---|---|---|")
    with TemporaryDirectory(prefix="submerge-") as name:
        folder, port = Path(name), free_port()
        copy = Between([sys.executable, "-c", COPY], folder)
        print(measured("a copy", copy, scores=False), flush=True)
        copy.process.end()
        group = GROUP.format(schema="groups.pumps.schema", summary="groups.pumps.summary")
        (folder / "root.toml").write_text(ROOT.format(folder=folder, port=port) + group)
        root = Process(
            [SUBMERGE, "aggregator", "--config", "root.toml"],
            core=None,
            log=folder / "root.log",
            cwd=folder,
        )
        for what, template in (
            ("a client that learns and scores", "{device}/{field}"),
            ("a client without a channel among them", "none/{field}"),
        ):
            text = CLIENT.format(folder=folder, port=port, template=template, name=template[:4])
            text += GROUP.format(schema="schema", summary="summary")
            (folder / "client.toml").write_text(text)
            client = Between([SUBMERGE, "client", "--config", "client.toml"], folder)
            print(measured(what, client, scores=template.startswith("{d")), flush=True)
            client.process.end()
        root.end()


if __name__ == "__main__":
    main()
