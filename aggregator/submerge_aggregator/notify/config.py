"""NotifyConfig, AppriseConfig: where an aggregator sends the alarms of all nodes below it."""

from __future__ import annotations

import re
from pathlib import Path

from submerge_client.config.alarms import SinkKind, SinkTable, WebhookConfig, sinks_of_others
from submerge_client.config.sections import Section, Text, refusal

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""A url's beginning, which no path has; a `Path` keeps only one of its slashes."""


class AppriseConfig(Section, frozen=True, kw_only=True):
    """Services that Apprise knows: e-mail, Slack, Teams, Telegram and many more: pip install
    'submerge[notify]'.

    urls_file : A file with one Apprise URL per line. It holds secrets: only its owner may read it.
    """

    urls_file: Path

    def __post_init__(self) -> None:
        if URL.match(str(self.urls_file)):
            # Not shown: a url of Apprise holds passwords.
            raise refusal(
                "urls_file",
                expected="the path of a file",
                got="a url",
                hint="write the url into a file of mode 0600, and name the file here",
            )


class NotifyConfig(Section, frozen=True, kw_only=True):
    """Where the alarms of all nodes below are sent, so that the nodes need not send them.

    One aggregator is enough. Each that is configured sends all alarms below it, whether or not
    another aggregator, or a node itself, has sent them.

    ndjson : A file that gets a line for each start and each end; "-" is standard output.
    webhook : tuple of WebhookConfig
    apprise : AppriseConfig
    sink : Sinks that other packages add, each with its `kind`.
    provisional : Send alarms by provisional limits as well: of new groups, more often than was
        promised.
    """

    ndjson: Text | None = None
    webhook: tuple[WebhookConfig, ...] = ()
    apprise: AppriseConfig | None = None
    sink: tuple[SinkTable, ...] = ()
    provisional: bool = False

    def __post_init__(self) -> None:
        _ = self.sinks

    @property
    def sinks(self) -> tuple[SinkKind, ...]:
        """The settings of sinks that other packages add."""
        return sinks_of_others(self.sink)
