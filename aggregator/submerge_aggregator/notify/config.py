"""AlarmsConfig, AppriseConfig: who is told of the alarms of all below an aggregator."""

from __future__ import annotations

import re
from pathlib import Path

from submerge_client.config.alarm_sinks import WebhookConfig
from submerge_client.config.sections import Section, Text, refusal

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""What a url begins with, and no path; a `Path` has only one of the slashes left."""


class AppriseConfig(Section, frozen=True, kw_only=True):
    """Services that Apprise knows: e-mail, Slack, Teams, Telegram and many more.

    Attributes
    ----------
    urls_file : Path
        A file with one Apprise URL per line. It holds secrets: nobody else may read it.
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
    """Who is told of the alarms of all nodes below, so that these need not.

    One aggregator is enough: each one that has it tells of all below it, and none knows what
    another one, or a node itself, has told.

    Attributes
    ----------
    ndjson : str, optional
        A file that a line is appended to for each start and each end; "-" is standard output.
    webhook : tuple of WebhookConfig
        Servers that hear of each.
    apprise : AppriseConfig, optional
        Services that hear of each through Apprise.
    """

    ndjson: Text | None = None
    webhook: tuple[WebhookConfig, ...] = ()
    apprise: AppriseConfig | None = None
