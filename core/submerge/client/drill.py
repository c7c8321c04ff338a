"""A drill at a client: which faults its own detector would find (docs/decisions/0039)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.drill.detection import spans
from submerge.drill.drill import ChannelAnswer, Drill, packed
from submerge.drill.response import NodeScorer
from submerge.errors import UsageError
from submerge.protocol.machine import Note, Now
from submerge.protocol.messages import DrillReport, Stamp
from submerge.protocol.names import RandomSource
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_length import block_rows
from submerge.stats.statistic import By

MOST_WITHIN = 128
"""Most rows in which a fault has to be found: half of the rows, so that there are many spans."""

PAUSE_S = 0.05  # between two slices of a drill, for everything else that the client does
NAMED = 8  # blind channels that a log line names


class DrillTask(NamedTuple):
    number: int  # of a desired state
    fingerprint: str
    model: NodeScorer
    rows: Array  # (n, width), scaled, gaps as NaN
    limits: Mapping[By, float]
    settings: AlarmSettings
    often_per_s: float = 0.0  # false alarms by these limits


@dataclass(frozen=True, slots=True)
class DrillAnswer:
    """What a drill found out on so many spans of its rows, each `within` rows long."""

    task: DrillTask
    rows: int
    spans: int
    within: int
    channels: tuple[ChannelAnswer, ...]

    def report(self, stamp: Stamp, now: Now) -> DrillReport:
        task = self.task
        return DrillReport(
            stamp,
            stamp.node,
            task.fingerprint,
            now.wall,
            task.number,
            self.rows,
            self.spans,
            self.within,
            task.often_per_s,
            packed(self.channels),
        )


class ClientDrill:
    """A drill under way, slice by slice; `answer` is None as well if it failed (`why_not`)."""

    def __init__(self, task: DrillTask, rng: RandomSource, now: Now) -> None:
        self.due_at, self.why_not = now.steady, ""
        self.answer: DrillAnswer | None = None
        self._slices = self._run(task, rng)

    def step(self, now: Now) -> None:
        """Do one slice, if it is due."""
        if now.steady < self.due_at:
            return
        try:
            next(self._slices)
            self.due_at = now.steady + PAUSE_S
        except StopIteration:
            self.due_at = math.inf
        except UsageError as error:
            self.due_at, self.why_not = math.inf, str(error)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""
        return self.due_at == math.inf

    def note(self, names: tuple[str, ...]) -> Note:
        """Return what the log says of it; `names` of the channels."""
        if self.answer is None:
            return Note("drill not done", {"why": self.why_not})
        answer = self.answer
        blind = [name for name, each in zip(names, answer.channels, strict=False) if each.blind]
        missed = sum(math.isinf(each.bias) for each in answer.channels)
        facts = {"channels": len(answer.channels), "rows": answer.rows, "within": answer.within}
        return Note(
            "drill done", {**facts, "blind": len(blind), "missed": missed, "which": blind[:NAMED]}
        )

    def _run(self, task: DrillTask, rng: RandomSource) -> Iterator[None]:
        settings = task.settings
        within = max(
            min(block_rows(0.0, settings.period_s) or MOST_WITHIN, MOST_WITHIN), 2 * settings.of
        )
        tried = spans(len(task.rows), within)
        drill = Drill(
            task.model,
            task.rows,
            task.limits,
            after=settings.after,
            of=settings.of,
            tried=tried,
            noise=normals(rng, 2 * len(tried.starts) * tried.rows),
        )
        yield
        answers: list[ChannelAnswer] = []
        for each in drill.answers():
            if each is not None:
                answers.append(each)
            yield
        bare = task._replace(rows=task.rows[:0])
        self.answer = DrillAnswer(
            bare, len(task.rows), len(drill.spans.starts), tried.rows, tuple(answers)
        )


def normals(rng: RandomSource, n: int) -> Array:
    """Return n standard normal numbers from random bytes (Box and Muller)."""
    half = (n + 1) // 2
    uniform = (np.frombuffer(rng.bytes(8 * half), dtype="<u4").astype(np.float64) + 0.5) / 2**32
    radius, angle = np.sqrt(-2 * np.log(uniform[:half])), 2 * np.pi * uniform[half:]
    return np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))[:n]
