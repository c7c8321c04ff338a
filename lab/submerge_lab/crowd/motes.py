"""The readings of a crowd's nodes: each has six motes, a line of them through the generated room.

The room has nine such lines, each from the windows (`m1`) to the back wall (`m6`), with four
quantities for each mote. So all nodes have the same 24 channels with the same correlations. They
differ in their sensors' offsets, so the schema gives each node its own mean. The tenth node is in
another building, in other weather.

1. Time starts on a Monday morning, and again every four weeks: rows never end.
2. All nodes of one building read it at about the same time: it keeps two pages.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from submerge import Array, Channel, Scaling, Schema
from submerge_lab.plants.room import DAY, PAGE, UNITS, Room
from submerge_lab.plants.room_faults import QUANTITIES, Fault
from submerge_lab.plants.room_plan import COLUMNS, ROWS

NODES = COLUMNS
"""Nodes in one building."""

DAYS = 28.0
"""Whole weeks: a Monday follows the last Sunday."""

FIRST = round(7 / 24 * DAY)
"""At seven the sun is up and the room is empty: the first minutes have something to learn."""

OFFSET, SCALE = (21.0, 33.0, 200.0, 2.7), (1.0, 3.0, 300.0, 0.04)
"""By quantity. The noise of a sound sensor is about a thirtieth of the scale."""

RANK, OVERSAMPLE = 6, 5
"""Sun, weather, people, lamps and radiators; the sixth direction has half a percent."""

DRIFT_A_DAY = 24.0
"""Degrees a day (2787 rows) of the faulty mote."""

DRIFTING_ROW = 2
"""The mote that drifts, of a node's six; from zero."""


CHANNELS = tuple(
    Channel(f"m{row + 1}.{quantity}", unit)
    for row in range(ROWS)
    for quantity, unit in zip(QUANTITIES, UNITS, strict=True)
)
SCALING = Scaling(OFFSET * ROWS, SCALE * ROWS)
SCHEMA = Schema(CHANNELS, SCALING, center="own")
"""The schema of each node."""


class Building:
    """One generated room, for nodes that read it at about the same time.

    drifting : Places, 0 to 8, of nodes with one mote that drifts, up or down.
    """

    def __init__(self, seed: int, drifting: Sequence[int] = (), drift_from: int = 0) -> None:
        last = int(DAYS * DAY)
        faults = [
            Fault(
                mote=COLUMNS * DRIFTING_ROW + place + 1,
                quantity="temperature",
                kind="drift",
                start=min(FIRST + drift_from, last - 1),
                end=last,
                size=DRIFT_A_DAY * (-1) ** place,
            )
            for place in drifting
        ]
        self._room = Room(seed=seed, days=DAYS, faults=faults)
        self._lock = threading.Lock()
        self._pages: dict[int, Array] = {}

    def rows(self, start: int, stop: int, place: int) -> Array:
        """Return rows `start` to `stop` of one place, (stop - start, 24), NaN where silent."""
        motes = place + COLUMNS * np.arange(ROWS)
        columns = (4 * motes[:, None] + np.arange(4)).ravel()
        return np.stack([self._row(number)[columns] for number in range(start, stop)])

    def _row(self, number: int) -> Array:
        snapshot = (FIRST + number) % self._room.n_snapshots
        page, line = divmod(snapshot, PAGE)
        with self._lock:
            if page not in self._pages:
                # Two pages: some nodes still read the one before when the first reach the next.
                self._pages = dict(list(self._pages.items())[-1:])
                end = min((page + 1) * PAGE, self._room.n_snapshots)
                self._pages[page] = self._room.readings(page * PAGE, end)
            return np.asarray(self._pages[page][line])


def sections(group: str) -> str:
    """Return the group's sections of a configuration."""
    from submerge_client.config.schemas import SchemaConfig
    from submerge_client.config.tomlfile import schema_lines

    return (
        "# What `submerge lab crowd` reads: printed by `submerge lab crowd schema`.\n"
        f"[groups.{group}.summary]\nrank = {RANK}\noversample = {OVERSAMPLE}\n\n"
        f"[groups.{group}.schema]\n{schema_lines(SchemaConfig.of(SCHEMA))}"
    )
