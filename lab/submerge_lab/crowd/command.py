"""`submerge lab crowd`: simulated nodes as a service, for a fleet without sensors."""

from __future__ import annotations

import json
import logging
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submerge.errors import SubmergeError, UsageError
from submerge.protocol.names import NAME_RULE, is_name
from submerge_files.console.options import (
    FILE,
    FOLDER,
    LOG_JSON,
    default_option,
    flag_option,
    json_option,
)

if TYPE_CHECKING:
    from submerge_lab.crowd.member import CrowdPlan

GROUP = "room"


class CrowdEnded(SubmergeError):
    """A node ended by itself."""


@click.group(
    invoke_without_command=True,
    epilog="Example: submerge lab crowd --into grpc://127.0.0.1:8470 --insecure --anomalous 1",
)
@click.option("--into", "url", help="The parent: grpcs://host:port, or mqtts:// of a broker.")
@default_option("--parent", "root", "Node name of the parent.")
@default_option("--group", GROUP, "The group that they report to.")
@default_option("--fleet", "default", "The {fleet} in MQTT topics: submerge/v1/{fleet}/.")
@default_option("--nodes", 8, "How many nodes.", type=click.IntRange(1, 200))
@default_option("--prefix", "node-", "Prefix of the nodes' numbers, from 1.")
@click.option(
    "--kits",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with a NODE.kit for each node.",
)
@flag_option("--insecure", "Allow a url without TLS.")
@default_option(
    "--rate",
    1.0,
    "Rows a second and node; a row is 31 s of the room's time.",
    type=click.FloatRange(0, 1000, min_open=True),
)
@default_option(
    "--report-every",
    30.0,
    "Seconds between a node's reports, within 20 %.",
    type=click.FloatRange(0, min_open=True),
)
@click.option(
    "--state",
    type=FOLDER,
    help="A folder for checkpoints; without one, unreported rows are lost with the process.",
)
@default_option(
    "--anomalous", 0, "Nodes with one mote that drifts after a while.", type=click.IntRange(0)
)
@default_option("--anomalous-after", 600.0, "Seconds before the drift.", type=click.FloatRange(0))
@default_option("--seed", 0, "Seed of the room.", type=click.IntRange(0))
@default_option(
    "--say-every",
    60.0,
    "Seconds between two lines of facts.",
    type=click.FloatRange(0, min_open=True),
)
@click.option(
    "--alive",
    type=FILE,
    envvar="SUBMERGE__WATCH__ALIVE",
    help="A file that is touched as long as every node reads rows, for a health check.",
)
@json_option("Print facts as JSON, one object per line.")
@LOG_JSON
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Run simulated nodes, each a client, until SIGTERM, SIGHUP or Ctrl-C.

    They read the generated room in real time, six motes each, all with the same 24 channels:
    `submerge lab crowd schema` prints their section for the root's configuration.
    """
    if context.invoked_subcommand is not None:
        return
    plan = _plan(given)
    from submerge_client import logs
    from submerge_client.command import signal_actions
    from submerge_lab.crowd.run import Crowd

    # Only warnings of the nodes.
    logs.begin("warning", as_json=given["log_json"])
    _name_the_node(frozenset(plan.nodes))
    crowd = Crowd(plan)
    stop = threading.Event()
    for number, act in signal_actions(stop.set).items():
        signal.signal(number, lambda *_, act=act: act())

    def print_facts() -> None:
        facts = crowd.facts
        click.echo(json.dumps(facts) if given["as_json"] else _text(facts))

    crowd.run(stop, print_facts, given["say_every"], given["alive"])
    if crowd.errors:
        name, why = next(iter(crowd.errors.items()))
        raise CrowdEnded(f"{name} ended by itself, so all nodes were ended: {why}")


@command.command(epilog="Example: submerge lab crowd schema >> root.toml")
@default_option("--group", GROUP)
def schema(group: str) -> None:
    """Print the group's section for a root's configuration.

    Other aggregators get the schema from the root; their summary has to be the same.
    """
    from submerge_lab.crowd.motes import sections

    click.echo(sections(group), nl=False)


def _plan(given: dict[str, Any]) -> CrowdPlan:
    """Check the options."""
    from submerge_client.config.links import UplinkConfig, address_of
    from submerge_client.config.sections import BadSetting
    from submerge_lab.crowd.member import CrowdPlan
    from submerge_lab.crowd.run import names

    if given["url"] is None:
        raise click.UsageError("expected --into URL, the address of the nodes' parent")
    if given["anomalous"] > given["nodes"]:
        raise UsageError(
            f"--anomalous must be at most the {given['nodes']} nodes, got {given['anomalous']}"
        )
    try:
        scheme = address_of(given["url"], UplinkConfig.schemes).scheme
        if scheme in ("grpc", "mqtt") and not given["insecure"]:
            raise UsageError(
                f"--into: expected {scheme}s:// with --kits DIR, or --insecure if the network is"
                f" trusted, got {given['url']!r}"
            )
        if scheme in ("grpcs", "mqtts") and given["insecure"]:
            raise UsageError(f"--insecure is for a url without TLS, got {given['url']!r} as well")
        link = UplinkConfig(url=given["url"], insecure=given["insecure"], fleet=given["fleet"])
    except BadSetting as error:
        raise UsageError(f"--into: {error}") from error
    if link.tls and given["kits"] is None:
        raise UsageError("expected --kits DIR with a TLS url, got none")
    if not is_name(given["fleet"]):
        raise UsageError(f"--fleet has {NAME_RULE}, got {given['fleet']!r}")
    return CrowdPlan(
        link=link,
        parent=given["parent"],
        group=given["group"],
        nodes=tuple(names(given["prefix"], given["nodes"])),
        rate=given["rate"],
        report_every_s=given["report_every"],
        kits=given["kits"],
        state=given["state"],
        seed=given["seed"],
        anomalous=given["anomalous"],
        anomalous_after=round(given["anomalous_after"] * given["rate"]),
    )


def _name_the_node(nodes: frozenset[str]) -> None:
    """Add the node to log lines: it is the thread's name."""
    from submerge_client.logs import log

    def name(record: logging.LogRecord) -> bool:
        if record.threadName in nodes:
            record.facts = {"node": record.threadName, **getattr(record, "facts", {})}
        return True

    log.handlers[0].addFilter(name)


def _text(facts: dict[str, Any]) -> str:
    return (
        f"{facts['joined']} of {facts['nodes']} nodes joined, {facts['scoring']} score;"
        f" {facts['rows']} rows read, {facts['delivered']} with the parent,"
        f" {facts['unreported']} not reported yet, {facts['withheld']} withheld,"
        f" {facts['lost']} lost, {facts['skipped']} skipped;"
        f" {facts['sent_bytes'] / 1000:,.0f} kB up;"
        f" most anomalous: {facts['most_anomalous'] or 'none yet'}"
    )
