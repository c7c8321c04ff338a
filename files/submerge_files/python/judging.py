"""FrameJudge: what judges rows by a model, with the code of `submerge score` and `detect`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge import UsageError
from submerge.condition import Condition
from submerge.headings import heading_of
from submerge.history.detection import RowPlace
from submerge.history.knowledge import Learnt
from submerge_files.console.conditions import condition_of
from submerge_files.detect.level import AnotherLevel
from submerge_files.detect.run import (
    Detected,
    DetectRequest,
    ReadableRows,
    alarms_at,
    check_limits,
    detect,
    learnt_of,
)
from submerge_files.model_file import SavedModel
from submerge_files.python.alarm import AlarmSpan, alarm_span, when_in
from submerge_files.python.frame_rows import FrameRows
from submerge_files.python.frames import frame_of
from submerge_files.python.scoring import FrameScorer
from submerge_files.python.sources import Source, paths_of, source_of
from submerge_files.score.columns import lags_of


@dataclass(frozen=True, eq=False)
class FrameJudge:
    """Judges rows of frames and files by one model."""

    saved: SavedModel
    learnt: Learnt

    @classmethod
    def of(cls, saved: SavedModel) -> FrameJudge:
        """Return what judges by a model.

        Raises
        ------
        UsageError
            If it has no limits, no names of channels, or lags or a kernel.
        """
        learnt = learnt_of(saved)
        if lags_of(saved.schema.names) > 1 or not saved.schema.linear:
            raise UsageError(
                f"expected a model of single rows without a kernel, got {saved.whence}:"
                " `submerge score` takes it"
            )
        return cls(saved, learnt)

    @property
    def channels(self) -> tuple[str, ...]:
        """Their names, in the order of the model."""
        return self.saved.schema.names

    @property
    def headings(self) -> tuple[str, ...]:
        """Their columns, in the same order."""
        return tuple(map(heading_of, self.saved.schema.named))

    def frame(
        self,
        rows: Any,
        time: str | None,
        names: Sequence[str] | None,
        machine: str | None = None,
    ) -> FrameRows:
        """Return rows with the model's channels."""
        if paths_of(rows) is not None:
            raise UsageError(
                "expected a frame or an array, got a path: read it first, or use `submerge score`"
            )
        if names is None and isinstance(rows, np.ndarray):
            names = self.channels
        found = FrameRows(frame_of(rows, names), self.headings, time)
        if machine is not None:
            found.machine = machine
        return found

    def source(
        self, rows: Any, time: str | None, names: Sequence[str] | None, machine: str | None
    ) -> Source:
        """Return rows of a frame or of files, with the model's channels."""
        if paths_of(rows) is not None:
            return source_of(rows, names, self.headings, time)
        return self.frame(rows, time, names, machine)

    def scorer(self, machine: str | None) -> FrameScorer:
        """Return what scores rows of a machine."""
        return FrameScorer.of(self.saved, machine)

    def level(self, scorer: FrameScorer) -> AnotherLevel:
        """Return what compares the level of rows with the one that was learnt."""
        mean, deviation = scorer.mean, scorer.deviation
        if self.learnt.moments is not None:
            # A channel that stood still has no deviation; its scale is 1.
            deviation = np.where(self.learnt.moments.variance > 0, deviation, 0.0)
        return AnotherLevel(self.channels, mean, deviation)

    def level_of(self, machine: str | None) -> AnotherLevel | None:
        """Return the same for a machine; None if each has its own, and this one's is not known."""
        if self.saved.schema.center == "own" and machine not in dict(self.learnt.monitors):
            return None
        return self.level(self.scorer(machine))

    def condition(self, when: str | None) -> Condition | None:
        """Return the state that rows have to be in."""
        return condition_of(when, self.channels)

    def alarms(
        self, source: ReadableRows, level: AnotherLevel | None, when: Condition | None, at_most: str
    ) -> list[AlarmSpan]:
        """Return the alarms on rows, as `submerge detect` finds them.

        level : takes the rows that are judged
        """
        return self.spans(detect(self.request(source, level, when, at_most)), source)

    def request(
        self,
        rows: ReadableRows,
        level: AnotherLevel | None,
        when: Condition | None,
        at_most: str,
    ) -> DetectRequest:
        """Return what `submerge detect` would be asked for."""
        check_limits(self.saved, self.learnt)
        return DetectRequest(
            rows, self.saved.model, self.learnt, alarms_at(at_most), when, level=level
        )

    def spans(self, detected: Detected, source: object = None) -> list[AlarmSpan]:
        """Return alarms as plain values, with the times of a frame if rows are of one."""

        def when_of(place: RowPlace) -> Any:
            return source.label(place.row - 1) if isinstance(source, FrameRows) else when_in(place)

        return [alarm_span(found, when_of) for found in detected.alarms]
