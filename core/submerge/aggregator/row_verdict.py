"""RowVerdict: what a ledger decides about a report."""

from __future__ import annotations

from typing import NamedTuple

from submerge.protocol.messages import Reason


class RowVerdict(NamedTuple):
    """The answer to a report, the seq that is held now, and whether a row has changed."""

    reason: Reason
    newest: int
    news: bool = False
