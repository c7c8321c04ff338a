"""NoiseOracle: whether releases tell of each reading no more than they may (I14)."""

from __future__ import annotations

import numpy as np

from submerge.aggregator.rows.releases import Release
from submerge.pca.row_sums import Ints
from submerge.protocol.machine import Effect, Event, Received
from submerge.protocol.messages import Model
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.observer import FleetObserver
from submerge_lab.simulator.samples import RHO, NumberedNoise, bits_of


class NoiseOracle(FleetObserver):
    """Follows which readings each noise covers, as the root's store holds releases.

    covers : By number of the noise, readings as bits.
    """

    def __init__(self, fleet: SimulatedFleet, noise: NumberedNoise) -> None:
        self._fleet, self._noise, self.violations = fleet, noise, list[tuple[str, str]]()
        self.covers: dict[int, int] = {}
        self.releases, self._spent, self._said = 0, np.zeros(0), 0.0
        self._kept, self._told = dict[int, Release](), set[int]()

    def on_write(self, host: Host) -> None:
        """Take what the root is about to publish."""
        found = host.records.get(("release", GROUP))
        if host.level != self._fleet.plan.depth or not isinstance(found, Release):
            return
        numbers = {int(drawn[0]) for drawn in found.noises.values()}
        sums, known = bits_of(found.summary), numbers & self.covers.keys()
        held = [self.covers[each] for each in known]
        covered = 0
        for each in held:
            self._check(not covered & each, "a reading is under two noises of one release")
            covered |= each
        self._check(not covered & ~sums, "a reading left, and its noise is used again")
        new = numbers - known
        self._check(len(new) <= 1, "a release has two new noises")
        self._check(bool(new) or covered == sums, "readings came, and no noise with them")
        for each in new:
            self.covers[each] = sums & ~covered
        self._kept[host.records["version", GROUP]] = found

    def on_step(self, host: Host, event: Event, effects: list[Effect]) -> None:
        """Take a release that somebody has received."""
        message = event.message if isinstance(event, Received) else None
        found = self._kept.pop(message.version, None) if isinstance(message, Model) else None
        if found is None:
            return
        self.releases += 1
        for number in {int(drawn[0]) for drawn in found.noises.values()} - self._told:
            self._told.add(number)
            self._charge(self.covers[number], self._noise.costs[number])
        self._said = max(self._said, found.spent_in_all)
        most = float(self._spent.max(initial=0.0))
        self._check(
            most <= self._said * (1 + 1e-9),
            f"a reading has cost {most:.3g}, and {self._said:.3g} is said",
        )

    def conclude(self) -> list[tuple[str, str]]:
        """Return all violations."""
        most = float(self._spent.max(initial=0.0))
        self._check(most <= RHO * (1 + 1e-9), f"a reading has cost {most:.3g} of {RHO:g}")
        return self.violations

    def _charge(self, bits: int, cost: float) -> None:
        """Note that a noise of some cost covers readings."""
        missing = bits.bit_length() - len(self._spent)
        self._spent = np.pad(self._spent, (0, max(0, missing)))
        self._spent[_places(bits)] += cost

    def _check(self, holds: bool, what: str) -> None:
        if not holds and not self.violations:
            self._fleet.log(self._fleet.root, f"!! I14: {what}")
            self.violations.append(("I14", f"at {self._fleet.time:.0f} s: {what}"))


def _places(bits: int) -> Ints:
    """Return the readings of a set of bits."""
    data = np.frombuffer(bits.to_bytes(-(-bits.bit_length() // 8), "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little"))
