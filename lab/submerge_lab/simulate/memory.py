"""What a simulation of many clients needs, said before it begins."""

from __future__ import annotations

import os

import click
import numpy as np

from submerge import UsageError
from submerge_files.console.units import size_of
from submerge_lab.simulator import Plan
from submerge_lab.simulator.large import needed_bytes, refuse_unsupported

MANY = 5_000
"""Clients from which a line recommends --large."""


def announce(plan: Plan, seed: int, *, jobs: int, quiet: bool, large: bool) -> None:
    """Say what a large simulation needs, or recommend one; refuse what the machine has not got.

    Raises
    ------
    UsageError
        If the plan has what a large fleet does not stand in for, or needs more memory than there
        is.
    """
    if not large:
        if plan.dim and plan.nodes >= MANY and not quiet:
            click.echo(f"{plan.nodes:,} clients: --large takes less memory and time", err=True)
        return
    # A seed's rates are the first that it draws.
    refuse_unsupported(plan, plan.draw_faults(np.random.Generator(np.random.PCG64(seed))))
    needed, there = jobs * needed_bytes(plan), machine_bytes()
    if there and needed > there:
        raise UsageError(
            f"expected a machine with {size_of(needed)} of memory, got {size_of(there)}:"
            " lower --nodes, --rank, --hours or --jobs"
        )
    if not quiet:
        click.echo(f"large: {plan.nodes:,} clients need about {size_of(needed)}", err=True)


def machine_bytes() -> int:
    """Return the memory of this machine, in bytes; 0 where it is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return 0
