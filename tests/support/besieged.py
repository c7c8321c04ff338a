"""A root as a process of its own, what it holds in memory, and what an honest child sees of it.

Memory is what the kernel says of the process (VmRSS, and VmHWM for the most), shared libraries
included. Linux only.
"""

from __future__ import annotations

import json
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from submerge.protocol.messages import Counts, Join, Joined, Reason, Stamp
from submerge_client.uplink.over_grpc import CALL_S, SERVICE
from submerge_client.uplink.tls import Tls
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, parts
from support.certified import LOOPBACK, Certified
from support.nodes import new_incarnation
from support.patience import until
from support.programs import Programs, free_port
from support.wire import a_report, subspace_of

GROUP, ROOT = "room", "root"
CHANNELS = [f"x{i}" for i in range(6)]
EVERY_S = 0.2
"""Between two reports of the honest child."""

LONGEST_S = 60.0
"""A report that is not acknowledged within this is lost: a client would have sent a newer one."""

CONFIG = """\
node = "{node}"
kit = "{kit}"
store = "{store}"

[listen.grpc]
address = "{host}:{port}"
{more}

[status]
address = "{host}:{status}"

[groups.{group}.summary]
rank = 2
oversample = 2

[groups.{group}.schema]
channels = {channels}
"""


class Latency(NamedTuple):
    """What reports took to their acknowledgement, all tries included; in seconds.

    reports, refused : acknowledged reports, and tries that failed before
    newcomer : the longest that a new connection took to its first answer
    """

    reports: int
    refused: int
    median: float
    p95: float
    newcomer: float
    lost: int


