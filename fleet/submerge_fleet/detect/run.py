"""Files and a model in, alarms out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from submerge import UsageError
from submerge.client.alarm_limits import AlarmLimits
from submerge.condition import Condition
from submerge.headings import called, heading_of
from submerge.history.detection import FoundAlarm, HistoryDetector
from submerge.history.learnt import Learnt
from submerge.history.periods import Periods
from submerge.history.recorded import Recorded
from submerge.history.settings import SOON
from submerge.history.time_spans import LeftOut, TimeSpan
from submerge.protocol.messages import Model
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Schema
from submerge.stats.block_maxima import WITH_FACTORS
from submerge_client.config.alarms import AlarmsConfig, LearnConfig
from submerge_client.datasets.table import counted
from submerge_fleet.console.units import in_words
from submerge_fleet.detect.curves import Curves
from submerge_fleet.files import ReadingOptions, open_recordings
from submerge_fleet.operate import model_file
from submerge_fleet.operate.model_file import SavedModel


class ReadableRows(Protocol):
    """Rows that can be read from the start: `Recordings`, or what stands in for them."""

    @property
    def headings(self) -> tuple[str, ...]:
        """Of the channels' columns."""

    @property
    def notes(self) -> tuple[str, ...]:
        """As in `Recordings`."""

    def rows(self) -> Iterator[Recorded]:
        """Read all rows."""


PACES = 2.0
"""Factor between two paces of rows from which they are not the same."""


@dataclass(frozen=True)
class DetectRequest:
    """What to judge, and by what.

    recordings : the rows, with the model's channels
    without : spans of time whose rows are not judged
    """

    recordings: ReadableRows
    model: Model
    learnt: Learnt
    alarms: AlarmSettings
    when: Condition | None = None
    without: tuple[TimeSpan, ...] = ()


@dataclass
class Detected:
    """What came of it.

    Attributes
    ----------
    channels : tuple of str
    alarms : list of FoundAlarm
        In the order in which they began.
    rows, judged : int
        Rows that were read; those that could be judged.
    stated_rows : float
        As in `HistoryDetector`.
    machines : int
    units : mapping of str to str
        Of channels, by name.
    """

    channels: tuple[str, ...]
    period_s: float
    alarms: list[FoundAlarm] = field(default_factory=list)
    rows: int = 0
    judged: int = 0
    stated_rows: float = 0.0
    machines: int = 1
    notes: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> list[tuple[str, str]]:
        """Lines for a person: names and values."""
        left_out = self.rows - self.judged
        rows = f"{self.judged:,} judged" + (f", {left_out:,} not" if left_out else "")
        lines = [("rows", rows), ("alarms", f"{len(self.alarms):,}")]
        if self.stated_rows:
            rate = f"about 1 false alarm in {self.stated_rows:,.0f} rows"
            lines.append(("limits", f"provisional: {rate}; a longer history makes it rarer"))
        return lines


def learnt_of(saved: SavedModel) -> Learnt:
    """Return what a model file has for alarms.

    Raises
    ------
    UsageError
        If it has no channels' names or no limits.
    """
    path, schema, model = saved.whence, saved.schema, saved.model
    if saved.learnt is None or model.maxima is None:
        raise UsageError(
            f"{path} has no alarm limits: expected a model of `submerge fit`, or one that"
            " `submerge model save` wrote once its fleet was armed"
        )
    if isinstance(schema.channels, int):
        raise UsageError(f"{path} has no names of channels: fit it from files with headings")
    row_s = saved.learnt.period_s or 1.0
    known = AlarmLimits.of(model.maxima, SOON, WITH_FACTORS, row_s=row_s).known
    if schema.center == "own" and not known:
        raise UsageError(
            f"{path} has no alarm limits yet: expected a history of more than a day of each machine"
        )
    return saved.learnt


