"""ScoreOutput: a place for scores; several of them as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from submerge import Schema
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Scored


class ScoreOutput(Protocol):
    """Takes the scores of rows."""

    @property
    def problem(self) -> str:
        """What keeps scores from their place, in words for a status; "" if nothing does."""

    def write(
        self,
        scored: Scored,
        schema: Schema,
        *,
        first: int,
        at: float,
        alarms: tuple[Alarm, ...] = (),
    ) -> None:
        """Take the scores of one block of rows, as in `ScoreLines.write`."""

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

    def write(
        self,
        scored: Scored,
        schema: Schema,
        *,
        first: int,
        at: float,
        alarms: tuple[Alarm, ...] = (),
    ) -> None:
        """As in `ScoreOutput`."""
        for each in self._outputs:
            each.write(scored, schema, first=first, at=at, alarms=alarms)

    def close(self) -> None:
        """As in `ScoreOutput`."""
        for each in self._outputs:
            each.close()
