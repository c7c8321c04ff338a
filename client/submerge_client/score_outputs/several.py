"""ScoreOutput: a place for scores; several of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from submerge import Schema
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Scored


class ScoredBlock(NamedTuple):
    """One block of rows with their scores.

    schema : The settled one, whose scaling the rows have.
    first : The number of the sensor's rows before this block.
    at : Wall time.
    alarms : The newest first.
    """

    scored: Scored
    schema: Schema
    first: int
    at: float
    alarms: tuple[Alarm, ...] = ()


class ScoreOutput(Protocol):
    """Takes the scores of rows."""

    @property
    def problem(self) -> str:
        """What keeps scores from their place, in words for a status; "" if nothing does."""

    def write(self, block: ScoredBlock) -> None:
        """Take the scores of one block of rows."""

    def close(self) -> None:
        """Write what waits, within some seconds; no more scores come."""


class ScoreOutputs:
    """Several places: each gets all scores."""

    def __init__(self, outputs: Sequence[ScoreOutput]) -> None:
        self._outputs = tuple(outputs)

    @property
    def problem(self) -> str:
        """As in `ScoreOutput`."""
        return "; ".join(filter(None, (each.problem for each in self._outputs)))

    def write(self, block: ScoredBlock) -> None:
        """As in `ScoreOutput`."""
        for each in self._outputs:
            each.write(block)

    def close(self) -> None:
        """As in `ScoreOutput`."""
        for each in self._outputs:
            each.close()
