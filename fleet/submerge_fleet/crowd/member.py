"""Member: one of a crowd, a `submerge client` in all but its process.

It has a node, an agent, an uplink, a kit and a checkpoint of its own.
"""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from submerge import UsageError
from submerge.client.node import ClientNode
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge_client import clock
from submerge_client.agent import Agent
from submerge_client.checkpoint import CheckpointFile
from submerge_client.config.links import UplinkConfig
from submerge_client.disk import RecordStore
from submerge_client.scores import ScoreLines
from submerge_client.sensors.lags import Lags
from submerge_client.uplink.factory import make_uplink, tls_of
from submerge_client.uplink.identity import Credentials
from submerge_fleet.crowd.motes import OVERSAMPLE, RANK, SCHEMA
from submerge_fleet.crowd.pace import Paced

MIN_ROWS = 3 * RANK
"""Before a first report: who watches a crowd wants to see it soon."""

REMEMBERED = 200.0
"""Newest rows that a level of scores is of, about: weather comes and goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdPlan:
    """Who they are, and how they reach whom.

    kits : folder of NODE.kit files, for a link with TLS that names no other
    state : folder of checkpoints, if any
    odd : nodes of which one mote drifts, `odd_after` rows after the beginning
    """

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
        """Which of the nodes are odd, counted from zero."""
        drawn = np.random.default_rng(self.seed).permutation(len(self.nodes))
        return frozenset(drawn[: self.anomalous].tolist())


class Ear:
    """How far off and how far out a node's newest rows were, from its own score lines.

    Attributes
    ----------
    spe, t2 : float or None
        Their levels; None before the first row that was scored.
    """

    def __init__(self) -> None:
        self.spe: float | None = None
        self.t2: float | None = None

    def tell(self, lines: bytes) -> None:
        """Hear score lines."""
        for line in lines.splitlines():
            score = msgspec.json.decode(line)
            self.t2 = _level(self.t2, score["t2"])
            self.spe = _level(self.spe, score["spe"])


class CrowdMember:
    """One node, and the thread that it runs in.

    Attributes
    ----------
    error : str or None
        What ended it, if nobody asked it to end.
    """

    def __init__(self, name: str, agent: Agent, sensor: Paced, ear: Ear) -> None:
        self.name, self.agent, self.sensor, self.ear = name, agent, sensor, ear
        self.error: str | None = None
        self.thread: threading.Thread | None = None

    def start(self, stop: threading.Event) -> None:
        """Begin; should it end by itself, it sets `stop`."""
        # By its thread's name log lines know whose they are.
        self.thread = threading.Thread(target=self._run, args=(stop,), name=self.name)
        self.thread.start()

    def end(self) -> None:
        """Ask it to end."""
        if self.thread is not None:
            self.agent.stop()

    def _run(self, stop: threading.Event) -> None:
        try:
            status = self.agent.run()
        except Exception:
            self.error = traceback.format_exc()
        else:
            self.error = f"status {status}" if status else None
        stop.set()


def member(plan: CrowdPlan, name: str, sensor: Paced) -> CrowdMember:
    """Return one of them, not started yet.

    Raises
    ------
    UsageError
        If its kit is missing or another's, or its checkpoint cannot be used.
    """
    kit = None if plan.kits is None else plan.kits / f"{name}.kit"
    ear = Ear()
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
        scores=ScoreLines(SCHEMA, contributions=0, out=ear.tell),
        clock=clock.now,
        coarse=plan.link.columns == "i8",
        credentials=Credentials(tls_of(plan.link, kit), node=name),
    )
    return CrowdMember(name, agent, sensor, ear)


def _checkpoint(path: Path) -> CheckpointFile:
    try:
        return CheckpointFile(path)
    except OSError as error:
        raise UsageError(f"--state: expected a place for {path}, got: {error}") from error


def _level(before: float | None, value: float) -> float:
    return value if before is None else before + (value - before) / REMEMBERED
