"""OrderLog: each order, and each that was refused, in the audit log; refusals are counted, too.

A flood of refusals must not push the rest out of the audit log. So much is recorded a minute of
those without a credential together, and of each operator; what is left out is counted in the next
entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from submerge_aggregator.audit.log import Record
from submerge_aggregator.operators.identify import DENIALS, Denial, Operator
from submerge_aggregator.rate_limit import RateLimit
from submerge_aggregator.refusals import Refusals
from submerge_client.logs import say

PER_S, BURST = 1 / 6, 60
"""Entries on refusals: so many at once, and then ten a minute."""


class OrderLog:
    """What operators ordered, and what was refused.

    record : Of the audit log.
    steady : A clock that is never set back, in seconds.

    denials : Counts requests that were refused, by reason (`DENIALS`), and logs them.
    """

    def __init__(self, record: Record, steady: Callable[[], float]) -> None:
        self._record, self._steady = record, steady
        self.denials = Refusals(steady, reasons=DENIALS, sender="by")
        self._pace = RateLimit(PER_S, BURST)
        self._unrecorded = 0

    def note(self, operator: Operator, verb: str, **facts: Any) -> None:
        """Log and record an order that was carried out."""
        given: dict[str, Any] = {"by": operator.who, "address": operator.whence}
        say("operator command", verb=verb, **facts, **given)
        shuts_out = verb in ("ban", "unban") or bool(facts.get("ban"))
        self._record("ban" if shuts_out else "order", **given, verb=verb, **facts)

    def deny(self, denial: Denial, address: str, what: str) -> None:
        """Count, log and record a request that was not allowed.

        what : method and path; never the query, in which a person may have put a token
        """
        known: dict[str, Any] = {"address": address, "what": what, "why": denial.why}
        self.denials.count(
            denial.reason,
            denial.who or address,
            what="operator refused",
            request=what,
            why=denial.why,
        )
        self._record_some(
            denial.who if denial.reason == "scope" else "",
            by=denial.who or "unknown",
            reason=denial.reason,
            **known,
        )

    def refuse(self, operator: Operator, what: str, why: str) -> None:
        """Record an order that was allowed, and that the aggregator did not carry out."""
        known = {"by": operator.who, "address": operator.whence, "what": what, "why": why}
        self._record_some(operator.who, **known)

    def _record_some(self, pace: str, **facts: object) -> None:
        if not self._pace.takes(pace, self._steady()):
            self._unrecorded += 1
            return
        left, self._unrecorded = self._unrecorded, 0
        self._record("denied", **facts, **({"unrecorded": left} if left else {}))
