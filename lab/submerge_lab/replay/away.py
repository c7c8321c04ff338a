"""The options of `submerge replay --into`: checked, carried out, and the result as text."""

from __future__ import annotations

import json
import logging
from typing import Any, get_args

from submerge import UsageError
from submerge.errors import SubmergeError
from submerge.features import FeatureMap
from submerge.schema import Center
from submerge_client import logs
from submerge_client.config.links import UplinkConfig
from submerge_client.config.sections import BadSetting
from submerge_client.datasets import Table
from submerge_lab.replay.into import IntoResult, Target, replay_into
from submerge_lab.replay.rows import check_magnitudes, deal, deal_with_gaps

LINK = ("insecure", "ca", "cert", "key")
HERE = {
    *("parent", "group", "node", "speed", *LINK),
    *("rank", "oversample", "center", "missing", "zero_is_missing", "leaves", "deal"),
}
"""Options that have an effect on a client; the fleet's configuration has the rest."""


def send(
    url: str, table: Table, given: dict[str, Any], features: FeatureMap | None, *, as_json: bool
) -> str:
    """Send a table to the fleet at `url`; return the text to print.

    `features`: the map of a kernel group

    Raises
    ------
    UsageError
        If an option has no effect or is missing.
    NotAcknowledged
        If the fleet does not hold each row exactly once.
    """
    idle = sorted(set(given) - HERE)
    if idle:
        option = "--" + idle[0].replace("_", "-")
        raise UsageError(f"{option} has no effect with --into: leave it out")
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
    missing = given.get("missing", "reject")
    gaps = deal_with_gaps(
        table.rows,
        table.names,
        missing=missing,
        zero_is_missing=given.get("zero_is_missing", False),
    )
    check_magnitudes(gaps.rows, table.names)
    leaves = deal(gaps.rows, given.get("leaves", 1), given.get("deal", "turn"))
    target = Target(
        link,
        given.get("parent", "root"),
        given["group"],
        given.get("node", "replay"),
        given.get("speed", 0.0),
    )
    # Warnings go to standard error, as from any client.
    logs.begin(logging.getLevelName(logging.WARNING).lower())
    result = replay_into(
        target,
        table,
        leaves,
        rank=given.get("rank"),
        oversample=given.get("oversample", 5),
        fill=missing == "impute",
        features=features,
        center=center,
    )
    if result.acknowledged != result.rows:
        raise NotAcknowledged(result)
    return json.dumps(result.figures()) if as_json else _text(result)


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
