"""`submerge doctor`: checks whether a client or an aggregator can work, before or while it runs."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from submerge.errors import UsageError
from submerge_files.console.options import config_option, json_option
from submerge_operate.doctor.findings import (
    SERVER,
    Finding,
    Need,
    of_schemes,
    software,
    summary_of,
    text_of,
)

if TYPE_CHECKING:
    from submerge_aggregator.config import AggregatorConfig
    from submerge_client.config.client_config import ClientConfig

Program = Literal["client", "aggregator", "up"]

OWN: dict[Program, set[str]] = {
    "up": {"folder"},
    "client": {"sensor", "uplink", "state", "schema", "group"},
    "aggregator": {"listen", "groups", "store", "status"},
}
"""Settings that only one of them has; but `up` reads sensors, and listens, too."""


@click.command(epilog="Example: submerge doctor --config client.toml")
@config_option(
    "A client's configuration, an aggregator's, or that of `submerge up`.  [default: root.toml or"
    " box.toml here]"
)
@json_option()
def command(config: Path, as_json: bool) -> None:
    """Check all that a client or an aggregator needs, and show what to do.

    It checks certificates, clock, disk, memory, the size of messages, whether the parent answers
    under its configured name, and whether the sensor delivers; for an aggregator also its store
    and its addresses. It sends no reports, keeps nothing, and does not disturb a running program.
    Run it as the program runs: same user, folder and environment. For a client that reads
    standard input, pipe its readings in:

    your-program | submerge doctor --config client.toml

    It does not check whether the parent accepts the group and the schema: only a program that
    joins learns that, and logs it.

    Exit status: 0 if nothing fails, 1 if something does, 2 for a bad configuration.
    """
    program = program_of(config)
    findings: list[Finding] = []
    for finding in run_checks(config, program):
        findings.append(finding)
        if not as_json:
            click.echo(text_of(finding))
    healthy = all(finding.state != "fails" for finding in findings)
    if as_json:
        found = [finding._asdict() for finding in findings]
        click.echo(json.dumps({"program": program, "healthy": healthy, "findings": found}))
    else:
        click.echo(summary_of(findings))
    if not healthy:
        sys.exit(1)


def program_of(path: Path) -> Program:
    """Return the program that a configuration is for; raises UsageError if it is for neither."""
    try:
        keys = set(tomllib.loads(path.read_bytes().decode("utf-8-sig")))
    except (OSError, ValueError):
        return "client"  # its loader reports what is wrong
    if "sensor" in keys and "parent" not in keys:  # as `root_config` has it
        return "up"
    found = {program: len(keys & own) for program, own in OWN.items()}
    if not any(found.values()):
        raise UsageError(
            f"{path}: expected the configuration of a client or an aggregator, got neither:"
            " submerge client init, and submerge aggregator init, print samples"
        )
    return "aggregator" if found["aggregator"] > found["client"] else "client"


def run_checks(path: Path, program: Program) -> Iterator[Finding]:
    """Check what a program needs; only the modules of that program are loaded."""
    try:
        from submerge_client import logs

        logs.begin("warning")  # shows warnings about the configuration
        if program == "client":
            from submerge_client.config.client_config import load

            yield from _client(load(path, os.environ))
        else:
            from submerge_operate.root_config import box_config, root_config

            if program == "up":
                yield from _client(box_config(path).client)
            yield from _aggregator(root_config(path))
    except ImportError as error:
        extra = "client" if program == "client" else "aggregator"
        raise UsageError(
            f"{error.name} is not installed: pip install 'submerge[{extra}]'"
        ) from error


def _client(config: ClientConfig) -> Iterator[Finding]:
    from submerge_operate.doctor.client import run_checks

    schemes = [config.uplink.scheme]
    schemes += [config.scores_link.scheme] if config.scores.to == "mqtt" else []
    schemes += [] if config.sensor.link is None else [config.sensor.link.scheme]
    needs = of_schemes(schemes)
    needs += [] if config.sensor.needs is None else [Need(*config.sensor.needs)]
    yield from _unless_missing(software(needs), run_checks(config))


def _aggregator(config: AggregatorConfig) -> Iterator[Finding]:
    from submerge_operate.doctor.aggregator import run_checks

    schemes = [] if config.listen.grpc is None else ["grpc"]
    schemes += [] if config.listen.mqtt is None else ["mqtt"]
    schemes += [] if config.parent is None else [config.parent.scheme]
    needs = [*of_schemes(schemes), *SERVER]
    yield from _unless_missing(software(needs, in_c=True), run_checks(config))


def _unless_missing(first: Iterator[Finding], others: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings; without its libraries nothing else of a program can be checked."""
    for finding in first:
        yield finding
        if finding.state == "fails":
            return
    yield from others
