"""The nodes of a simulated fleet: those of the product, with the settings of its plan."""

from __future__ import annotations

from dataclasses import dataclass

from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.names import RandomSource
from submerge.protocol.settings import AggregatorSettings, AlarmSettings, ClientSettings
from submerge_lab.simulator.alarms_by_rule import AlarmRule, IngestByRule
from submerge_lab.simulator.feeds import Feed
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.plan import Plan

GROUP = "room"

SCALING_ROWS = 100
"""Readings from which the fleet settles its scaling."""


@dataclass(frozen=True, slots=True)
class NodeMaker:
    """Makes the node of a host.

    Attributes
    ----------
    plan : Plan
    feed : Feed
    client, aggregator : type
        The nodes; tests put mutants in their place.
    rule : AlarmRule or None
        When clients raise alarms; None for never.
    robust : bool
        Whether the group is robust.
    """

    plan: Plan
    feed: Feed
    client: type[ClientNode]
    aggregator: type[AggregatorNode]
    rule: AlarmRule | None
    robust: bool

    def make(self, host: Host, rng: RandomSource) -> ClientNode | AggregatorNode:
        """Return the node of a new process."""
        return self.child(host, rng) if host.level == 0 else self.parent(host, rng)

    def child(self, host: Host, rng: RandomSource) -> ClientNode:
        """Return the node of a new process of a client."""
        rule, settings, feed = self.rule, self.client_settings(host), self.feed
        node = self.client(settings, host.schema or feed.schema, feed.summaries, rng)
        if rule is not None:
            node._ingest = IngestByRule(feed.summaries, rng, settings, rule)
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
        group = GroupPlan(self.feed.summaries, schema, learns_scaling, robust=self.robust)
        return self.aggregator(settings, {GROUP: group}, rng)