class Besieged:
    """A root with mutual TLS, and its kits. `Programs` ends the process.

    Parameters
    ----------
    programs : Programs
    more : str
        Further lines of [listen.grpc].
    """

    def __init__(self, programs: Programs, more: str = "", **how: Any) -> None:
        self.fleet = Certified(programs.folder)
        self.port = self.status = free_port()
        while self.status == self.port:
            self.status = free_port()
        text = CONFIG.format(
            node=ROOT,
            kit=self.fleet.kit(ROOT, LOOPBACK),
            store=programs.folder / "root.db",
            host=LOOPBACK,
            port=self.port,
            status=self.status,
            group=GROUP,
            channels=json.dumps(CHANNELS),
            more=more,
        )
        config = programs.file("root.toml", text)
        self.program = programs.start("aggregator", "--config", config, **how)
        self.program.until("serving")
        self._process = self.program._process

    @property
    def resident(self) -> int:
        """Bytes in memory now."""
        return self._memory("VmRSS")

    @property
    def peak(self) -> int:
        """The most bytes since `forget_peak`."""
        return self._memory("VmHWM")

    def forget_peak(self) -> None:
        """Begin to look for the most from here."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    def metrics(self) -> dict[str, float]:
        """Return what it says of itself; raises OSError if it does not answer."""
        url = f"http://{LOOPBACK}:{self.status}/metrics"
        with urllib.request.urlopen(url, timeout=10.0) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def refused(self) -> dict[str, int]:
        """Return its refusals by reason."""
        pattern = re.compile(r'submerge_refused_messages_total\{reason="(\w+)"\}')
        found = ((pattern.fullmatch(name), value) for name, value in self.metrics().items())
        return {match[1]: int(value) for match, value in found if match and value}

    def flood(self, name: str, connections: int, names: int = 1) -> subprocess.Popen[bytes]:
        """Start a flood, by so many kits; whoever starts it ends it."""
        kits = [self.fleet.kit(f"flood-{i}") for i in range(names)]
        port = self.status if name.startswith("http") else self.port
        plain = name.startswith("http") or name == "no_handshake"
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("floods.py"))]
            + [name, LOOPBACK, str(port), str(connections)]
            + [str(kit) for kit in ([] if plain else kits)],
            stderr=subprocess.DEVNULL,
        )

    def _memory(self, field: str) -> int:
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.findall(rf"{field}:\s+(\d+) kB", text)[0]) * 1024


class HonestChild:
    """A child that reports as long as the context is open, on a thread of its own."""

    def __init__(self, root: Besieged, node: str = "honest") -> None:
        self._root, self._node, self._seq = root, node, 0
        self._tls = Tls(kit=root.fleet.kit(node))
        self._me = new_incarnation(1)
        self._ended = threading.Event()
        self._took: list[float] = []
        self._newcomers: list[float] = []
        self.refused: list[str] = []
        self.lost = 0
        self._channel = self._connected()
        joined = self._answered("Join", codec.encode(self._join()), self._channel)
        assert isinstance(joined, Joined), joined
        self._pinned = joined.pinned
        header = parts.header(Stamp(node, GROUP, new_incarnation(1), 0))
        self._watch = self._channel.unary_stream(f"/{SERVICE}/Watch")(
            pb.WatchRequest(header=header).SerializeToString()
        )
        self._threads = [threading.Thread(target=each) for each in (self._report, self._arrive)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> HonestChild:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._watch.cancel()
        self._channel.close()

    @property
    def reports(self) -> int:
        """How many were acknowledged."""
        return len(self._took)

    def latency(self) -> Latency:
        """Return what its reports took since the last time."""
        took, self._took = self._took, []
        new, self._newcomers = self._newcomers, []
        refused, self.refused = self.refused, []
        cuts = statistics.quantiles(took, n=20) if len(took) > 1 else [float("nan")] * 19
        median = statistics.median(took) if took else float("nan")
        return Latency(
            len(took), len(refused), median, cuts[-1], max(new, default=float("nan")), self.lost
        )

    def _connected(self) -> grpc.Channel:
        credentials = grpc.ssl_channel_credentials(*self._tls.contents())
        options = [("grpc.use_local_subchannel_pool", 1)]
        return grpc.secure_channel(f"{LOOPBACK}:{self._root.port}", credentials, options)

    def _join(self) -> Join:
        return Join(Stamp(self._node, GROUP, self._me, 0), fence=b"", past_fences=(), schema=b"")

    def _answered(self, method: str, data: bytes, channel: grpc.Channel) -> Any:
        answer = channel.unary_unary(f"/{SERVICE}/{method}")(
            data, timeout=CALL_S, wait_for_ready=True
        )
        return codec.decode("joined" if method == "Join" else "answer", answer)

    def _until_answered(self, method: str, data: bytes, channel: grpc.Channel) -> float | None:
        """Return how long a message took to its answer; None without one."""
        began = time.monotonic()
        while time.monotonic() < began + LONGEST_S:
            try:
                answer = self._answered(method, data, channel)
            except grpc.RpcError as error:
                self.refused.append(f"{error.code().name}: {error.details()}")
            else:
                if method == "Join" or answer.reason is Reason.ACK:
                    return time.monotonic() - began
                self.refused.append(str(answer.reason))
            if self._ended.wait(EVERY_S):
                return None
        return None

    def _report(self) -> None:
        subspace = subspace_of(6, [5.0, 4.0, 3.0], schema=self._schema(), seed=3)
        while not self._ended.is_set():
            began = time.monotonic()
            self._seq += 1
            report = a_report(
                stamp=Stamp(self._node, GROUP, self._me, self._seq),
                pinned=self._pinned,
                fingerprint=self._schema().fingerprint,
                summary=subspace,
                counts=Counts(100 + self._seq),
                moments=None,
                census=None,
                alarm_status=None,
            )
            took = self._until_answered("Report", codec.encode(report), self._channel)
            if took is not None:
                self._took.append(took)
            elif not self._ended.is_set():
                self.lost += 1
            self._ended.wait(max(0.0, began + EVERY_S - time.monotonic()))

    def _arrive(self) -> None:
        """Connect again and again, as a child does that has just started."""
        while not self._ended.wait(1.0):
            with self._connected() as channel:
                took = self._until_answered("Join", codec.encode(self._join()), channel)
            if took is not None:
                self._newcomers.append(took)

    def _schema(self) -> Any:
        from submerge_client.config.schemas import SchemaConfig

        return SchemaConfig(channels=tuple(CHANNELS)).built


def end(flood: subprocess.Popen[bytes]) -> None:
    """End a flood."""
    with suppress(ProcessLookupError):
        flood.send_signal(signal.SIGKILL)
    flood.wait()


def waited_for(child: HonestChild, reports: int) -> None:
    """Wait until so many further reports were acknowledged."""
    expected = child.reports + reports
    until(
        lambda: child.reports >= expected, lambda: f"{reports} more reports", lambda: child.reports
    )
