"""SKAB (Katser & Kozitsin 2020): a water loop with eight sensors, a row a second.

Each file is one experiment: `datetime;sensors...;anomaly;changepoint`. Its first 400 rows are
normal, and are learnt, as in the set's own notebooks.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from real_plants.case import Case, PlantSet

LEARNT = 400


def load(folder: Path) -> Iterator[Case]:
    """Yield a case for each experiment."""
    for path in sorted(folder.glob("*/*.csv")):
        with path.open() as file:
            names = file.readline().strip().split(";")
        if "anomaly" not in names:
            continue  # the run without anomalies
        sensors = [
            i for i, name in enumerate(names) if name not in ("datetime", "anomaly", "changepoint")
        ]
        table = np.genfromtxt(path, delimiter=";", skip_header=1, usecols=sensors)
        labels = np.genfromtxt(path, delimiter=";", skip_header=1, usecols=names.index("anomaly"))
        channels = tuple(names[i] for i in sensors)
        name = f"{path.parent.name}/{path.stem}"
        yield Case(name, channels, table[:LEARNT], table[LEARNT:], labels[LEARNT:] > 0.5)


SET = PlantSet(
    "SKAB", "https://github.com/waico/SKAB", "skab", "valve1/*.csv, valve2/*.csv, other/*.csv", load
)
