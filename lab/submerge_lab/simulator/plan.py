"""Plan: a simulated fleet, and how long it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from submerge.features import FeatureMap
from submerge_lab.simulator.faults import FLOORS, INCIDENTS, NOISE, PRESETS, RANKS, Faults


@dataclass(frozen=True, slots=True)
class Plan:
    """A fleet, and how long it runs.

    nodes, fan_in, depth : Clients; children of an aggregator; levels of aggregators, the root
        included.
    hours : Time for which sensors run and failures happen; then everything is healed and settles.
    reading_every_s, report_every_s : Intervals of clients; aggregators report as often.
    dim, rank : Sizes of real subspaces; 0 counts sample ids instead.
    features : Real subspaces only: readings vary along a curve and are learnt as features too. The
        fleet settles a gamma that is left open.
    learns_scaling : The fleet settles center and scale.
    half_life_s : Real subspaces only.
    faults : A preset's name, or rates.
    given : Rates that replace the drawn ones for every seed; everything else of a seed is
        unchanged.
    """

    nodes: int = 8
    fan_in: int = 3
    depth: int = 3
    hours: float = 4.0
    reading_every_s: float = 120.0
    report_every_s: float = 600.0
    checkpoint_every_s: float = 400.0
    cap_s: float = 300.0
    dim: int = 0
    rank: int = 0
    oversample: int = 5
    features: FeatureMap | None = None
    learns_scaling: bool = False
    half_life_s: float | None = None
    faults: str | Faults = "swarm-1"
    given: tuple[tuple[str, float], ...] = ()

    def draw_faults(self, rng: np.random.Generator) -> Faults:
        """Return the rates of one seed."""
        faults = PRESETS[self.faults](rng) if isinstance(self.faults, str) else self.faults
        return replace(faults, **dict(self.given))

    @property
    def own_ranks(self) -> bool:
        """Whether clients run SAPCA, each with a rank of its own."""
        return self.faults == RANKS

    @property
    def floors(self) -> bool:
        """Whether rows wait for others before they are told."""
        return self.faults in FLOORS

    @property
    def noise(self) -> bool:
        """Whether the root's models carry noise."""
        return self.faults == NOISE

    @property
    def incidents(self) -> bool:
        """Whether something upstream makes clients raise alarms at the same time, now and then."""
        return self.faults == INCIDENTS

    @property
    def measures_first(self) -> bool:
        """Whether readings are learnt only after the fleet has settled scaling or gamma."""
        return self.learns_scaling or (self.features is not None and not self.features.settled)

    @property
    def settles_in_s(self) -> float:
        """Time after healing within which the root must count every reading (I3)."""
        # The last term is for messages without failures: some seconds a level.
        once = self.cap_s + 1.2 * self.report_every_s * self.depth + 2.0 * (self.depth + 1)
        # Moments have to come up first, then what was measured.
        return 2 * once if self.measures_first else once
