"""Fleets of 100,000 clients in one process: the machines that ship, whose readings are numbers.

    outcome = run_large(Plan(nodes=100_000, fan_in=100, dim=64, rank=8), seed=7)

A client of a simulated fleet keeps matrices that follow from its readings, and its readings follow
from the seed. Here it keeps the numbers of its readings alone, and makes a matrix when a report is
sent. All decisions are those of `ClientNode`. A sample of clients runs a second time, with all its
matrices, and has to send the same (`sample`).

It does not stand in for alarms, kernels, scalings that are learnt, or channels that come and go:
`support` refuses these.
"""

from submerge_lab.simulator.large.run import run_large
from submerge_lab.simulator.large.support import needed_bytes, refuse_unsupported

__all__ = ["needed_bytes", "refuse_unsupported", "run_large"]
