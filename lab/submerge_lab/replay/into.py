"""Files sent to a running fleet: each leaf is a client with an uplink of its own.

It does what `submerge client` does, except for the disk: rows go through the same agent and node,
which report to the named aggregator. At its end a replay has reported all rows, or says how many
it could not report.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np

from submerge import Array, Schema, UsageError
from submerge.client.incarnation import ClientIncarnation
from submerge.errors import SubmergeError
from submerge.features import FeatureMap, Identity
from submerge.headings import channels_of
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Center
from submerge_client import clock, logs
from submerge_client.agent import Agent
from submerge_client.checkpoint import RecordStore
from submerge_client.config.links import UplinkConfig
from submerge_client.config.sections import BadSetting
from submerge_client.config.summary import SummaryConfig
from submerge_client.sensors.gather import Lags
from submerge_client.uplink.factory import make_uplink
from submerge_files.console.progress import advancing
from submerge_lab.replay.dealt import Dealt, ReplayNode
from submerge_lab.replay.rows import check_magnitudes, deal, deal_with_gaps
from submerge_lab.replay.settings import ReplaySettings, refuse_what_has_no_effect
from submerge_lab.replay.stacked import Stacked

LINK = ("insecure", "ca", "cert", "key")
HERE = {
    *("parent", "group", "node", "speed", "fleet_scaling", *LINK),
    *("rank", "oversample", "center", "missing", "zero_is_missing", "leaves", "deal"),
    *(RULE := ("rank_rule", "alpha", "beta", "energy", "hold_off")),
}
"""Options that have an effect on a client; the fleet's configuration has the rest."""

LOOK_S = 0.2
"""Seconds between two looks at the progress."""


@dataclass(frozen=True, slots=True)
class Target:
    """The parent and group that a replay reports to.

    speed : rows a second and leaf; 0: as fast as nodes take them
    """

    link: UplinkConfig
    parent: str
    group: str
    node: str
    speed: float


@dataclass(frozen=True, slots=True)
class IntoResult:
    """Counts of a replay.

    acknowledged : held by the parent, `withheld` ones included; not equal to `rows`: it failed
    lost : read in an incarnation that the parent did not accept, or that only measured gamma; those
        rows were read again
    """

    rows: int
    acknowledged: int
    withheld: int
    lost: int
    bytes: int
    seconds: float
    nodes: tuple[str, ...]


def replay_into(
    target: Target,
    table: Stacked,
    leaves: Sequence[Array],
    *,
    summaries: Subspaces,
    fill: bool,
    features: FeatureMap | None = None,
    center: Center,
    scales: bool = False,
) -> IntoResult:
    """Send rows through one client each, until their parent holds them."""
    # `features`: the map of a kernel group; without a gamma it takes the fleet's. `center`: as in
    # the fleet's schema. `scales`: whether the fleet measures its scaling.
    schema = Schema(
        channels_of(table.names),
        features=Identity() if features is None else features,
        center=center,
    )
    names = [f"{target.node}-{i + 1}" for i in range(len(leaves))]
    if len(leaves) == 1:
        names = [target.node]
    agents = [
        _agent(target, name, schema, rows, summaries, fill=fill, scales=scales)
        for name, rows in zip(names, leaves, strict=True)
    ]
    began = time.monotonic()
    _run(agents, names, sum(map(len, leaves)))
    incarnations = _check_joins(agents, target)
    lost = sum(current.counts.lost for current in incarnations)
    return IntoResult(
        rows=sum(map(len, leaves)),
        # A declared loss is delivered as well, but is no row.
        acknowledged=max(0, sum(current.delivered for current in incarnations) - lost),
        withheld=sum(current.counts.withheld for current in incarnations),
        lost=lost,
        bytes=sum(agent.sent_bytes for agent in agents),
        seconds=time.monotonic() - began,
        nodes=tuple(names),
    )


def _check_joins(agents: Sequence[Agent], target: Target) -> list[ClientIncarnation]:
    """Return each agent's incarnation; refuse a replay that could not join or settle gamma."""
    refusals = [agent.refusal for agent in agents if agent.refusal]
    if refusals:
        message = f"--into: {target.parent} does not let {target.node} join: {refusals[0]}"
        hint = "; choose it with --center" if "center: " in message else ""
        raise UsageError(message + hint)
    incarnations = [agent.node.current for agent in agents]
    joined = all(current.pin is not None for current in incarnations)
    if joined and not all(current.learns for current in incarnations):
        raise UsageError(
            "the fleet has not settled its scaling or gamma: these rows have only measured for"
            " it; send more, or give both a scaling and a gamma"
        )
    return incarnations


