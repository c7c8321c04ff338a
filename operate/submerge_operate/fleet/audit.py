"""`submerge aggregator audit`: who joined, who was refused, and what operators ordered."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from submerge.errors import UsageError
from submerge_files.console.admin_client import AdminCommand
from submerge_files.console.options import (
    AggregatorOptions,
    aggregator_options,
    flag_option,
    json_option,
)
from submerge_files.console.units import duration, printable

AGAIN_S = 0.5  # between two looks at a file that is followed


@click.command(
    cls=AdminCommand, epilog="Example: submerge aggregator audit --config root.toml --since 1d"
)
@aggregator_options("Of this group only.", network=False)
@click.option("--since", metavar="TIME", help="The last 90s, 30m, 12h or 7d only.")
@click.option("--event", help="Of this kind only: join, refused, order, ban, ...")
@click.option("--node", help="Of this node only.")
@flag_option("--follow", "Go on with what is recorded from now on, until Ctrl-C.")
@json_option("Print each entry as it stands in the file.")
def command(
    at: AggregatorOptions,
    since: str | None,
    event: str | None,
    node: str | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Show the audit log of an aggregator, the oldest entry first.

    It reads the files beside the store, so the aggregator need not run. Events are start, stop,
    join, refused, order, denied, ban, tokens, quarantine, model, store and dropped.
    """
    from submerge_aggregator.audit import EVENTS, entry_of

    if event is not None and event not in EVENTS:
        raise UsageError(f"expected --event {', '.join(EVENTS)}, got {event!r}")
    path = _path_of(at)
    first = time.time() - duration(since) if since is not None else 0.0
    kept = {"event": event, "node": node, "group": at.group}
    chosen = {name: value for name, value in kept.items() if value is not None}
    for line in _lines(path, follow=follow):
        entry = entry_of(line)
        if entry is None or entry["at"] < first:
            continue
        if all(entry.get(name) == value for name, value in chosen.items()):
            click.echo(json.dumps(entry) if as_json else _text(entry))


def _path_of(at: AggregatorOptions) -> Path:
    from submerge_aggregator.audit import AuditConfig, audit_path
    from submerge_operate.root_config import beside_store

    path = beside_store(
        at,
        lambda store: audit_path(AuditConfig(), store),
        lambda config: audit_path(config.audit, config.store),
    )
    if path is None:
        raise UsageError("this aggregator has no audit log: [audit] path is empty")
    return path


def _lines(path: Path, *, follow: bool) -> Iterator[bytes]:
    from submerge_aggregator.audit import lines_in

    try:
        for line in lines_in(path, follow=follow):
            if line is None:
                time.sleep(AGAIN_S)
            else:
                yield line
    except FileNotFoundError:
        raise UsageError(f"expected an audit log in {path}, got no such file") from None
    except PermissionError as error:
        raise UsageError(
            f"{path} is its owner's alone: run this as the aggregator's user"
        ) from error


def _text(entry: dict[str, Any]) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry["at"]))
    facts = {name: value for name, value in entry.items() if name not in ("at", "event")}
    fields = [f"{name}={_value(value)}" for name, value in facts.items()]
    return printable(" ".join([moment, f"{entry['event']:<10}", *fields]))


def _value(value: Any) -> str:
    """Return a fact as it stands in a line: in quotes if it has blanks."""
    if isinstance(value, str) and value and " " not in value:
        return value
    return json.dumps(value, ensure_ascii=False)
