"""SchemaCheck: the schemas of a fleet's aggregators, as the oracle follows them.

Where channels have names, rows of every schema count. While new ones are measured, the root has no
model, and an aggregator below it reports its sums under an earlier schema: what the root counted
before, it counts at once when the scale is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from functools import reduce
from operator import or_

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.ledger import Ledger
from submerge_lab.simulator.feeds import Ids
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.oracles.at_rest import bits_in, bits_under
from submerge_lab.simulator.oracles.measured_ids import family_in, fingerprint_in


class SchemaCheck:
    """Follows the schemas in the stores of a fleet.

    Parameters
    ----------
    record : callable
        Takes an invariant and what is wrong.

    Attributes
    ----------
    seen : set of str
        Fingerprints of all of them.
    """

    def __init__(
        self, fleet: SimulatedFleet, feed: Ids, record: Callable[[str, str], None]
    ) -> None:
        self._fleet, self._feed, self._record = fleet, feed, record
        self._of: dict[Host, str] = {}
        self.seen = {feed.schema.fingerprint}

    @property
    def _change(self) -> bool:
        """Whether channels that come are measured."""
        return self._fleet.plan.learns_scaling and self._fleet.suffered.channels > 0

    def are_measured(self, ledger: Ledger) -> bool:
        """Return whether the root has no model for now: its channels are new."""
        return self._change and ledger.schema.scaling is None

    @property
    def in_stores(self) -> int:
        """The ids in all aggregators' rows, as bits."""
        above = (host for host in self._fleet.hosts if host.level)
        return reduce(or_, (bits_in(host.records) for host in above), 0)

    def kept_at(self, root: Host) -> int:
        """Return the ids in the root's rows, as bits; 0 where it never has to measure channels."""
        return bits_in(root.records) if self._change else 0

    def on_the_way(self, lost: Iterable[int], tampered: Set[str]) -> int:
        """Return the ids that come up again, or would without a loss.

        Only where a parent of aggregators has an older disk, or a new one: it may not know a
        schema that was settled since, and takes no sums under it.

        lost : of stores; what a store alone has is lost above it, too
        tampered : names of hosts whose disks were harmed
        """
        parents = {host.name for hosts in self._fleet.levels[2:] for host in hosts}
        if not self._change or not parents & tampered:
            return 0
        return reduce(or_, lost, self.in_stores)

    def check(self, host: Host, tampered: Set[str]) -> int:
        """Check that a settled scaling is given up only by a harmed store.

        Returns
        -------
        int
            The ids that it costs, as bits.
        """
        plan, faults = self._fleet.plan, self._fleet.suffered
        now = fingerprint_in(host.records)
        if not (plan.learns_scaling or faults.channels) or not now:
            return 0
        if not isinstance(host.node, AggregatorNode):
            return 0
        before, bits = self._of.setdefault(host, now), 0
        if before != now:
            self._of[host] = now
            if family_in(host.records) == now:  # no row of another one counts
                bits = bits_under(before, host.records) & ~self._feed.forged
            if bits and not tampered:
                self._record("I2", f"{host} gives up a scaling that the fleet has settled")
        self.seen.add(now)
        return bits
