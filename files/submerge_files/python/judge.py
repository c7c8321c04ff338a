"""FrameJudge: rows of frames and of files, judged by one model as the commands judge them."""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from submerge.protocol.alarm_status import excess
from submerge.stats.statistic import SCORES
from submerge_client.datasets.source import refusal
from submerge_client.score_outputs.lines import limits_passed
from submerge_files.console.curves import Curves
from submerge_files.console.reading_options import as_fitted, condition_of
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
from submerge_files.python.frame_rows import PLACE, FrameRows, Source, frame_of, opened, paths_of
from submerge_files.reader import Recordings
from submerge_files.reader.formats.tables import names_of
from submerge_files.reader.options import ONLY_MACHINE
from submerge_files.score.model import AnotherLevel, Normal, level_of, of_machine, of_saved
from submerge_files.score.output import alarm_column
from submerge_files.workers import Workers

AT_ONCE = 1024  # rows that are scored together

OVER = ("over", "over_spe", "over_t2")


@dataclass(frozen=True, slots=True, repr=False)
class AlarmSpan:
    """An alarm on rows.

    began, peaked : As the frame has it, in UTC from files; else the row's number (in files from 1).
    ended : None if the rows ended first.
    worst : The highest score, over its limit.
    cause : Which score that was.
    channels : The channels to blame when it began, with their shares, the largest first.
    value, expected : Of these at the peak: what was read, and what the others say, in units.
    provisional : Whether a limit of few rows raised it.
    settled : Whether it ended because the readings keep to a new level.
    twins : The two channels of which either may be to blame, since each is told by the other.
    """

    began: Any
    peaked: Any
    ended: Any
    worst: float
    cause: str
    channels: Mapping[str, float]
    value: Mapping[str, float]
    expected: Mapping[str, float]
    provisional: bool
    settled: bool
    machine: str
    file: str = ""
    twins: tuple[str, ...] = ()

    def __repr__(self) -> str:
        until = "open at the end" if self.ended is None else f"to {self.ended}"
        blamed = ", ".join(f"{name} {share:.0%}" for name, share in self.channels.items())
        off = [
            f"; {name} {value:.4g}, expected {self.expected[name]:.4g}"
            for name, value in self.value.items()
        ]
        mark = ", provisional" if self.provisional else ""
        mark += f", {' or '.join(self.twins)}" if self.twins else ""
        return (
            f"<Alarm {self.began} {until}, {excess(self.worst)} times its limit{mark}:"
            f" {blamed or 'no channel'}{off[0] if off else ''}>"
        )


@dataclass(frozen=True, eq=False)
class FrameJudge:
    saved: SavedModel
    learnt: Learnt
    normal: Normal

    @classmethod
    def of(cls, saved: SavedModel) -> FrameJudge:
        learnt, normal = learnt_of(saved), of_saved(saved)
        if normal.channels < normal.schema.width or not saved.schema.linear:
            raise UsageError(
                f"expected a model of single rows without a kernel, got {saved.whence}:"
                " `submerge score` takes it"
            )
        return cls(saved, learnt, normal)

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
        part: bool = True,
    ) -> tuple[FrameRows, Condition | None]:
        """Return rows with the model's channels, and which of those in the states count."""
        if paths_of(rows) is not None:
            raise UsageError(
                "expected a frame or an array, got a path: read it first, or use `submerge score`"
            )
        if names is None and isinstance(rows, np.ndarray):
            names = self.channels
        frame = frame_of(rows, names)
        states, condition = self.chosen(when, names_of(frame))
        asked = self.headings, time, machine or ONLY_MACHINE, states
        return FrameRows(frame, *asked, part=part), condition

    def source(
        self,
        rows: Any,
        time: str | None,
        names: Sequence[str] | None,
        when: str | None,
        machine: str | None,
    ) -> tuple[Source, Condition | None]:
        """Return rows of a frame or of files, with the model's channels, and which count."""
        paths = paths_of(rows)
        if paths is not None:
            return self.recordings(paths, time, names, when)
        return self.frame(rows, time, names, when, machine, part=False)

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

    def level(self, machine: str | None) -> AnotherLevel | None:
        """Return what compares rows' level with a machine's; None if its own is not known."""
        if self.normal.schema.center == "own" and machine not in self.normal.states:
            return None
        return level_of(self.normal, of_machine(self.normal, machine))

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
        keys = ("row", "channel", "value", "expected", "difference", "share", "twin")
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
            order, shares = (each[0] for each in scores.top(len(self.channels)))
            twin = dict(zip(order.tolist(), order[1::-1].tolist(), strict=False))
            twin = twin if scores.twins(order[None])[0] else {}
            for i, share in zip(order.tolist(), shares, strict=True):
                each = (value[i], expected[i], value[i] - expected[i], share)
                other = self.channels[twin[i]] if i in twin else ""
                line = (rows.label(row), self.channels[i], *map(float, each), other)
                for key, entry in zip(keys, line, strict=True):
                    table[key].append(entry)
        return table

    def detected(
        self,
        source: ReadableRows,
        when: Condition | None,
        at_most: str,
        level: AnotherLevel | None,
        curves: Curves | None = None,
        workers: Workers | None = None,
    ) -> Detected:
        """Judge rows as `submerge detect` does."""
        check_limits(self.saved, self.learnt)
        request = DetectRequest(self.learnt, alarms_at(at_most), when, level=level)
        return detect(source, request, curves, workers=workers)

    def spans(self, detected: Detected) -> list[AlarmSpan]:
        """Return alarms as plain values, with the times of a frame if rows are of one."""
        source = detected.recordings

        def when(place: RowPlace) -> Any:
            if isinstance(source, FrameRows):
                return source.label(place.row - 1)
            if math.isnan(place.time):
                return place.row
            return datetime.datetime.fromtimestamp(place.time, datetime.UTC)

        return [
            AlarmSpan(
                when(found.began),
                when(found.peaked),
                None if found.ended is None else when(found.ended),
                found.alarm.worst,
                found.alarm.cause,
                dict(found.alarm.first),
                {each.channel: each.value for each in found.deviations},
                {each.channel: each.expected for each in found.deviations},
                found.alarm.provisional,
                found.alarm.settled,
                found.alarm.node,
                found.began.file,
                found.alarm.twins,
            )
            for found in detected.alarms
        ]
