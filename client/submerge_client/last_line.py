"""log_end(): the last line of a client: the fates of all its rows, which add up to `rows`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from submerge.client.incarnation import RowAccount, advice
from submerge.client.node import ClientNode
from submerge_client.logs import say
from submerge_client.sensors.lags import Lags
from submerge_client.status_line import unsettled


def log_end(
    node: ClientNode, lags: Lags, more: Mapping[str, object], *, rows: int, written: bool
) -> None:
    """Write the last line.

    more : Further facts.
    rows : Rows that the sensor handed over.
    written : Whether the checkpoint has been written.
    """
    before = node.finals.from_before
    account = node.finals.account(node.current, ends=True)
    account += RowAccount(lead_in=lags.counts["lead_in"])
    if not written:
        account = account.given_up
    todo = advice(account, has_parent=bool(node.current.pin), unsettled=unsettled(node))
    facts: dict[str, object] = {**account.shown, **({"from_before": before} if before else {})}
    facts |= {**more, **({"todo": todo} if todo else {})}
    say("ended", level=logging.WARNING if todo else logging.INFO, rows=rows, **facts)
