"""The nodes of a simulated fleet: those of the product, with the settings of its plan.

Alarms are raised and ended by a rule, in place of scores. A simulated reading has no scores that
mean anything. The rule reads off the bytes of a reading whether an alarm begins or ends there, so
that a run depends on nothing but its seed. The rest is the product's: the log of alarms, the
operator's verdicts, the records, and the reports. No reading is withheld, so that all of them are
to be counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from submerge._linalg import Array
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.releases import Noise
from submerge.client.alarms.limits import AlarmLimits
from submerge.client.alarms.log import AlarmLog
from submerge.client.incarnation import ClientIncarnation
from submerge.client.ingest import Ingest
from submerge.client.monitor import Judgement, NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.client.node import ClientNode
from submerge.judge.prepare import Block
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model
from submerge.protocol.names import RandomSource
from submerge.protocol.settings import AggregatorSettings, AlarmSettings, ClientSettings
from submerge.protocol.summaries import Summaries
from submerge.schema import Schema
from submerge_lab.simulator.feeds import Feed
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.plan import Plan

PROMISED = AlarmLimits({"spe": 1.0})
UPSET_S = 240.0  # how long something upstream lasts that reaches all clients


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """Shares of readings at which an alarm begins, if none is open, or the open one ends."""

    begins: float
    ends: float
    upsets: float = 0.0  # share of the slots of `UPSET_S` in which each reading may begin one

    def after(self, log: AlarmLog, row: Array, at: float, version: int) -> AlarmLog:
        """Return the log after a reading (channels,) at a wall time."""
        draw = _draw(row.tobytes())
        if log.open is None:
            is_upset = self.upsets and _draw(b"%d" % (at // UPSET_S)) < self.upsets
            share = 0.5 if is_upset else self.begins
            return log.begin(at, "spe", version, PROMISED) if draw < share else log
        if draw < self.ends:
            return log.end(at)
        return log.worsen(1.0 + draw, "spe", at)


def _draw(text: bytes) -> float:
    """Return a number from 0 to 1 that depends on nothing else."""
    return int.from_bytes(blake2b(text, digest_size=4).digest(), "little") / 2.0**32


class MonitorByRule(NodeMonitor):
    """A monitor whose alarms follow a rule, and which withholds nothing."""

    def __init__(
        self,
        settings: ClientSettings,
        schema: Schema,
        summaries: Summaries,
        kept: MonitorState | None,
        rule: AlarmRule,
    ) -> None:
        super().__init__(settings, schema, summaries, kept)
        self._rule = rule

    @property
    def withholds(self) -> bool:
        """Return False: an order to pause is kept and reported, and withholds nothing here."""
        return False

    @property
    def learns(self) -> bool:
        """Return True, likewise."""
        return True

    def judge(self, block: Block, model: Model, now: Now) -> Judgement:
        """Score the rows as a node without alarms does, and take them into the log by the rule."""
        detector, self.detector = self.detector, None
        judgement = super().judge(block, model, now)
        if detector is not None:
            log = detector.log
            for row in np.asarray(block.rows):
                log = self._rule.after(log, row, now.wall, judgement.model.version)
            self.detector = replace(detector, log=log)
        return judgement


class IngestByRule(Ingest):
    """An ingest with a `MonitorByRule`."""

    def __init__(
        self,
        summaries: Summaries,
        rng: RandomSource,
        settings: ClientSettings,
        rule: AlarmRule,
    ) -> None:
        super().__init__(summaries, rng, settings)
        self._rule = rule

    def monitor_for(self, current: ClientIncarnation) -> NodeMonitor | None:
        """Return the monitor for that incarnation's schema; None while it is not settled."""
        if not current.learns:
            return None
        if self.monitor is None or self.monitor.fingerprint != current.fingerprint:
            kept, schema = self.kept, current.schema
            self.monitor = MonitorByRule(self._settings, schema, self._summaries, kept, self._rule)
        return self.monitor


GROUP = "room"

SCALING_ROWS = 100
"""Readings from which the fleet settles its scaling."""


@dataclass(frozen=True, slots=True)
class NodeMaker:
    """Makes the node of a host.

    client, aggregator : The nodes; tests put mutants in their place.
    rule : When clients raise alarms; None for never.
    noise : Of the root's models.
    """

    plan: Plan
    feed: Feed
    client: type[ClientNode]
    aggregator: type[AggregatorNode]
    rule: AlarmRule | None
    robust: bool
    noise: Noise | None = None

    def make(self, host: Host, rng: RandomSource) -> ClientNode | AggregatorNode:
        """Return the node of a new process."""
        return self.child(host, rng) if host.level == 0 else self.parent(host, rng)

    def child(self, host: Host, rng: RandomSource) -> ClientNode:
        """Return the node of a new process of a client."""
        rule, settings, feed = self.rule, self.client_settings(host), self.feed
        node = self.client(settings, host.schema or feed.schema, feed.own, rng)
        if rule is not None:
            node._ingest = IngestByRule(feed.own, rng, settings, rule)
        return node

    def client_settings(self, host: Host) -> ClientSettings:
        """Return the settings of a client."""
        plan = self.plan
        return ClientSettings(
            host.name,
            GROUP,
            str(host.parent),
            report_every_s=plan.report_every_s,
            checkpoint_every_s=plan.checkpoint_every_s,
            cap_s=plan.cap_s,
            learns_scaling=plan.learns_scaling,
            together=8 if plan.floors else 1,
            # Ids have no scores, and counts must not depend on anomalies: alarms come by a rule.
            alarms=None if self.rule is None else AlarmSettings(),
        )

    def parent(self, host: Host, rng: RandomSource) -> AggregatorNode:
        """Return the node of a new process of an aggregator."""
        plan = self.plan
        settings = AggregatorSettings(
            host.name,
            host.parent,
            report_every_s=plan.report_every_s,
            cap_s=plan.cap_s,
            scaling_rows=SCALING_ROWS,
        )
        is_root = host.parent is None
        schema = host.schema or self.feed.schema if is_root else None
        # Below the root it is not known: as configured, it comes with the schema.
        learns_scaling = plan.learns_scaling and is_root
        floor = None if plan.floors else False
        kinds = self.feed.summaries, schema, learns_scaling
        noise = self.noise if is_root else None
        group = GroupPlan(*kinds, robust=self.robust, floor=floor, noise=noise)
        return self.aggregator(settings, {GROUP: group}, rng)
