"""The commands of this package: words -> (module, what it does, what to install for it)."""

import click

LAB = "submerge-lab"

COMMANDS = {
    "demo": ("submerge_lab.demo.command", "Show the whole system on a generated room.", LAB),
    "replay": ("submerge_lab.replay.command", "Stream files as if they were live.", LAB),
    "lab": ("submerge_lab.commands", "Simulate, measure and plan fleets.", LAB),
    "lab crowd": (
        "submerge_lab.crowd.command",
        "Run simulated nodes, each a client of its own.",
        LAB,
    ),
    "lab simulate": (
        "submerge_lab.simulate.command",
        "Run a fleet in virtual time, with faults.",
        LAB,
    ),
    "lab simulate-jobs": (
        "submerge_lab.simulate.jobs",
        "Run jobs in virtual time, with faults.",
        LAB,
    ),
    "lab plan": ("submerge_lab.plan.command", "Say what a fleet of any size would need.", LAB),
}


@click.group("lab", epilog="Example: submerge lab simulate --nodes 20 --hours 24 --loss 5%")
def command() -> None:
    """Simulate fleets, run many simulated nodes, measure, and plan."""
