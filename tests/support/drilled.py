"""A client's ingest that has read rows of six channels, with a model whose limits are known."""

from __future__ import annotations

import math

import numpy as np

from submerge import Channel, Schema
from submerge.client.incarnation import ClientIncarnation
from submerge.client.ingest import Ingest
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts, Incarnation, Model
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty

DIM, ALONE = 6, 3
SCHEMA = Schema(tuple(Channel(f"x{i}") for i in range(DIM)), center="own")
SUMMARIES = Subspaces(2, oversample=1)
SETTINGS = ClientSettings("n", "g", "root", alarms=AlarmSettings(period_s=600.0))
CAUSES = np.random.default_rng(0).standard_normal((2, DIM))
CAUSES[:, ALONE] = 0
EPOCH = 1.7e9


def draw(n: int, seed: int) -> np.ndarray:
    """Rows of six channels with two causes; one channel has none of them."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 0.3 + 0.7 * (np.arange(DIM) == ALONE), (n, DIM))
    return rng.standard_normal((n, 2)) @ CAUSES + noise


def a_model() -> Model:
    """With limits of alarms, all hours alike."""
    learner, seen = SUMMARIES.learner(SCHEMA), draw(3000, 1)
    learner.learn(seen, seen)
    held, none = learner.summary(), empty(FINE)
    hours = QuantileSketch.of(np.full(5000, 15.0), FINE)
    maxima = BlockMaxima(none, none, none, longest=5000, ewma=hours)
    return Model(
        *("g", 1, SCHEMA.canonical, SCHEMA.fingerprint, SUMMARIES.directions(held), None),
        *(Counts(3000), 1, (1.0, 1.0, 1.0)),
        created=EPOCH,
        expires=EPOCH + 1e9,
        maxima=maxima,
        factors=SUMMARIES.factors(held),
    )


class SixChannels:
    """The ingest of a client that has read some rows of ten minutes."""

    def __init__(self, rows: int = 400) -> None:
        self.steady = 0.0
        self.intake = Ingest(SUMMARIES, np.random.default_rng(2), SETTINGS)
        self.current = ClientIncarnation(
            Incarnation(1, 1), SCHEMA, SUMMARIES, self.now, learns=True, raw=False, lost=0
        )
        self.model = a_model()
        for first in range(0, rows, 20):
            self.steady += 20 * 600.0
            part = draw(rows, 3)[first : first + 20]
            self.intake.read(part, self.current, self.model, self.now)

    @property
    def now(self) -> Now:
        return Now(self.steady, EPOCH + self.steady)

    def ask(self, number: int) -> list[str]:
        """Let an operator ask for a drill; return what the log says."""
        desired = DesiredState("n", number, drill=number)
        return [note.what for note in self.intake.apply([desired], self.current, self.now)]

    def drill(self) -> tuple[list, int]:
        """Let ticks pass until the drill is done; return its notes, and how many there were."""
        notes, ticks = [], 0
        while self.intake.drill_due_at < math.inf:
            self.steady = max(self.steady, self.intake.drill_due_at)
            notes += self.intake.drill_on(self.current, self.now)
            ticks += 1
        return notes, ticks
