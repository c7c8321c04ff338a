"""QuarantineCheck: I9, exactly the clients that contradict themselves are quarantined."""

from __future__ import annotations

import math
from collections.abc import Callable, Container

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.operators.quarantine import AGAIN_S
from submerge.protocol.messages import Reason, Report
from submerge.protocol.report_bytes import digest
from submerge.protocol.summaries import Summaries
from submerge_lab.simulator.forgeries import NAME
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.nodes import GROUP


class QuarantineCheck:
    """Follows the contradictions of clients at each aggregator.

    Parameters
    ----------
    summaries : Summaries
    record : callable
        Takes an invariant, and what is wrong.
    """

    def __init__(self, summaries: Summaries, record: Callable[[str, str], None]) -> None:
        self._summaries, self._record = summaries, record
        self._slips: dict[tuple[int, int, str], tuple[float, bytes]] = {}

    def check(
        self,
        host: Host,
        report: Report,
        reasons: Container[Reason],
        twins: Container[str],
        time: float,
    ) -> None:
        """Check what a host has made of a report.

        twins : clients whose machines were copied with their memory
        """
        if not isinstance(host.node, AggregatorNode):
            return
        name, quarantined = report.stamp.node, host.node.excluded(GROUP)[1]
        for other in quarantined:
            if other not in twins and other != NAME:
                self._record("I9", f"{host} quarantines {other}, which has no double")
        guilty = Reason.SHRUNK in reasons
        if Reason.EQUIVOCATION in reasons:
            # Per process: the record of the first report may be lost with its process.
            place = host.number, host.process, name
            content = digest(report, self._summaries)
            at, before = self._slips.get(place, (-math.inf, b""))
            if time - at > AGAIN_S:
                self._slips[place] = time, content
            else:
                guilty = guilty or before != content
        if guilty and not report.fence and name not in quarantined:
            self._record("I9", f"{host} counts {name}, which contradicts itself")
