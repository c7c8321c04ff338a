"""The last line of a client: what has become of each row that it read.

Every row has one fate (`RowAccount`), so that the fates add up to `rows`. If some rows are not
learnt and could be, the line is a warning and says what to do.
"""

from __future__ import annotations

import logging
from typing import Any

from submerge.client.account import RowAccount
from submerge.client.node import ClientNode


def unsettled(node: ClientNode) -> int:
    """Return the readings of which a parent has moments only, until the schema is settled."""
    current = node.current
    return node.finals.measured + (0 if current.learns else current.counts.learnt)


def fates(node: ClientNode, *, lead_in: int, kept: bool) -> tuple[int, dict[str, Any]]:
    """Return the level and the facts of the last line, at the end of a process.

    Parameters
    ----------
    node : ClientNode
    lead_in : int
        Rows that only began a window of lags.
    kept : bool
        Whether a file has what waits.
    """
    account = RowAccount(lead_in=lead_in) + node.finals.account(node.current, ends=True)
    if not kept:
        account = account.given_up
    facts: dict[str, Any] = {**account.shown}
    if node.finals.from_before:
        facts["from_before"] = node.finals.from_before
    todo = _todo(account, node)
    if not todo:
        return logging.INFO, facts
    return logging.WARNING, facts | {"todo": todo}


def _todo(account: RowAccount, node: ClientNode) -> str:
    """Return what a person may do about rows that are not learnt; empty if nothing."""
    if account.lost:
        if node.current.pin is None:
            return "check the way to the parent: what a client reads before it has reached one is lost"
        return "see the lines above that begin with `lost`"
    if unsettled(node):
        return (
            "the fleet still measures its scaling (scaling_rows at the root): what waits is learnt"
            " when the client is started again after that"
        )
    if account.waiting:
        return "start the client again when it can reach its parent: it then sends what waits"
    return ""
