"""C-MAPSS (Saxena, Goebel, Simon & Eklund 2008): turbofan engines that run until they fail.

`train_FD001.txt` to `train_FD004.txt`: unit, cycle, three settings, 21 sensors. There is no label
of a fault's beginning. Here the first 30 % of an engine's cycles are normal and are learnt, its
last 30 cycles count as faulty, and the 30 cycles before those are left out, for a fault grows.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from real_plants.case import Case, PlantSet, varying

NORMAL, FAULTY, BETWEEN = 0.3, 30, 30
CHANNELS = tuple([f"setting{i}" for i in range(1, 4)] + [f"sensor{i}" for i in range(1, 22)])


def load(folder: Path) -> Iterator[Case]:
    """Yield a case for each engine."""
    for path in sorted(folder.glob("train_FD00?.txt")):
        table = np.loadtxt(path)
        for unit in np.unique(table[:, 0]):
            rows = table[table[:, 0] == unit][:, 2:26]
            learnt, end = round(NORMAL * len(rows)), len(rows) - FAULTY
            at = np.arange(learnt, len(rows))
            judged = at[(at < end - BETWEEN) | (at >= end)]
            kept, channels = varying(rows[:learnt], CHANNELS)
            rows = rows[:, kept]
            name = f"{path.stem[6:]}/{unit:.0f}"
            yield Case(name, channels, rows[:learnt], rows[judged], judged >= end)


SET = PlantSet(
    "C-MAPSS",
    "https://data.nasa.gov (Turbofan Engine Degradation Simulation)",
    "cmapss",
    "train_FD001.txt to train_FD004.txt",
    load,
)
