"""make_notifier(): the notifier of a configuration; loads only the sinks that it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, BinaryIO

from submerge.protocol.machine import Now
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.notify.notifier import AlarmNotifier, Subtree
from submerge_aggregator.notify.urls import SecretUrl, read_urls
from submerge_client.alarms import Sink, Sinks
from submerge_client.alarms.factory import journal_of, line_sinks, names_of

if TYPE_CHECKING:
    from submerge_client.alarms.journal import Journal

REPORTS = 3
"""An open alarm that its site has not reported for so many report intervals is over."""


def make_notifier(
    config: AggregatorConfig, clock: Callable[[], Now], stdout: BinaryIO | None = None
) -> AlarmNotifier | None:
    """Return the notifier; None if the configuration names no sink."""
    alarms, out = config.alarms, sys.stdout.buffer if stdout is None else stdout
    apprise, urls = alarms.apprise, urls_of(config)
    others = {group: [apprise_name(url, group) for url in urls] for group in config.groups}
    named = [name for names in others.values() for name in names]
    journal = journal_of(alarms, config.store, config.groups, named)
    if journal is None:
        return None
    patience_s = REPORTS * config.timing.report_every_s
    groups: dict[str, tuple[Subtree, Sinks]] = {}
    for group in config.groups:
        known = [journal.delivered(name) for name in (*names_of(alarms, group), *others[group])]
        begun = [alarm for delivered in known if delivered is not None for alarm in delivered.open]
        sinks = line_sinks(alarms, group, journal, out)
        if apprise is not None:
            sinks += apprise_sinks(urls, group, journal)
        heard = Sinks(sinks, provisional=alarms.provisional)
        groups[group] = Subtree(begun, patience_s), heard
    return AlarmNotifier(groups, clock)


def urls_of(config: AggregatorConfig) -> tuple[SecretUrl, ...]:
    """Return the URLs of the services that Apprise notifies."""
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
