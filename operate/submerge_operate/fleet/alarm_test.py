"""`submerge alarms test`: a test alarm to each destination of a configuration, as real ones go."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, Self

import click

from submerge.errors import UsageError
from submerge.protocol.alarm_status import Alarm
from submerge_client.logs import log
from submerge_files.console.options import config_option, json_option
from submerge_operate.doctor.command import program_of
from submerge_operate.doctor.findings import Finding, fails, ok, text_of

if TYPE_CHECKING:
    from submerge_aggregator.notify.urls import SecretUrl
    from submerge_client.alarms.journal import Journal
    from submerge_client.config.alarms import Destinations
    from submerge_client.config.links import UplinkConfig

PATIENCE_S = 20.0  # for all destinations together: one that hangs has its own, which is shorter


@click.command(epilog="Example: submerge alarms test --config client.toml")
@config_option(
    "Of a client, an aggregator or `submerge up`.  [default: root.toml or box.toml here]"
)
@json_option("Print one JSON object: each destination, and whether it took the alarm.")
def command(config: Path, as_json: bool) -> None:
    """Send an alarm that is marked as a test to each destination, its start and its end.

    It goes the way of real alarms, and says which destinations took it. Its node is called
    test-of-NODE, and its channel this-is-a-test; no node reports it, and no history has it. What
    runs is not disturbed.

    Exit status: 0 if each took both, 1 if one did not, 2 for a bad configuration.
    """
    findings = sent(config)
    if as_json:
        click.echo(json.dumps({"findings": [finding._asdict() for finding in findings]}))
    else:
        click.echo("\n".join(map(text_of, findings)))
    if any(finding.state == "fails" for finding in findings):
        sys.exit(1)


class _Trial(NamedTuple):
    node: str
    group: str
    alarms: Destinations
    broker: UplinkConfig | None = None
    kit: Path | None = None
    urls: tuple[SecretUrl, ...] = ()


def sent(path: Path) -> list[Finding]:
    """Send a test alarm; return what came of it at each destination."""
    trial = _trial(path)
    at, node, top = time.time(), f"test-of-{trial.node}", (("this-is-a-test", 1.0),)
    alarm = Alarm(node, int(at * 1000), at, at, at, 1.0, "distance", top, 0, first=top)
    found = list(_to_sinks(trial, alarm))
    if trial.broker is not None:
        found.append(_to_broker(trial, trial.broker, alarm))
    if not found:
        raise UsageError(
            f"{path} names no destination of alarms: expected [[alarms.webhook]], ndjson, mqtt or"
            " [alarms.apprise] (docs/alarm-messages.md)"
        )
    return found


def _trial(path: Path) -> _Trial:
    from submerge_operate.root_config import box_config, root_config

    program = program_of(path)
    if program == "aggregator":
        from submerge_aggregator.notify.notifier import urls_of

        root = root_config(path)
        return _Trial(root.node, next(iter(root.groups)), root.alarms, urls=urls_of(root))
    if program == "up":
        client = box_config(path).client
    else:
        from submerge_client.config.client_config import load

        client = load(path, os.environ)
    return _Trial(client.node, client.group, client.alarms, client.alarms_link, client.kit)


def _to_sinks(trial: _Trial, alarm: Alarm) -> Iterator[Finding]:
    """Have the sinks themselves deliver it, with a journal of their own."""
    from submerge_client.alarms.factory import STREAM, journal_of, line_sinks, names_of
    from submerge_client.alarms.journal import Delivered
    from submerge_client.config.alarms import origin

    alarms, group, urls = trial.alarms, trial.group, trial.urls
    stream = "standard output" if alarms.ndjson == STREAM else alarms.ndjson
    wheres = [] if stream is None else [stream]
    wheres += [f"{hook.shape} at {origin(hook.url)}" for hook in alarms.webhook]
    wheres += [str(kind.__struct_config__.tag) for kind in alarms.sinks]
    names = dict(zip(names_of(alarms, group), wheres, strict=True))
    if urls:
        from submerge_aggregator.notify.notifier import apprise_name, apprise_sinks

        names |= {apprise_name(url, group): repr(url) for url in urls}
    with TemporaryDirectory() as folder:
        journal = journal_of(alarms, Path(folder) / "test", [group], names)
        if journal is None:
            return
        for name in names:
            journal.note(name, Delivered())
        # What the command says is on standard output.
        sinks = line_sinks(alarms, group, journal, sys.stderr.buffer)
        sinks += apprise_sinks(urls, group, journal) if urls else []
        with _Complaints() as complaints:
            for sink in sinks:
                sink.update((alarm,))
            until, left = time.monotonic() + PATIENCE_S, dict(names)
            while left and time.monotonic() < until and not complaints.cover(left.values()):
                time.sleep(0.05)
                left = {name: names[name] for name in _waiting(journal, names, alarm)}
            for sink in sinks:
                sink.close(0.0)
    for name, where in names.items():
        if name in left:
            why = complaints.of(where) or f"no answer in {PATIENCE_S:g} s"
            yield fails("alarms", f"{where} did not take it: {why}", "see docs/alarm-messages.md")
        else:
            yield ok("alarms", f"{where} took it")


class _Complaints(logging.Handler):
    """What sinks log meanwhile: why, by where."""

    def __enter__(self) -> Self:
        self._whys: dict[str, str] = {}
        log.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        log.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        facts = dict(record.__dict__.get("facts", {}))
        why = str(facts.pop("why", record.getMessage()))
        self._whys |= {str(where): why for where in facts.values()}

    def of(self, where: str) -> str:
        """Return why a destination does not take alarms, "" while it has not said so."""
        said = self._whys.items()
        return next((why for of, why in said if where.endswith(of) or of.endswith(where)), "")

    def cover(self, wheres: Iterable[str]) -> bool:
        return all(map(self.of, wheres))


def _waiting(journal: Journal, names: Collection[str], alarm: Alarm) -> set[str]:
    found = {name: journal.delivered(name) for name in names}
    return {name for name, each in found.items() if each is None or alarm.name not in each.over}


def _to_broker(trial: _Trial, link: UplinkConfig, alarm: Alarm) -> Finding:
    """Publish it as the state of a node of its own, which the broker does not keep."""
    import msgspec

    from submerge_client.alarms.over_mqtt import state
    from submerge_client.uplink.broker import Publication, broker_of
    from submerge_client.uplink.line import BrokerConnection
    from submerge_proto.wire import topics

    heard: SimpleQueue[str] = SimpleQueue()
    line = BrokerConnection(
        broker_of(link, trial.kit),
        name=f"submerge:{link.fleet}:test:{trial.node}",
        opened=lambda: heard.put(""),
        parted=heard.put,
    )
    line.open()
    try:
        why = heard.get(timeout=PATIENCE_S)
    except Empty:
        why = f"no answer in {PATIENCE_S:g} s"
    topic = topics.alarm(link.fleet, alarm.node)
    for i, each in enumerate((replace(alarm, ended=0.0), alarm)):
        data = msgspec.json.encode(state(alarm.node, trial.group, (each,)))
        line.put(i, Publication(topic, data, retain=False))
    line.close()  # it sends what waits
    while not (why or heard.empty()):
        why = heard.get()
    if why:
        return fails(
            "alarms", f"the broker did not take it: {why}", "submerge doctor tries it, too"
        )
    return ok("alarms", f"the broker took it, for {topic}")
