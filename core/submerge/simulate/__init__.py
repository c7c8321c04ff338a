"""A fleet of any size in one process, in virtual time, with everything that can go wrong.

    outcome = run(Plan(nodes=8, depth=3, faults="swarm-1"), seed=7)

The machines are the ones that ship. The same seed gives the same run, to the byte. Nothing here
opens a socket or a file, or waits.
"""

from submerge.simulate.faults import PRESETS, SHARES, Faults
from submerge.simulate.fleet import SimulatedFleet
from submerge.simulate.plan import Plan
from submerge.simulate.run import SeedOutcome, run

__all__ = ["PRESETS", "SHARES", "Faults", "Plan", "SeedOutcome", "SimulatedFleet", "run"]
