"""The Tennessee Eastman process (Downs & Vogel 1993), in the files of Russell, Chiang & Braatz.

`d00.dat` is the normal run that is learnt: 500 rows of 52 variables, stored with a variable a row.
`d01_te.dat` to `d21_te.dat` are 960 rows each; the fault begins with row 161.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from real_plants.case import Case, PlantSet

WIDTH, BEGINS = 52, 160
CHANNELS = tuple([f"xmeas{i}" for i in range(1, 42)] + [f"xmv{i}" for i in range(1, 12)])


def load(folder: Path) -> Iterator[Case]:
    """Yield a case for each fault."""
    normal = folder / "d00.dat"
    if not normal.exists():
        return
    history = np.loadtxt(normal)
    history = history.T if history.shape[0] == WIDTH else history
    for path in sorted(folder.glob("d*_te.dat")):
        if path.name == "d00_te.dat":
            continue
        rows = np.loadtxt(path)
        yield Case(path.stem[:3], CHANNELS, history, rows, np.arange(len(rows)) >= BEGINS)


SET = PlantSet(
    "Tennessee Eastman",
    "http://web.mit.edu/braatzgroup/links.html",
    "tep",
    "d00.dat and d01_te.dat to d21_te.dat",
    load,
)
