"""TSB-AD-M (Liu & Paparrizos 2024): multivariate series of many sources, with labels.

Each file is a CSV with a column `Label`; its name ends in `_tr_N_1st_M.csv`: the first N rows are
learnt, and the first anomaly begins with row M.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from real_plants.case import Case, PlantSet, varying

NAME = re.compile(r"(.+)_tr_(\d+)_1st_\d+\.csv")


def load(folder: Path) -> Iterator[Case]:
    """Yield a case for each series."""
    for path in sorted(folder.glob("*.csv")):
        named = NAME.fullmatch(path.name)
        if named is None:
            continue
        with path.open() as file:
            names = file.readline().strip().split(",")
        table = np.genfromtxt(path, delimiter=",", skip_header=1)
        label, learnt = names.index("Label"), int(named[2])
        rows = np.delete(table, label, axis=1)
        kept, channels = varying(rows[:learnt], [n for n in names if n != "Label"])
        rows, labels = rows[:, kept], table[learnt:, label] > 0.5
        yield Case(named[1], channels, rows[:learnt], rows[learnt:], labels)


SET = PlantSet(
    "TSB-AD-M", "https://github.com/TheDatumOrg/TSB-AD", "tsb-ad-m", "*_tr_N_1st_M.csv", load
)
