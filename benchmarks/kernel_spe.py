"""What the kernel's SPE sees and the linear one does not, and the other way about.

Two kinds of fault, made from sound snapshots of the generated room (docs/room.md), ten days of
it, channels standardized:

- mixed: the mean of two snapshots that are farther apart than half of all pairs. It keeps to
  every direction that readings vary along, and lies where no reading ever does.
- swapped: one channel takes its value from another snapshot.

Figures are areas under ROC curves: how often a spoilt row scores above a sound one. *Larger* is
`anomaly_score` of the score lines: the larger of both, 0 at the middle of recent rows and 1 at
their 99 % limit. *Cost* is how far it is behind the better of the two, *exact* the same with
quantiles that no sketch has rounded.
"""

import sys
from pathlib import Path

import numpy as np

import measure
from report import Table, command

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from submerge_lab.plants.room import QUANTITIES
from support.off_manifold import Area, Areas, Setting, measured

TWO = ("light", "temperature")
CHOSEN = "light, temperature; r = 32, gamma x 8, D = 512"
"""The best of all settings in rooms 0 to 9; rooms that had no part in that say what it is worth."""

SETTINGS = {
    "light, temperature": Setting(TWO),
    "light, temperature; D = 512": Setting(TWO, features=512),
    "light, temperature; gamma x 4": Setting(TWO, times=4),
    "light, temperature; r = 32": Setting(TWO, rank=32),
    "light, temperature; r = 32, gamma x 4": Setting(TWO, rank=32, times=4),
    "light, temperature; r = 32, gamma x 8": Setting(TWO, rank=32, times=8),
    CHOSEN: Setting(TWO, rank=32, times=8, features=512),
    "light": Setting(("light",)),
    "temperature": Setting(("temperature",)),
    "temperature, humidity": Setting(("temperature", "humidity")),
    "all four": Setting(QUANTITIES),
    "all four; r = 32": Setting(QUANTITIES, rank=32),
    "all four; r = 32, gamma x 4": Setting(QUANTITIES, rank=32, times=4),
    "all four; r = 32, gamma x 8": Setting(QUANTITIES, rank=32, times=8),
}
BLIND, SEES, COST = 0.3, 0.85, 0.03
"""What is held against: of mixed rows the linear SPE finds less than this, the kernel's at least
this; and the larger of both costs at most so much, for either kind of fault."""


def room(quick: bool) -> list[Table]:
    """Measure every setting on a few rooms."""
    seeds = range(2 if quick else 10)
    found = {
        name: [measured(setting, seed=seed) for seed in seeds]
        for name, setting in measure.progress(SETTINGS.items(), "kernel SPE")
    }
    rooms = range(20, 22 if quick else 40)
    fresh = [
        measured(SETTINGS[CHOSEN], seed=seed) for seed in measure.progress(rooms, "fresh rooms")
    ]
    return [
        _table("Mixed", [(name, [areas.mix for areas in each]) for name, each in found.items()]),
        _table("Swapped", [(name, [areas.swap for areas in each]) for name, each in found.items()]),
        _held("Rooms in which it holds", found),
        _held("Rooms 20 to 39 (two of them, with --quick)", {CHOSEN: fresh}),
    ]


def _table(title: str, found: list[tuple[str, list[Area]]]) -> Table:
    rows = []
    for name, areas in found:
        linear, kernel, larger, exact = np.array(areas).T
        better = np.maximum(linear, kernel)
        rows.append(
            (
                name,
                *(linear.mean(), linear.max(), kernel.mean(), kernel.min(), larger.mean()),
                *((better - larger).max(), (better - exact).max()),
            )
        )
    return Table(
        title,
        {
            "what is learnt": "",
            "linear": ".3f",
            "its most": ".3f",
            "kernel": ".3f",
            "its least": ".3f",
            "larger": ".3f",
            "its most cost": ".3f",
            "exact": ".3f",
        },
        rows,
        "Means over rooms 0 to 9 (two of them, with --quick), and the worst. r = 16, D = 1024 and"
        " the gamma that a fleet settles on, 1 / (2 tr C), where nothing else is said; as many"
        " directions of the readings as of their features.",
    )


def _held(title: str, found: dict[str, list[Areas]]) -> Table:
    rows = []
    for name, each in found.items():
        held = np.array(
            [
                (
                    areas.mix.linear < BLIND,
                    areas.mix.kernel >= SEES,
                    areas.mix.cost <= COST,
                    areas.swap.cost <= COST,
                )
                for areas in each
            ]
        )
        rows.append((name, *held.sum(axis=0), int(held.all(axis=1).sum()), len(each)))
    return Table(
        title,
        {
            "what is learnt": "",
            f"linear < {BLIND:g}": "d",
            f"kernel >= {SEES:g}": "d",
            f"cost <= {COST:g}, mixed": "d",
            f"cost <= {COST:g}, swapped": "d",
            "all of it": "d",
            "of": "d",
        },
        rows,
    )


if __name__ == "__main__":
    command(room)
