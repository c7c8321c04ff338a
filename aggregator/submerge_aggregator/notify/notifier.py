"""AlarmNotifier: sends alarms to people, in a thread of its own, as sinks wait for disks."""

from __future__ import annotations

import math
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from submerge.aggregator.alarms.below import alarms_below
from submerge.aggregator.alarms.incidents import NO_RATES, AlarmRates, incidents
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import latest_row_per_node
from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Key, Now
from submerge_aggregator.batch import AlarmsChanged
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.notify.urls import SecretUrl, read_urls
from submerge_aggregator.questions.alarm_survey import survey_rates
from submerge_client.alarms import Sink, Sinks
from submerge_client.alarms.factory import journal_of, line_sinks, names_of
from submerge_client.alarms.ndjson import LineSink
from submerge_client.logs import say

if TYPE_CHECKING:
    from submerge_aggregator.telemetry import Telemetry
    from submerge_client.alarms.journal import Journal


class AlarmNews:
    """The alarms of all rows, as last kept."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Alarm, ...]] = {}
        self._disputed: set[str] = set()

    def groups(self, records: Mapping[Key, Any], *, reset: bool) -> set[str]:
        """Return the groups whose alarms change with these records; `reset`: all others go."""
        changed = {key[1] for key in self._known} if reset else set()
        if reset:
            self._known.clear()
        for key, record in records.items():
            if key[0] != "row":
                continue
            alarms = () if record is None else record.report.alarms
            if diff(self._known.pop(key, ()), alarms) or key[1] in self._disputed:
                changed.add(key[1])
            if alarms:
                self._known[key] = alarms
        return changed

    def alarms_of(self, node: AggregatorNode, now: Now, group: str) -> AlarmsChanged:
        """Return the alarms that all below report now, as far as they are believed."""
        ledger = node.ledger(group)
        if ledger is None:
            return AlarmsChanged(group, (), True)
        below = alarms_below(ledger, now)
        (self._disputed.add if below.disputed else self._disputed.discard)(group)
        statuses = [row.report.alarm_status for _, row in latest_row_per_node(ledger)]
        whole = all(
            each.open <= sum(alarm.is_serious for alarm in each.alarms)
            for each in statuses
            if each is not None
        )
        alarms = tuple(found.alarm for found in below.believed)
        rates = survey_rates(ledger, now)
        return AlarmsChanged(group, alarms, whole, below.believed, rates)


OLD_S = 7 * 86400.0
"""An alarm that ended so long before it was reported here is not sent: a node has moved."""


class Subtree:
    """The alarms of one group.

    begun : People were notified of their start, and not of their end.
    patience_s : An open alarm counts as open for so long after the last report of it.
    """

    def __init__(self, begun: Iterable[Alarm], patience_s: float) -> None:
        self._open = {alarm.name: alarm for alarm in begun if not alarm.parts}
        self._sent = frozenset(self._open)
        self._missing: dict[str, float] = {}
        self._reported: tuple[Alarm, ...] = ()
        self._whole, self._patience_s, self._rates = True, patience_s, NO_RATES

    def hear(
        self, reported: tuple[Alarm, ...], *, whole: bool, rates: AlarmRates = NO_RATES
    ) -> None:
        """Take the alarms of rows; `whole`: no open alarm was left out for lack of room."""
        self._reported, self._whole, self._rates = reported, whole, rates

    def state(self, now_s: float, wall: float) -> tuple[Alarm, ...]:
        """Return the alarms and the incidents to send, at a steady and a wall time."""
        missing = {
            alarm.name: self._missing.get(alarm.name, now_s)
            for kind, alarm in diff(self._open.values(), self._reported)
            if kind == "gone"
        }
        believed = [
            self._open[name]
            for name, since in missing.items()
            if not self._whole or now_s - since < self._patience_s
        ]
        fresh = [
            alarm
            for alarm in self._reported
            if alarm.is_open or alarm.name in self._sent or alarm.ended > wall - OLD_S
        ]
        # A slow sink still needs an alarm that has ended since.
        self._sent = frozenset(alarm.name for alarm in (*fresh, *believed))
        self._open = {alarm.name: alarm for alarm in (*fresh, *believed) if alarm.is_open}
        self._missing = {name: since for name, since in missing.items() if name in self._open}
        alarms = sorted((*fresh, *believed), key=lambda each: (each.number, each.node))
        return (*alarms, *incidents(alarms, self._rates))

    @property
    def due_s(self) -> float:
        """When the first missing alarm is over, on the steady clock."""
        if not self._whole:
            return math.inf
        return min(self._missing.values(), default=math.inf) + self._patience_s


LONGEST_WAIT_S = 3600.0


class AlarmNotifier:
    def __init__(
        self, groups: Mapping[str, tuple[Subtree, Sinks]], clock: Callable[[], Now]
    ) -> None:
        self._groups, self._clock = groups, clock
        self._heard: dict[str, AlarmsChanged] = {}
        self._stirred = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="alarms", daemon=True)
        self._thread.start()

    def notify(self, news: AlarmsChanged) -> None:
        """Send the newest state of a group; returns at once."""
        if news.group in self._groups:
            with self._stirred:
                self._heard[news.group] = news
                self._stirred.notify()

    def close(self) -> None:
        """Send what can be sent in a moment; the next start sends the rest."""
        with self._stirred:
            self._closing = True
            self._stirred.notify()
        self._thread.join()
        for _, sinks in self._groups.values():
            sinks.close()

    def _run(self) -> None:
        known: set[str] = set()
        while True:
            heard, closing = self._wait(known)
            known |= heard.keys()
            try:
                self._send(known, heard)
            except Exception:  # no thread dies in silence
                say("a bug, please report it", level="error", trace=traceback.format_exc())
            if closing:
                return

    def _send(self, known: set[str], heard: Mapping[str, AlarmsChanged]) -> None:
        for name in known:
            subtree, sinks = self._groups[name]
            if name in heard:
                news = heard[name]
                subtree.hear(news.alarms, whole=news.whole, rates=news.rates)
            now = self._clock()
            if name in heard or subtree.due_s <= now.steady:
                sinks.update(subtree.state(now.steady, now.wall))

    def _wait(self, known: set[str]) -> tuple[dict[str, AlarmsChanged], bool]:
        """Wait for news, or until a missing alarm is over; return the news."""
        with self._stirred:
            now_s = self._clock().steady
            due_s = min((self._groups[name][0].due_s for name in known), default=math.inf)
            if not self._heard and not self._closing and due_s > now_s:
                self._stirred.wait(min(due_s - now_s, LONGEST_WAIT_S))
            heard, self._heard = self._heard, {}
            return heard, self._closing


REPORTS = 3  # an open alarm that its site has not reported for so many report intervals is over


def make_notifier(
    config: AggregatorConfig, clock: Callable[[], Now], telemetry: Telemetry | None = None
) -> AlarmNotifier | None:
    """Return the notifier; None if the configuration names no sink."""
    alarms, apprise, urls = config.alarms, config.alarms.apprise, urls_of(config)
    others = {group: [apprise_name(url, group) for url in urls] for group in config.groups}
    for group in config.groups if telemetry is not None else ():
        others[group].append(f"{group}: otlp")
    named = [name for names in others.values() for name in names]
    journal = journal_of(alarms, config.store, config.groups, named)
    if journal is None:
        return None
    patience_s = REPORTS * config.timing.report_every_s
    groups: dict[str, tuple[Subtree, Sinks]] = {}
    for group in config.groups:
        known = [journal.delivered(name) for name in (*names_of(alarms, group), *others[group])]
        begun = [alarm for delivered in known if delivered is not None for alarm in delivered.open]
        sinks = line_sinks(alarms, group, journal, sys.stdout.buffer)
        if apprise is not None:
            sinks += apprise_sinks(urls, group, journal)
        if telemetry is not None:
            sinks.append(LineSink(telemetry.alarms, journal, name=f"{group}: otlp", group=group))
        groups[group] = Subtree(begun, patience_s), Sinks(sinks, alarms.sends)
    return AlarmNotifier(groups, clock)


def urls_of(config: AggregatorConfig) -> tuple[SecretUrl, ...]:
    apprise = config.alarms.apprise
    return () if apprise is None else read_urls(apprise.urls_file)


def apprise_name(url: SecretUrl, group: str) -> str:
    """Return a service's name in the journal: the same after a restart, and no secret."""
    return f"{group}: apprise {url.digest}"


def apprise_sinks(urls: Iterable[SecretUrl], group: str, journal: Journal) -> list[Sink]:
    """Return one sink for each service, so that a refusal by one repeats nothing at the others."""
    from submerge_aggregator.notify.over_apprise import (
        AppriseMessages,
        AppriseService,
        open_service,
    )
    from submerge_client.alarms.webhook import Webhook, WebhookDelivery

    sinks: list[Sink] = []
    services = [(url, open_service(url)) for url in urls]
    for url, service in services:  # threads start once all services are open
        delivery = WebhookDelivery(
            AppriseMessages(),
            AppriseService(service),
            journal,
            name=apprise_name(url, group),
            where=repr(url),
            kind="service",
        )
        sinks.append(Webhook(delivery, f"apprise {url.scheme}"))
    return sinks