def _run(agents: Sequence[Agent], names: Sequence[str], rows: int) -> None:
    """Run each agent in a thread until all rows are delivered, or it is stopped."""
    threads = [
        threading.Thread(target=agent.run, name=name)
        for agent, name in zip(agents, names, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        with advancing("replay", rows) as advance:
            shown = 0
            while any(thread.is_alive() for thread in threads):
                threads[0].join(LOOK_S)
                done = sum(agent.delivered for agent in agents)
                advance(done - shown)
                shown = done
    finally:
        for agent in agents:
            agent.stop()
        for thread in threads:
            thread.join()


def _agent(
    target: Target,
    name: str,
    schema: Schema,
    rows: Array,
    summaries: Subspaces,
    *,
    fill: bool,
    scales: bool,
) -> Agent:
    settings = ClientSettings(
        *(name, target.group, target.parent),
        report_every_s=5.0,
        checkpoint_every_s=3600.0,
        patience_s=2.0,
        cap_s=10.0,
        alarms=None,  # rows that a person sends are to be learnt, however anomalous they are
        fills_gaps=fill,
        learns_scaling=scales,
    )
    sensor = Dealt(rows, target.speed)
    node = ReplayNode(settings, schema, summaries, np.random.default_rng(), sensor)
    uplink = make_uplink(target.link, parent=target.parent, node=name, groups=(target.group,))
    agent = Agent(
        node,
        uplink=uplink,
        sensor=sensor,
        disk=RecordStore(None),
        lags=Lags(1, schema.width),
        scores=None,
        clock=clock.now,
        coarse=target.link.columns == "i8",
        linger_s=30.0,
    )
    sensor.refused = lambda: agent.refusal
    return agent


# -- the command's part ---------------------------------------------------------------


def send(
    url: str, table: Stacked, given: dict[str, Any], features: FeatureMap | None, *, as_json: bool
) -> str:
    """Send a table to the fleet at `url`; return the text to print."""
    idle = sorted(set(given) - HERE)
    if idle:
        option = "--" + idle[0].replace("_", "-")
        raise UsageError(f"{option} has no effect with --into: leave it out")
    refuse_what_has_no_effect(given, {}, seen=False)
    if "group" not in given:
        raise UsageError("--into needs --group, the group of the fleet that the rows belong to")
    center = given.get("center", "own")
    if center not in get_args(Center):
        raise UsageError(
            f"--center {center} has no effect with --into: a group's schema has own, fleet or none"
        )
    try:
        link = UplinkConfig(url=url, **{name: given[name] for name in LINK if name in given})
    except BadSetting as error:
        raise UsageError(f"--into: {error}") from error
    missing, zeros = given.get("missing", "reject"), given.get("zero_is_missing", False)
    gaps = deal_with_gaps(table.rows, table.names, missing=missing, zero_is_missing=zeros)
    check_magnitudes(gaps.rows, table.names)
    leaves = deal(gaps.rows, given.get("leaves", 1), given.get("deal", "turn"))
    named = given.get("parent", "root"), given["group"], given.get("node", "replay")
    target = Target(link, *named, given.get("speed", 0.0))
    # Warnings go to standard error, as from any client.
    logs.begin(logging.getLevelName(logging.WARNING).lower())
    result = replay_into(
        target,
        table,
        leaves,
        summaries=_summaries(given, table.rows.shape[1], features),
        fill=missing == "impute",
        features=features,
        center=center,
        scales="fleet_scaling" in given,
    )
    if result.acknowledged != result.rows:
        raise NotAcknowledged(result)
    if result.withheld == result.rows:
        raise SubmergeError(
            f"{result.rows:,} rows were acknowledged, and none is learnt for its gaps: a row needs"
            " values in half of its columns, and a column needs one in some row"
        )
    return json.dumps(asdict(result)) if as_json else _text(result)


def _summaries(given: dict[str, Any], width: int, features: FeatureMap | None) -> Subspaces:
    chosen = {name: given[name] for name in ("rank", *RULE) if name in given}
    rule = ReplaySettings(features=features, **chosen).rule(width)
    kept = SummaryConfig(rank=given.get("rank", "auto"), oversample=given.get("oversample", 5))
    if not rule.adaptive:
        return kept.summaries
    most = max(SummaryConfig().rank_max, rule.start)
    return Subspaces(rule, rank_max=most, oversample=kept.oversample)


class NotAcknowledged(SubmergeError):
    """The fleet does not hold each row of a replay exactly once."""

    def __init__(self, result: IntoResult) -> None:
        message = (
            f"{result.acknowledged} of {result.rows} rows were acknowledged,"
            f" in {result.seconds:.0f} s"
        )
        hint = "is the aggregator of that name there, and does it serve that group and schema?"
        if result.acknowledged > result.rows:
            hint = f"some were learnt twice; let the fleet forget {', '.join(result.nodes)}"
        super().__init__(f"{message}: {hint}")


def _text(result: IntoResult) -> str:
    lines = [
        ("nodes", ", ".join(result.nodes)),
        ("rows", f"{result.rows}, all acknowledged; {result.withheld} withheld for a gap"),
        ("traffic", f"{result.bytes / 1000:,.1f} kB up"),
        ("time", f"{result.seconds:.1f} s"),
    ]
    return "\n".join(f"{name:<12} {value}" for name, value in lines)
