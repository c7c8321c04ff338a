"""FrameJudge: rows of frames and of files, judged by one model as the commands judge them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge import UsageError
from submerge.condition import Condition, InState, states_in
from submerge.headings import heading_of
from submerge.history.detection import ByModel, RowJudge, RowPlace
from submerge.history.knowledge import Learnt
from submerge.judge.prepare import OTHER_STATE, REASONS, in_units
from submerge.stats.statistic import SCORES
from submerge_client.datasets.source import refusal
from submerge_client.score_outputs.lines import limits_passed
from submerge_files.console.reading_options import as_fitted, condition_of
from submerge_files.detect.run import Detected, DetectRequest, alarms_at, check_limits, learnt_of
from submerge_files.level import AnotherLevel
from submerge_files.model_file import SavedModel
from submerge_files.python.alarm import AlarmSpan, alarm_span, when_in
from submerge_files.python.frame_rows import PLACE, FrameRows, frame_of
from submerge_files.python.sources import Source, opened, paths_of
from submerge_files.reader import Recordings
from submerge_files.reader.parts import ONLY_MACHINE
from submerge_files.score.mean import level_of, of_machine
from submerge_files.score.model import Normal, of_saved
from submerge_files.score.output import alarm_column
from submerge_files.workers import Workers

AT_ONCE = 1024  # rows that are scored together

OVER = ("over", "over_spe", "over_t2")


@dataclass(frozen=True, eq=False)
class FrameJudge:
    saved: SavedModel
    learnt: Learnt

    @classmethod
    def of(cls, saved: SavedModel) -> FrameJudge:
        learnt, normal = learnt_of(saved), of_saved(saved)
        if normal.channels < normal.schema.width or not saved.schema.linear:
            raise UsageError(
                f"expected a model of single rows without a kernel, got {saved.whence}:"
                " `submerge score` takes it"
            )
        return cls(saved, learnt)

    @cached_property
    def normal(self) -> Normal:
        return of_saved(self.saved)

    @property
    def channels(self) -> tuple[str, ...]:
        return self.saved.schema.names

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(map(heading_of, self.saved.schema.named))

    def frame(
        self,
        rows: Any,
        time: str | None,
        names: Sequence[str] | None,
        when: str | None = None,
        machine: str | None = None,
        *,
        part: bool = False,
    ) -> tuple[FrameRows, Condition | None]:
        """Return rows with the model's channels, and which of those in the states count."""
        if paths_of(rows) is not None:
            raise UsageError(
                "expected a frame or an array, got a path: read it first, or use `submerge score`"
            )
        if names is None and isinstance(rows, np.ndarray):
            names = self.channels
        frame = frame_of(rows, names)
        states, condition = self.chosen(when, frame.names)
        asked = self.headings, time, machine or ONLY_MACHINE, states
        return FrameRows(frame, *asked, part=part), condition

    def source(
        self,
        rows: Any,
        time: str | None,
        names: Sequence[str] | None,
        machine: str | None,
        when: str | None,
    ) -> tuple[Source, Condition | None]:
        """Return rows of a frame or of files, with the model's channels, and which count."""
        paths = paths_of(rows)
        if paths is not None:
            return self.recordings(paths, time, names, when)
        return self.frame(rows, time, names, when, machine)

    def recordings(
        self,
        paths: Sequence[Path],
        time: str | None,
        names: Sequence[str] | None = None,
        when: str | None = None,
        *,
        node_by: str = "",
        workers: Workers | None = None,
    ) -> tuple[Recordings, Condition | None]:
        """Return rows of files, with the model's channels, and which of them count."""
        read = partial(opened, paths, names, self.headings, time, node_by=node_by, workers=workers)
        found = read()
        states, condition = self.chosen(when, found.columns)
        found = read(states=states) if states else found
        return found.ordered(self.saved.schema.named), condition

    def chosen(
        self, when: str | None, columns: Collection[str]
    ) -> tuple[Sequence[InState], Condition | None]:
        """Return the states and the condition of rows that count: by default as of the fit."""
        text = self.learnt.when if when is None else when
        if not text:
            return (), None
        states, rest = states_in(text)
        if when is None and states:
            states, said = as_fitted(text, states, columns)
            if not states:
                warnings.warn(said, UserWarning, stacklevel=5)
        return states, condition_of(rest, self.channels)

    def level(self, machine: str | None) -> AnotherLevel:
        """Return what compares the level of rows with that of a machine."""
        return level_of(self.normal, of_machine(self.normal, machine))

    def level_of(self, machine: str | None) -> AnotherLevel | None:
        """Return the same; None if each has its own, and this one's is not known."""
        if self.normal.schema.center == "own" and machine not in self.normal.states:
            return None
        return self.level(machine)

    def scores(
        self, rows: FrameRows, machine: str | None, when: Condition | None
    ) -> dict[str, npt.NDArray[Any]]:
        """Return the scores of rows: columns (n,), NaN for rows without a score."""
        normal, n = self.normal, len(rows.values)
        each = normal.schema.center == "own"
        watch = normal.watch_of(normal.state(*([machine] if machine else [])) if each else None)
        judge = RowJudge(ByModel(of_machine(normal, machine), watch), when)
        names = *SCORES, *OVER, *map(alarm_column, normal.watched)
        found: dict[str, npt.NDArray[Any]] = {name: np.full(n, np.nan) for name in names}
        found["filled"] = np.zeros(n, dtype=np.int64)
        unscored = np.where(rows.only(np.ones(n, bool)), 0, OTHER_STATE).astype(np.int8)
        for start in range(0, n, AT_ONCE):
            why = unscored[start : start + AT_ONCE]
            part = rows.values[start : start + AT_ONCE][why == 0]
            judged = judge.judge(judge.prepare(part, why))
            at, scores = start + judged.block.which, judged.scores
            known: dict[str, npt.NDArray[Any]] = {name: getattr(scores, name) for name in SCORES}
            if normal.limits is not None:
                known |= limits_passed(scores)
            known |= {alarm_column(kind): values for kind, values in judged.over.items()}
            for name, values in (known | {"filled": judged.filled}).items():
                if values is not None:
                    found[name][at] = values
        return found

    def explained(
        self, rows: FrameRows, which: Sequence[int], machine: str | None
    ) -> dict[str, list[Any]]:
        """Return for each of `which` rows and channel what was read and what the others say."""
        judge = RowJudge(ByModel(of_machine(self.normal, machine)))
        keys = ("row", "channel", "value", "expected", "difference", "share")
        table: dict[str, list[Any]] = {key: [] for key in keys}
        for row in which:
            judged, value = judge.judge(judge.prepare(rows.values[[row]])), rows.values[row]
            if not len(judged.block):
                raise refusal(
                    f"{PLACE}, row {row}",
                    expected="a row that can be scored",
                    got=REASONS[int(judged.block.why[0])],
                    hint="ask for another row",
                )
            scores = judged.scores
            if scores.expected is None:
                raise UsageError("the model does not predict channels: learn it again with fit")
            expected = in_units(judged.block.rows - scores.left_out, self.normal.schema)[0]
            shares = scores.blame()[0]
            for i in np.argsort(-shares, kind="stable").tolist():
                each = (value[i], expected[i], value[i] - expected[i], shares[i])
                line = (rows.label(row), self.channels[i], *map(float, each))
                for key, entry in zip(keys, line, strict=True):
                    table[key].append(entry)
        return table

    def request(
        self, level: AnotherLevel | None, when: Condition | None, at_most: str
    ) -> DetectRequest:
        """Return what `submerge detect` would be asked for."""
        check_limits(self.saved, self.learnt)
        return DetectRequest(self.learnt, alarms_at(at_most), when, level=level)

    def spans(self, detected: Detected, source: object = None) -> list[AlarmSpan]:
        """Return alarms as plain values, with the times of a frame if rows are of one."""

        def when_of(place: RowPlace) -> Any:
            return source.label(place.row - 1) if isinstance(source, FrameRows) else when_in(place)

        return [alarm_span(found, when_of) for found in detected.alarms]
