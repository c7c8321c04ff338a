"""Rounds of a Flower federation without Flower: who loses what is up to the test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from submerge.protocol.machine import Now
from submerge_bridges.flower.carrying import Parcel, parcel_of, values_of
from submerge_bridges.flower.group import FlowerGroup
from submerge_bridges.flower.keeping import StateRecords
from submerge_bridges.flower.life import ClientLife
from submerge_bridges.flower.root import FlowerRoot

Fate = Literal["well", "no instruction", "dies", "reply lost", "state lost", "carried out twice"]
"""What becomes of an instruction: it is carried out; never arrives; its process dies before
anything is stored or sent; its reply is lost; its reply arrives, and its state is not stored; the
same instruction is carried out again by the state that it left."""

FATES: tuple[Fate, ...] = get_args(Fate)


def row(client: int, number: int, width: int) -> np.ndarray:
    """One reading of a client: always the same, and no other's."""
    return np.random.default_rng((client, number)).standard_normal(width)


class FlowerRounds:
    """Some clients, their contexts, and a root."""

    def __init__(self, group: FlowerGroup, clients: int, folder: Path, per_round: int = 7) -> None:
        self.group, self.per_round = group, per_round
        self.contexts: dict[int, dict[str, object]] = {client: {} for client in range(clients)}
        self.wall = 1.7e9
        self._store = folder / "root.db"
        self.root = FlowerRoot(group, self._store, self.now)

    def now(self) -> Now:
        """Return clocks that go on with each look."""
        self.wall += 0.01
        return Now(self.wall - 1.7e9, self.wall)

    def restart_root(self) -> None:
        """End the root, and start another from its store."""
        self.root.close()
        self.root = FlowerRoot(self.group, self._store, self.now)

    def run(self, fates: Mapping[int, Fate], *, reads: bool = True) -> None:
        """Run one round."""
        replies: dict[str, Parcel] = {}
        for client in self.contexts:
            fate = fates.get(client, "well")
            instruction = self.root.instruction(self.name(client))
            if fate == "no instruction":
                continue
            for _ in range(1 + (fate == "carried out twice")):
                reply, state = self.live(client, instruction, reads=reads)
                if fate not in ("dies", "state lost"):
                    self.contexts[client] = state
                if fate not in ("dies", "reply lost"):
                    sent = replies.get(self.name(client), ())
                    replies[self.name(client)] = (*sent, *reply)
        self.root.take(replies)

    def live(
        self, client: int, instruction: Parcel, *, reads: bool
    ) -> tuple[Parcel, dict[str, object]]:
        """Carry out an instruction; return the reply, and the state that is to be stored."""
        records = StateRecords(self.contexts[client])
        life = ClientLife(self.group, self.name(client), records, self.now)
        life.begin(parcel_of(values_of(instruction)))
        if reads and not life.is_behind:
            life.read(self.rows(client, records.taken, self.per_round))
        return parcel_of(values_of(life.end())), records.values

    def rows(self, client: int, first: int, n: int) -> np.ndarray:
        """Return rows (n, channels) of a client."""
        rows = [row(client, number, self.group.width) for number in range(first, first + n)]
        return np.array(rows).reshape(n, self.group.width)

    def taken(self) -> np.ndarray:
        """Return every row that counts: those that clients know that they have taken."""
        return np.vstack(
            [
                self.rows(client, 0, StateRecords(state).taken)
                for client, state in self.contexts.items()
            ]
        )

    @staticmethod
    def name(client: int) -> str:
        """Return the name of a client."""
        return f"flower-{client}"
