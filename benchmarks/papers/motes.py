"""The paper's four sets of motes, or a quantity of the generated room in the place of each.

Files are those of SPIRIT's authors (Motes.zip): `q8calibLight.dat`, `q8calibVolt.dat`,
`q8calibHumid.dat` and `q8calibHumTemp.dat` in `$SUBMERGE_DATA/motes`, gzipped or not; `light.dat`
is another name of the first. As the paper's scripts do, rows are cut to a multiple of 50 and the
mean of all is removed.
"""

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

import measure
from submerge_fleet.plants.room import QUANTITIES, Room

MOTE_SETS = {
    "Light": ("light", ("q8calibLight.dat", "light.dat")),
    "Volt": ("voltage", ("q8calibVolt.dat",)),
    "Humidity": ("humidity", ("q8calibHumid.dat",)),
    "Temperature": ("temperature", ("q8calibHumTemp.dat",)),
}
"""For each set the room's quantity, and the names of its file."""

ALIGNED, ROWS, DAYS = 50, 7700, 3.0


class MoteSet(NamedTuple):
    """Rows (n, d), centered; what they are, for people."""

    name: str
    rows: measure.Array
    what: str


def mote_set(name: str, folder: Path | None = None) -> MoteSet:
    """Return a set by its name, from its file or from the room."""
    quantity, files = MOTE_SETS[name]
    at = measure.DATA / "motes" if folder is None else folder
    for file in (each for stem in files for each in (at / stem, at / f"{stem}.gz")):
        if file.exists():
            rows, what = _read(file), "the paper's own"
            break
    else:
        measure.say(f"motes: no {files[0]}: the room's {quantity} in its place (set SUBMERGE_DATA)")
        column = QUANTITIES.index(quantity)
        rows = Room(seed=0, days=DAYS, faults=()).sound(0, ROWS)[:, column :: len(QUANTITIES)]
        what = f"the generated room's {quantity} stands in"
    rows = rows[: len(rows) // ALIGNED * ALIGNED]
    n, dim = rows.shape
    return MoteSet(name, rows - rows.mean(axis=0), f"{what}, {n} x {dim}")


def _read(file: Path) -> measure.Array:
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        return np.loadtxt(lines)
