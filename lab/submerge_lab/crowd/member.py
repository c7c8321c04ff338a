"""One node of a crowd: like `submerge client`, but in a thread.

It has a node, an agent, an uplink, a kit and a checkpoint of its own.

Rows come in real time. All nodes of a crowd use one clock. A node that was delayed skips the rows
of that time, as a sensor's reader does, and counts them. Rows wait only in the node's own queue.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from submerge import Array, SubmergeError, UsageError
from submerge.client.node import ClientNode
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge_client import clock
from submerge_client.agent import Agent
from submerge_client.checkpoint import CheckpointFile, RecordStore
from submerge_client.config.links import UplinkConfig
from submerge_client.score_outputs.lines import ScoreLines
from submerge_client.sensors.gather import Lags
from submerge_client.uplink.factory import make_uplink
from submerge_client.uplink.tls import Credentials, tls_of
from submerge_lab.crowd.motes import OVERSAMPLE, RANK, SCHEMA

BLOCKS_PER_S = 4.0
"""Above this rate rows are handed over in blocks."""

Rows = Callable[[int, int], Array]
"""Returns rows from one number up to another."""


class RealTimePace:
    """The number of the current row.

    clock : Monotonic seconds; row 0 is of the moment at which this object is made.
    wait : `wait(stop, seconds)` returns at the latest when `stop` is set.
    """

    def __init__(
        self,
        rate: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        self.rate, self._clock, self._wait = rate, clock, wait
        self._began = clock()
        self.block = max(1, int(rate / BLOCKS_PER_S))
        """Rows of a block."""

    @property
    def now(self) -> int:
        """Number of rows so far."""
        return int((self._clock() - self._began) * self.rate)

    def wait_for(self, row: int, stop: threading.Event) -> bool:
        """Wait until a row is due; return False if `stop` is set before."""
        while not stop.is_set():
            left = self._began + (row + 1) / self.rate - self._clock()
            if left <= 0:
                return True
            self._wait(stop, left)
        return False


class PacedSensor:
    """A sensor that never ends; `counts["skipped"]` is how many rows it skipped."""

    def __init__(self, rows: Rows, pace: RealTimePace) -> None:
        self.counts = {"skipped": 0}
        self._rows, self._pace = rows, pace

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over rows from now on, until `stop` is set."""
        first = self._pace.now
        while self._pace.wait_for(first + self._pace.block - 1, stop):
            stop_at = first + self._pace.block
            hand(self._rows(first, stop_at))
            # Less than a block behind is on time: the next block is not complete.
            missed = max(0, self._pace.now - stop_at) // self._pace.block * self._pace.block
            self.counts["skipped"] += missed
            first = stop_at + missed


MIN_ROWS = 3 * RANK
"""Rows before a first report: few, so that a crowd shows up soon."""

REMEMBERED = 200.0
"""Rows that a running mean of scores covers, about: weather changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdPlan:
    """The nodes of a crowd, and their parent."""

    link: UplinkConfig
    parent: str
    group: str
    nodes: tuple[str, ...]
    rate: float
    report_every_s: float
    kits: Path | None = None
    state: Path | None = None
    seed: int = 0
    anomalous: int = 0
    anomalous_after: int = 0

    @property
    def anomalous_places(self) -> frozenset[int]:
        """Indices of the anomalous nodes, from zero."""
        drawn = np.random.default_rng(self.seed).permutation(len(self.nodes))
        return frozenset(drawn[: self.anomalous].tolist())


class MeanScores:
    """Running means of a node's scores, from its score lines; None before the first row.

    `spe` is the squared prediction error (SPE), `t2` Hotelling's T-squared (T2).
    """

    def __init__(self) -> None:
        self.spe: float | None = None
        self.t2: float | None = None

    def add(self, lines: bytes) -> None:
        """Add score lines."""
        for line in lines.splitlines():
            score = msgspec.json.decode(line)
            self.t2 = _mean(self.t2, score["t2"])
            self.spe = _mean(self.spe, score["spe"])


class CrowdMember:
    """One node, and the thread that it runs in."""

    def __init__(self, name: str, agent: Agent, sensor: PacedSensor, scores: MeanScores) -> None:
        self.name, self.agent, self.sensor, self.scores = name, agent, sensor, scores
        self.error: str | None = None
        self.thread: threading.Thread | None = None

    def start(self, stop: threading.Event) -> None:
        """Start its thread, which sets `stop` if it ends by itself."""
        # Log lines take the node from the thread's name.
        self.thread = threading.Thread(target=self._run, args=(stop,), name=self.name)
        self.thread.start()

    def end(self) -> None:
        """Ask it to end."""
        if self.thread is not None:
            self.agent.stop()

    def _run(self, stop: threading.Event) -> None:
        try:
            status = self.agent.run()
        except SubmergeError as error:
            self.error = str(error)
        except Exception:
            self.error = traceback.format_exc()
        else:
            self.error = f"status {status}" if status else None
        stop.set()


def make_member(plan: CrowdPlan, name: str, sensor: PacedSensor) -> CrowdMember:
    """Return one node, not started yet."""
    kit = None if plan.kits is None else plan.kits / f"{name}.kit"
    scores = MeanScores()
    settings = ClientSettings(
        name,
        plan.group,
        plan.parent,
        report_every_s=plan.report_every_s,
        checkpoint_every_s=max(10.0, plan.report_every_s),
        min_rows=MIN_ROWS,
        cap_s=30.0,
        fills_gaps=True,
    )
    summaries = Subspaces(RANK, oversample=OVERSAMPLE)
    agent = Agent(
        ClientNode(settings, SCHEMA, summaries, np.random.default_rng()),
        uplink=make_uplink(plan.link, parent=plan.parent, node=name, groups=(plan.group,), kit=kit),
        sensor=sensor,
        disk=RecordStore(None if plan.state is None else _checkpoint(plan.state / f"{name}.state")),
        lags=Lags(1, SCHEMA.width),
        scores=ScoreLines(SCHEMA, contributions=0, out=scores.add),
        clock=clock.now,
        coarse=plan.link.columns == "i8",
        credentials=Credentials(tls_of(plan.link, kit), node=name),
    )
    return CrowdMember(name, agent, sensor, scores)


def _checkpoint(path: Path) -> CheckpointFile:
    try:
        return CheckpointFile(path)
    except OSError as error:
        raise UsageError(f"--state: cannot use {path} as a checkpoint: {error}") from error


def _mean(before: float | None, value: float) -> float:
    return value if before is None else before + (value - before) / REMEMBERED
