"""Scores and explanations of the rows of a frame, as `submerge score` has them of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge import Array, UsageError
from submerge.condition import Condition
from submerge.headings import heading_of
from submerge.history.detection import RowPlace
from submerge.history.knowledge import Learnt
from submerge.judge.prepare import REASONS, in_units
from submerge_client.datasets.source import refusal
from submerge_client.score_outputs.lines import limits_passed
from submerge_files.console.reading_options import condition_of
from submerge_files.detect.run import (
    Detected,
    DetectRequest,
    ReadableRows,
    alarms_at,
    check_limits,
    detect,
    learnt_of,
)
from submerge_files.level import AnotherLevel
from submerge_files.model_file import SavedModel
from submerge_files.python.alarm import AlarmSpan, alarm_span, when_in
from submerge_files.python.frame_rows import FrameRows
from submerge_files.python.frames import PLACE, frame_of
from submerge_files.python.sources import Source, paths_of, source_of
from submerge_files.reader.selection import some
from submerge_files.score import model as score_model
from submerge_files.score.mean import Center, level_of
from submerge_files.score.rows import FileRows, FileScorer
from submerge_files.score.table import lags_of

AT_ONCE = 1024
"""Rows that are scored together."""

STATISTICS = ("distance", "spe", "t2")


@dataclass(frozen=True, eq=False)
class FrameScorer:
    """Scores rows of frames of one machine."""

    normal: score_model.Normal
    center: Center

    @classmethod
    def of(cls, saved: SavedModel, machine: str | None) -> FrameScorer:
        """Return what scores rows of a machine; None is the only one."""
        normal = score_model.of_saved(saved)
        states = {} if saved.learnt is None else dict(saved.learnt.monitors)
        own = normal.schema.center == "own"
        if own and (machine is None or machine not in states):
            got = "none" if machine is None else repr(machine)
            known = some(list(states)) or "none"
            raise refusal(
                "machine",
                expected="one that was learnt, as each has its own mean",
                got=got,
                hint=f"the model knows {known}",
            )
        state = states.get(machine) if machine is not None else None
        if state is None:
            state = next(iter(states.values()), None)
        if state is None:
            return cls(normal, Center())
        ready = state.own if own and state.own is not None and state.own.ready else None
        return cls(normal, Center(ready, state.residual_scale))

    def level(self) -> AnotherLevel:
        """Return what compares the level of rows with the one that was learnt."""
        return level_of(self.normal, self.center)

    def columns(self, rows: Array, when: Condition | None) -> dict[str, npt.NDArray[Any]]:
        """Return the scores of rows (n, channels): columns of n, NaN for rows without a score."""
        n, limits = len(rows), self.normal.limits
        names = (*STATISTICS, "over", "over_spe", "over_t2")
        found: dict[str, npt.NDArray[Any]] = {name: np.full(n, np.nan) for name in names}
        found["filled"] = np.zeros(n, dtype=np.int64)
        for scored in self.judged(rows, when):
            at = scored.first - 1 + scored.block.which
            scores = scored.scores
            for name in STATISTICS:
                values = getattr(scores, name)
                if values is not None:
                    found[name][at] = values
            found["filled"][at] = scored.filled
            if limits is not None:
                for name, passed in limits_passed(scores).items():
                    found[name][at] = passed
        return found

    def judged(self, rows: Array, when: Condition | None = None) -> Iterator[FileRows]:
        """Score rows (n, channels) in their units, some at a time."""
        scorer = FileScorer(self.normal, when, self.center)
        for start in range(0, len(rows), AT_ONCE):
            yield scorer.score(rows[start : start + AT_ONCE], start + 1)

    def explained(self, rows: FrameRows, which: Sequence[int]) -> dict[str, list[Any]]:
        """Return for each of `which` rows and channel what was read and what the others say."""
        names = self.normal.schema.names
        keys = ("row", "channel", "value", "expected", "difference", "share")
        table: dict[str, list[Any]] = {key: [] for key in keys}
        for row in which:
            (scored,) = self.judged(rows.values[[row]])
            if not len(scored.block):
                raise refusal(
                    f"{PLACE}, row {row}",
                    expected="a row that can be scored",
                    got=REASONS[int(scored.why[0])],
                    hint="ask for another row",
                )
            scores, value = scored.scores, rows.values[row]
            if scores.expected is None:
                raise UsageError("the model does not predict channels: learn it again with fit")
            expected = in_units(scored.block.rows - scores.left_out, self.normal.schema)[0]
            shares = scores.blame()[0]
            for i in np.argsort(-shares, kind="stable").tolist():
                each = (value[i], expected[i], value[i] - expected[i], shares[i])
                line = (rows.label(row), names[i], *map(float, each))
                for key, entry in zip(keys, line, strict=True):
                    table[key].append(entry)
        return table


@dataclass(frozen=True, eq=False)
class FrameJudge:
    """Judges rows of frames and files by one model."""

    saved: SavedModel
    learnt: Learnt

    @classmethod
    def of(cls, saved: SavedModel) -> FrameJudge:
        """Return what judges by a model."""
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

    def level_of(self, machine: str | None) -> AnotherLevel | None:
        """Return the level of a machine; None if each has its own, and this one's is not known."""
        if self.saved.schema.center == "own" and machine not in dict(self.learnt.monitors):
            return None
        return self.scorer(machine).level()

    def condition(self, when: str | None) -> Condition | None:
        """Return the state that rows have to be in."""
        return condition_of(when, self.channels)

    def alarms(
        self, source: ReadableRows, level: AnotherLevel | None, when: Condition | None, at_most: str
    ) -> list[AlarmSpan]:
        """Return the alarms on rows, as `submerge detect` finds them."""
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
