"""Nodes that only speak: honest reports of subspaces that were learnt beforehand.

A load generator has to say more than an aggregator can hear. So streams are learnt before
the clock starts, and kept at each of their stages; every speaker walks one of them, and what
it sends is encoded as it goes. It keeps no state that a real client keeps, and repeats
nothing: a report that is lost stays lost, and is counted.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge import Channel, Schema
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts, Incarnation, Join, Report, ScoreSketches, Stamp
from submerge.protocol.score_trail import MINUTE_S, MINUTES, ScoreTrail
from submerge.protocol.summaries import Subspaces
from submerge.stats.quantile_sketch import SketchTally
from submerge_proto.wire import codec
from wires import GROUP, ROOT

NOBODY = Incarnation(0, 0)
LEVELS = bytes(100 + at for at in range(MINUTES))
"""How close each node came to an alarm in the last minutes."""

STREAMS, STAGES, ROWS = 32, 64, 60
"""Different streams, stages of each, and rows between two stages: one report's worth."""


@dataclass(frozen=True)
class Stage:
    """What a stream has come to."""

    summary: object
    scores: ScoreSketches
    rows: int


def schema_of(dim: int) -> Schema:
    """Return the schema of so many channels."""
    return Schema(tuple(Channel(f"c{i}", "") for i in range(dim)))


@functools.cache
def streams(dim: int, rank: int, *, seed: int = 1) -> list[list[Stage]]:
    """Learn streams of one fleet: the same few directions, each with its own strengths."""
    rng = np.random.default_rng(seed)
    schema, summaries = schema_of(dim), Subspaces(rank)
    directions = np.linalg.qr(rng.standard_normal((dim, rank)))[0]
    tracks = []
    for _ in range(STREAMS):
        strengths = 4.0 / np.arange(1, rank + 1) * rng.uniform(0.5, 1.5, rank)
        learner, spe, t2, track = summaries.learner(schema), SketchTally(), SketchTally(), []
        for stage in range(1, STAGES + 1):
            known = rng.standard_normal((ROWS, rank)) * strengths @ directions.T
            noise = 0.1 * rng.standard_normal((ROWS, dim))
            learner.learn(known + noise, known + noise)
            spe.add((noise**2).sum(axis=1))
            t2.add(rng.chisquare(rank, ROWS))
            scores = ScoreSketches(spe.sketch, t2.sketch)
            track.append(Stage(learner.summary(), scores, stage * ROWS))
        tracks.append(track)
    return tracks


@dataclass
class Speaker:
    """One node: it joins, then says more and more."""

    name: str
    track: list[Stage]
    fingerprint: str
    incarnation: Incarnation
    seq: int = 0
    parent: Incarnation = NOBODY

    def join(self) -> bytes:
        """Return what it asks with."""
        return codec.encode(Join(self._stamp(), b"", (), b""))

    def report(self, now: Now, version: int) -> bytes:
        """Return its next report, or its last again, under a new number, where the track ends."""
        stage = self.track[min(self.seq, len(self.track) - 1)]
        self.seq += 1
        report = Report(
            stamp=self._stamp(),
            final=False,
            pinned=self.parent,
            fence=b"",
            fingerprint=self.fingerprint,
            summary=stage.summary,
            moments=None,
            counts=Counts(learnt=stage.rows),
            as_of=now.wall,
            synced=True,
            version=version,
            lifetime=stage.rows,
            scores=stage.scores,
            trail=ScoreTrail(int(now.wall // MINUTE_S), LEVELS),
        )
        return codec.encode(report)

    def _stamp(self) -> Stamp:
        return Stamp(self.name, GROUP, self.incarnation, self.seq)


def speakers(count: int, dim: int, rank: int, *, since_ms: int) -> list[Speaker]:
    """Return nodes that have said nothing yet."""
    tracks, fingerprint = streams(dim, rank), schema_of(dim).fingerprint
    return [
        Speaker(f"n{i:05}", tracks[i % STREAMS], fingerprint, Incarnation(since_ms, i))
        for i in range(count)
    ]


def root_config(folder: Path, listen: str, *, dim: int, rank: int, model_every_s: float) -> str:
    """Return the configuration of the root that they speak to, its store in a folder."""
    schema = schema_of(dim)
    channels = ", ".join(f'"{channel.name}"' for channel in schema.channels)
    return f"""\
node = "{ROOT}"
store = "{folder}/root.db"
[listen]
# One connection speaks for many nodes here, and each of a thousand keeps a stream open.
most_per_s = 1e6
max_unanswered_bytes = 268435456
{listen}
[advanced]
burst = 1000000
[timing]
model_every_s = {model_every_s}
[groups.{GROUP}.schema]
channels = [{channels}]
center = "{schema.center}"
[groups.{GROUP}.summary]
rank = {rank}
"""
