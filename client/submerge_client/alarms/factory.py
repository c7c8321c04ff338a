"""sinks_of(): the sinks that a configuration names. Modules of other kinds are not loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from submerge_client.alarms import Sink, Sinks
from submerge_client.config.alarms import Destinations, SinkKind, WebhookConfig, origin
from submerge_client.uplink.factory import Allowed

if TYPE_CHECKING:
    from submerge_client.alarms.journal import Journal
    from submerge_client.config.client_config import ClientConfig

STREAM = "-"  # in place of a path, this means standard output


def sinks_of(config: ClientConfig, stdout: BinaryIO) -> Sinks:
    alarms, group = config.alarms, config.group
    journal = journal_of(alarms, config.state, [group])
    sinks = [] if journal is None else line_sinks(alarms, group, journal, stdout)
    link = config.alarms_link
    if link is not None:
        from submerge_client.alarms.over_mqtt import MqttAlarms

        node, discovery = config.node, alarms.discovery
        sinks.append(MqttAlarms(link, node=node, group=group, discovery=discovery, kit=config.kit))
    return Sinks(sinks, alarms.sends)


def journal_of(
    alarms: Destinations, store: Path, groups: Iterable[str], others: Collection[str] = ()
) -> Journal | None:
    """Return the journal beside a store; None if there are no sinks."""
    names = [*others, *(name for group in groups for name in names_of(alarms, group))]
    if not names:
        return None
    from submerge_client.alarms.journal import Journal

    return Journal(Path(f"{store}.alarms"), names)


def line_sinks(alarms: Destinations, group: str, journal: Journal, stdout: BinaryIO) -> list[Sink]:
    sinks: list[Sink] = []
    if alarms.ndjson is not None:
        from submerge_client.alarms.ndjson import File, LineSink, Stream

        output = Stream(stdout) if alarms.ndjson == STREAM else File(Path(alarms.ndjson))
        sinks.append(LineSink(output, journal, name=_name(alarms.ndjson, group), group=group))
    if alarms.webhook:
        from submerge_client.alarms.webhook import HttpPost, Webhook, WebhookDelivery, payload_of

        # A server that is listed twice is one sink.
        for name, hook in {_name(hook, group): hook for hook in alarms.webhook}.items():
            where = origin(hook.url)
            payload, post = payload_of(hook, group), HttpPost(hook)
            delivery = WebhookDelivery(payload, post, journal, name=name, where=where)
            sinks.append(Webhook(delivery, f"webhook {where}"))
    for name, kind in {_name(kind, group): kind for kind in alarms.sinks}.items():
        sinks.append(kind.open(journal, name=name, group=group))
    return sinks


def names_of(alarms: Destinations, group: str) -> list[str]:
    lines = [] if alarms.ndjson is None else [_name(alarms.ndjson, group)]
    hooks = [_name(hook, group) for hook in alarms.webhook]
    return [*lines, *hooks, *(_name(kind, group) for kind in alarms.sinks)]


def links_of(config: ClientConfig) -> Mapping[str, Allowed | None]:
    hooks = {f"alarms.webhook[{i}]": hook for i, hook in enumerate(config.alarms.webhook)}
    return {"alarms": config.alarms_link, **hooks}


def _name(sink: WebhookConfig | SinkKind | str, group: str) -> str:
    """Return a sink's name in the journal: the same after a restart, without secrets."""
    if isinstance(sink, str):
        return f"{group}: ndjson {sink}"
    if isinstance(sink, SinkKind):
        digest = blake2b(repr(sink).encode(), digest_size=8).hexdigest()
        return f"{group}: {sink.__struct_config__.tag} {digest}"
    return f"{group}: {sink.shape} {blake2b(sink.url.encode(), digest_size=8).hexdigest()}"
