"""A fleet of any size in one process, in virtual time, with everything that can go wrong.

    outcome = run(Plan(nodes=8, depth=3, faults="swarm-1"), seed=7)

The machines are the ones that ship. The same seed gives the same run, to the byte. Nothing here
opens a socket or a file, or waits.
"""

from submerge_lab.simulator.faults import PRESETS, SHARES, Faults
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.plan import Plan
from submerge_lab.simulator.run import SeedOutcome, run

__all__ = ["PRESETS", "SHARES", "Faults", "Plan", "SeedOutcome", "SimulatedFleet", "run"]
