"""What it would cost to count nothing that a client learnt before its first join.

    python benchmarks/before_join.py [SEEDS]

A client with that rule ends its incarnation at the first join and declares its readings lost. It is
compared with the client that ships, on the same seeds of simulated fleets.
"""

from __future__ import annotations

import sys

from submerge.client.node import ClientNode
from submerge.protocol.machine import Effect, Now
from submerge.protocol.messages import Joined
from submerge_lab.simulator import Faults, Plan, run

PLANS = {
    "none": Plan(faults="none"),
    "network": Plan(faults="network"),
    "kills": Plan(faults="kills"),
    "swarm-1": Plan(faults="swarm-1"),
    "outages, kills": Plan(faults=Faults(partition=0.5, outage_s=3600, kill=0.25)),
    "late machines": Plan(faults=Faults(late=1.0)),
    "outages, moves": Plan(faults=Faults(partition=0.5, outage_s=3600, move=0.25)),
}


class FromZero(ClientNode):
    """A client that begins from zero at the first join of an incarnation."""

    def _take_joined(self, joined: Joined, now: Now, effects: list[Effect]) -> None:
        current, pinned = self.current, self.current.pin
        super()._take_joined(joined, now, effects)
        first = self.current is current and pinned is None and current.pin is not None
        if first and current.counts.generated > current.counts.lost:
            pin = current.pin
            self._end("learnt before the first join", now, effects)
            self.current.pin = pin
            self._session.take_joined(0)


def share(plan: Plan, seeds: range, client: type[ClientNode]) -> float:
    """Return the share of all readings that the roots count."""
    outcomes = [run(plan, seed, client=client) for seed in seeds]
    return sum(each.counted for each in outcomes) / sum(each.generated for each in outcomes)


def main() -> None:
    seeds = range(int(sys.argv[1]) if sys.argv[1:] else 20)
    print("| faults | counted today | counted with that rule |\n|---|---|---|")
    for name, plan in PLANS.items():
        today, zero = share(plan, seeds, ClientNode), share(plan, seeds, FromZero)
        print(f"| {name} | {today:.2%} | {zero:.2%} |", flush=True)


if __name__ == "__main__":
    main()
