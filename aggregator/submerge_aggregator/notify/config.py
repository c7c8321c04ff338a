"""AlarmsConfig: who is told of the alarms of all below an aggregator."""

from __future__ import annotations

from submerge_client.config.alarm_sinks import WebhookConfig
from submerge_client.config.sections import Section, Text


class NotifyConfig(Section, frozen=True, kw_only=True):
    """Who is told of the alarms of all nodes below, so that these need not.

    One aggregator is enough: each one that has it tells of all below it, and none knows what
    another one, or a node itself, has told.

    Attributes
    ----------
    ndjson : str, optional
        A file that a line is appended to for each start and each end; "-" is standard output.
    webhook : tuple of WebhookConfig
        Servers that hear of each.
    """

    ndjson: Text | None = None
    webhook: tuple[WebhookConfig, ...] = ()
