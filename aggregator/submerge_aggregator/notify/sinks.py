"""herald_of(): who is told of alarms, as a configuration says; what is not needed is not loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import BinaryIO

from submerge.protocol.machine import Now
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.notify.notifier import AlarmNotifier
from submerge_aggregator.notify.subtree import Subtree
from submerge_client.alarms import Sinks
from submerge_client.alarms.factory import journal_of, line_sinks, names_of

REPORTS = 3
"""So many reports of a site may pass until nobody tells of an open alarm any more: it is over."""


def make_notifier(
    config: AggregatorConfig, clock: Callable[[], Now], stdout: BinaryIO | None = None
) -> AlarmNotifier | None:
    """Return what has people told of alarms; None if nobody is to be.

    Raises
    ------
    UsageError
        If something that the configuration names cannot be used.
    """
    alarms, out = config.alarms, sys.stdout.buffer if stdout is None else stdout
    journal = journal_of(alarms, config.store, config.groups)
    if journal is None:
        return None
    patience_s = REPORTS * config.timing.report_every_s
    groups: dict[str, tuple[Subtree, Sinks]] = {}
    for group in config.groups:
        known = [journal.delivered(name) for name in names_of(alarms, group)]
        begun = [alarm for delivered in known if delivered is not None for alarm in delivered.open]
        sinks = Sinks(line_sinks(alarms, group, journal, out))
        groups[group] = Subtree(begun, patience_s), sinks
    return AlarmNotifier(groups, clock)