def request_of(
    files: Sequence[str], path: Path, reading: ReadingOptions, at_most: str, when: str | None
) -> DetectRequest:
    """Return the request of a command line.

    Raises
    ------
    UsageError
        If the model has no channels' names or no limits, or the files have other columns.
    """
    saved = model_file.read(path)
    schema, model, learnt = saved.schema, saved.model, learnt_of(saved)
    if not reading.columns:
        reading = replace(reading, columns=tuple(map(heading_of, schema.named)))
    recordings = open_recordings([Path(file) for file in files], reading)
    names = called(schema.named, recordings.headings)
    lacking = [name for name in schema.names if name not in names]
    if lacking:
        raise UsageError(
            f"expected the channels of {path}, got none for {lacking[0]}:"
            " leave --columns out to take them by name"
        )
    condition = None if when is None else Condition.parse(when, schema.names)
    return DetectRequest(recordings, model, learnt, alarms_at(at_most), condition)


def detect(
    request: DetectRequest,
    curves: Curves | None = None,
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> Detected:
    """Judge all rows; `curves` takes what a picture needs."""
    recordings, learnt = request.recordings, request.learnt
    schema = Schema.parse(request.model.schema)
    units = {channel.name: channel.unit for channel in schema.named}
    found = Detected(schema.names, learnt.period_s, notes=recordings.notes, units=units)
    detectors: dict[str, HistoryDetector] = {}
    periods = Periods()
    names = called(schema.named, recordings.headings)
    order = [names.index(name) for name in schema.names]
    for recorded in _counted(recordings, found, request.without, advance):
        if recorded.machine not in detectors:
            detectors[recorded.machine] = _detector(request, recorded.machine)
        detector = detectors[recorded.machine]
        if recorded.times is not None:
            periods.add(recorded.machine, recorded.times)
        for judged in detector.add(replace(recorded, rows=recorded.rows[:, order])):
            found.judged += len(judged.block)
            if curves is not None:
                curves.add(judged)
        found.stated_rows = max(found.stated_rows, detector.stated_rows)
    if not found.judged:
        raise UsageError(f"expected rows that can be judged, got {counted(found.rows, 'row')}")
    found.notes = (*recordings.notes, *_other_pace(learnt.period_s, periods.typical))
    # The picture of rows without times counts rows, whatever the model was learnt from.
    found.period_s = learnt.period_s if periods.counts else 0.0
    found.machines = len(detectors)
    found.alarms = [alarm for each in detectors.values() for alarm in each.found.values()]
    return found


def _other_pace(learnt_s: float, period_s: float) -> tuple[str, ...]:
    """Return a note if rows come at another pace than those that were learnt."""
    if not learnt_s or (period_s and 1 / PACES < period_s / learnt_s < PACES):
        return ()
    came = f"a row comes every {in_words(period_s)}" if period_s else "rows have no times"
    learnt = f"and the model has learnt one every {in_words(learnt_s)}"
    return (
        f"{came}, {learnt}: each row is judged as one of those, and false alarms come so often",
    )


def _counted(
    recordings: ReadableRows,
    found: Detected,
    without: tuple[TimeSpan, ...],
    advance: Callable[[int], None],
) -> Iterator[Recorded]:
    """Read all rows, and yield those that are to be judged."""
    left_out = LeftOut(without)
    for recorded in recordings.rows():
        found.rows += len(recorded.rows)
        yield from left_out.rest(recorded)
        advance(len(recorded.rows))


def _detector(request: DetectRequest, machine: str) -> HistoryDetector:
    """Return the detector of a machine, with what its history says of it."""
    learnt = request.learnt
    states = dict(learnt.monitors)
    state = states.get(machine)
    if state is None and Schema.parse(request.model.schema).center != "own":
        # One machine's files may be named in another way than its history's.
        state = next(iter(states.values()), None)
    return HistoryDetector(
        request.model, state, learnt.period_s, request.alarms, request.when, machine
    )


def alarms_at(at_most: str) -> AlarmSettings:
    """Return the settings of alarms for a rate such as "1 false per week"."""
    settings = AlarmsConfig(at_most=at_most).settings(LearnConfig(), 0.0)
    if settings is None:
        raise UsageError("--at-most off raises no alarms: give a rate")
    return replace(settings, settle_s=SOON.settle_s)


def lasted(found: FoundAlarm) -> str:
    """Return for how long an alarm was open."""
    if found.ended is None:
        return "open at the end"
    seconds = found.ended.time - found.began.time
    if math.isfinite(seconds):
        return in_words(seconds)
    if found.ended.file != found.began.file:
        return f"into {found.ended.file}"
    return counted(found.ended.row - found.began.row, "row")
