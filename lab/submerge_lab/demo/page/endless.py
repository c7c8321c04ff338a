"""EndlessRoom: the generated room without an end: its time runs to the last day, and then back.

Back, because nothing jumps where it turns: batteries, weather and faults come by again in the
opposite order. Faults have an end, so each is found, ends, and is found again.
"""

from __future__ import annotations

from submerge import Array
from submerge_lab.plants.room import Room

CHUNK = 48
"""Snapshots that are read together."""


class EndlessRoom:
    """Snapshots of a room, by how many came before."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self._first, self._rows = 0, room.readings(0, 0)

    def place(self, number: int) -> int:
        """Return which of the room's snapshots the one with this number is."""
        total = self.room.n_snapshots
        back, place = divmod(number, total)
        return total - 1 - place if back % 2 else place

    def row(self, number: int) -> Array:
        """Return a snapshot as it is read, (channels,), NaN where a mote was silent."""
        place = self.place(number)
        if not 0 <= place - self._first < len(self._rows):
            self._first = place - place % CHUNK
            last = min(self._first + CHUNK, self.room.n_snapshots)
            self._rows = self.room.readings(self._first, last)
        row: Array = self._rows[place - self._first]
        return row
