"""Rows of the experiments: mote sets, or the generated room in their place, and Synth(alpha)."""

from pathlib import Path
from typing import NamedTuple

import measure
from papers.federated.follow import Array
from submerge_lab.plants.room import DAY, QUANTITIES, Room
from submerge_lab.replay.stacked import stacked

ALIGNED = 50
"""The scripts cut the rows to a multiple of this."""


class MoteSet(NamedTuple):
    """A set of the paper.

    file : its name in the SPIRIT project's Motes.zip
    quantity : of the generated room that stands in
    columns : of the set
    rank : that the paper starts with
    """

    file: str
    quantity: str
    columns: int
    rank: int


SETS = {
    "Light": MoteSet("q8calibLight", "light", 48, 10),
    "Volt": MoteSet("q8calibVolt", "voltage", 46, 10),
    "Temperature": MoteSet("q8calibHumTemp", "temperature", 56, 20),
    "Humidity": MoteSet("q8calibHumid", "humidity", 48, 10),
}
SNAPSHOTS = 7712


class Motes(NamedTuple):
    """Rows as the scripts prepare them: whole blocks, the mean of all of them removed.

    title : says so if they are generated
    """

    title: str
    rows: Array
    rank: int
    is_real: bool


def motes(name: str, *, quick: bool = False, folder: Path | None = None) -> Motes:
    """Return a mote set, or the generated room's readings of the same quantity."""
    chosen = SETS[name]
    path = found(name, measure.DATA / "motes" if folder is None else folder)
    rows = standing_in(chosen) if path is None else stacked([path]).rows
    rows = rows[: 1000 if quick else len(rows) // ALIGNED * ALIGNED]
    title = name if path is not None else f"{name}: the generated room instead"
    return Motes(title, rows - rows.mean(axis=0), chosen.rank, path is not None)


def found(name: str, folder: Path) -> Path | None:
    """Return the file of a set, plain or gzip, under its own name or ours; None without one."""
    stems = [SETS[name].file, name.lower()]
    paths = [folder / f"{stem}.dat{end}" for stem in stems for end in ("", ".gz")]
    return next((path for path in paths if path.exists()), None)


def standing_in(chosen: MoteSet) -> Array:
    """Return as many snapshots of the generated room, without faults and losses.

    It has 54 motes: a wider set is that wide.
    """
    room = Room(seed=0, days=(SNAPSHOTS + 1) / DAY, faults=())
    rows = room.sound(0, SNAPSHOTS)
    return rows[:, QUANTITIES.index(chosen.quantity) :: len(QUANTITIES)][:, : chosen.columns]


def described(sets: list[Motes]) -> str:
    """Return which rows are the paper's own and which are generated, in words."""
    real = [each.title for each in sets if each.is_real]
    absent = [each.title for each in sets if not each.is_real]
    parts = [f"{', '.join(real)}: the paper's own rows"] if real else []
    if absent:
        parts.append(f"{', '.join(absent)} (submerge's Room, seed 0, without faults and losses)")
    return "; ".join(parts)


def synth(alpha: float, *, n: int, dim: int, seed: int) -> Array:
    """Return Synth(alpha) of the paper's text (4.1, C.1), less its mean: eigenvalues i^-alpha.

    In the authors' scripts i^-alpha are singular values: their stream is Synth(2 alpha). They
    divide by sqrt(n - 1) too. SPIRIT alone depends on the scale, and begins with energies that such
    small rows do not reach in the whole stream: here they are not divided.
    """
    return measure.synth(n, dim, alpha=alpha, seed=seed)
