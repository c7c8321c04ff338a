"""Files and a model in, alarms out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from submerge import UsageError
from submerge.condition import Condition
from submerge.headings import called, heading_of
from submerge.history.detection import FoundAlarm, HistoryDetector, RowPlace, watching
from submerge.history.knowledge import Learnt
from submerge.history.layout import Periods
from submerge.history.recording import LeftOut, Recorded, TimeSpan
from submerge.history.settings import SOON
from submerge.judge.prepare import none_left
from submerge.protocol.messages import Model
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Schema
from submerge_client.config.alarms import AlarmsConfig, LearnConfig
from submerge_client.datasets.table import counted
from submerge_files import model_file
from submerge_files.console.reading_options import condition_of
from submerge_files.console.units import figure, in_words, moment, name_text, printable
from submerge_files.detect.curves import Curves
from submerge_files.level import AnotherLevel
from submerge_files.model_file import SavedModel
from submerge_files.reader import ReadingOptions, open_recordings
from submerge_files.reader.formats.remote_path import path_of
from submerge_files.reader.parts import ONLY_MACHINE, Digests, digests_here
from submerge_files.reader.selection import some
from submerge_files.score.mean import Center, level_of
from submerge_files.score.model import of_saved

PACES = 2.0
"""Factor between two paces of rows from which they are not the same."""


def other_pace(learnt_s: float, period_s: float) -> Iterator[str]:
    """Yield a note if rows come at another pace than the history's; 0 s is without times."""
    if not learnt_s or (period_s and 1 / PACES < period_s / learnt_s < PACES):
        return
    came = f"a row comes every {in_words(period_s)}" if period_s else "rows have no times"
    learnt = f"and the model has learnt one every {in_words(learnt_s)}"
    yield f"{came}, {learnt}: each row is judged as one of those, and false alarms come so often"


def unknown_machines(machines: Collection[str], known: Collection[str]) -> Iterator[str]:
    """Yield a note if machines that have a mean of their own were not learnt."""
    others = [name for name in machines if name not in known]
    if others == [ONLY_MACHINE] and known:
        yield (
            f"the model is of several machines ({some(known)}), and nothing says of which these"
            " rows are: they are measured from their own mean; name machines as in fit (--node-by)"
        )
    elif others and known:
        yield (
            f"{some(others)} is no machine that was learnt ({some(known)}), and is measured from"
            " the mean of its own rows: name machines as in fit (--node-by)"
        )


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


@dataclass(frozen=True)
class DetectRequest:
    """What to judge, and by what."""

    recordings: ReadableRows
    model: Model
    learnt: Learnt
    alarms: AlarmSettings
    when: Condition | None = None
    without: tuple[TimeSpan, ...] = ()
    level: AnotherLevel | None = None


@dataclass
class Detected:
    """Alarms in the order in which they began, and the rows they are of.

    rows, judged : Rows that were read; those that could be judged.
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
    """Return what a model file has for alarms."""
    path, schema, model = saved.whence, saved.schema, saved.model
    if saved.learnt is not None and saved.learnt.moments is not None and model.maxima is None:
        raise _without_limits(saved)
    if saved.learnt is None or model.maxima is None:
        raise UsageError(
            f"{path} has no alarm limits: expected a model of `submerge fit`, or one that"
            " `submerge model save` wrote once its fleet was armed"
        )
    if isinstance(schema.channels, int):
        raise UsageError(f"{path} has no names of channels: fit it from files with headings")
    return saved.learnt


def check_limits(saved: SavedModel, learnt: Learnt) -> None:
    """Refuse a model without limits: rows that are judged give none, for a fault raises them."""
    if not watching(learnt).limits.known:
        raise _without_limits(saved)


def _without_limits(saved: SavedModel) -> UsageError:
    if saved.schema.center == "own":
        return UsageError(
            f"{saved.whence} has no alarm limits yet: expected a history of more than a day of each"
            " machine; fit again if an earlier version made the model"
        )
    return UsageError(
        f"{saved.whence} has no alarm limits, since its history is of"
        f" {saved.model.counts.learnt:,} rows: fit more of them, or fit them again if an earlier"
        " version made the model"
    )


def request_of(
    files: Sequence[str],
    path: Path,
    reading: ReadingOptions,
    at_most: str,
    when: str | None,
    digests: Digests = digests_here,
) -> DetectRequest:
    """Return the request of a command line."""
    saved = model_file.read(path)
    schema, model, learnt = saved.schema, saved.model, learnt_of(saved)
    check_limits(saved, learnt)
    if not reading.columns:
        columns = tuple(map(heading_of, schema.named))
        reading = replace(reading, columns=columns, columns_are="a channel of the model")
    recordings = open_recordings(list(map(path_of, files)), reading, digests)
    names = called(schema.named, recordings.headings)
    lacking = [name for name in schema.names if name not in names]
    if lacking:
        raise UsageError(
            f"expected the channels of {path}, got none for {lacking[0]}:"
            " leave --columns and --skip out to take them by name"
        )
    condition = condition_of(when, schema.names, recordings.columns)
    if condition is not None:
        order, holds = [names.index(name) for name in schema.names], condition.holds
        recordings.note_only(lambda rows: holds(rows[:, order]))
    level = None
    if schema.center != "own":
        level = level_of(of_saved(saved), Center())
    alarms = alarms_at(at_most)
    return DetectRequest(recordings, model, learnt, alarms, condition, level=level)


def detect(
    request: DetectRequest,
    curves: Curves | None = None,
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> Detected:
    """Judge all rows; `curves` takes what a picture needs."""
    return finished(request, judged_rows(request, curves, advance=advance))


@dataclass
class JudgedFiles:
    """Judged rows, before they are put together; `periods`: empty without times."""

    alarms: dict[str, list[FoundAlarm]] = field(default_factory=dict)
    rows: int = 0
    judged: int = 0
    stated_rows: float = 0.0
    left_out: Counter[str] = field(default_factory=Counter)
    periods: Periods = field(default_factory=Periods)


def judged_rows(
    request: DetectRequest,
    curves: Curves | None = None,
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> JudgedFiles:
    """Judge all rows, machine by machine: one has nothing to do with another."""
    recordings, found = request.recordings, JudgedFiles()
    schema = Schema.parse(request.model.schema)
    detectors: dict[str, HistoryDetector] = {}
    names = called(schema.named, recordings.headings)
    order = [names.index(name) for name in schema.names]
    for recorded in _counted(recordings, found, request.without, advance):
        if recorded.machine not in detectors:
            detectors[recorded.machine] = _detector(request, recorded.machine)
        detector = detectors[recorded.machine]
        if recorded.times is not None:
            found.periods.add(recorded.machine, recorded.times)
        recorded = replace(recorded, rows=recorded.rows[:, order])
        if request.level is not None:
            holds = ... if request.when is None else request.when.holds(recorded.rows)
            request.level.add(recorded.rows[holds])
        for judged in detector.add(recorded):
            found.judged += len(judged.block)
            if curves is not None:
                curves.add(judged)
        found.stated_rows = max(found.stated_rows, detector.stated_rows)
    found.left_out = sum((each.left_out for each in detectors.values()), Counter[str]())
    found.alarms = {name: list(each.found.values()) for name, each in detectors.items()}
    return found


def finished(request: DetectRequest, seen: JudgedFiles) -> Detected:
    """Put together what came of all rows; raises UsageError if none could be judged."""
    if not seen.judged:
        none = none_left(seen.rows, seen.left_out, request.when)
        raise UsageError(f"expected rows that can be judged, got {none}")
    schema = Schema.parse(request.model.schema)
    return Detected(
        schema.names,
        # The picture of rows without times counts rows, whatever the model was learnt from.
        request.learnt.period_s if seen.periods.counts else 0.0,
        [alarm for each in seen.alarms.values() for alarm in each],
        seen.rows,
        seen.judged,
        seen.stated_rows,
        len(seen.alarms),
        (*request.recordings.notes, *_notes(request, seen.alarms, seen.periods.typical)),
        {channel.name: channel.unit for channel in schema.named},
    )


def _notes(request: DetectRequest, machines: Collection[str], period_s: float) -> Iterator[str]:
    """Yield sentences on rows that are unlike those of the history."""
    yield from other_pace(request.learnt.period_s, period_s)
    if Schema.parse(request.model.schema).center == "own":
        yield from unknown_machines(machines, dict(request.learnt.monitors))
    if request.level is not None and request.level.said:
        yield request.level.said


def _counted(
    recordings: ReadableRows,
    found: JudgedFiles,
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
    if state is None:
        # One machine's files may be named in another way than its history's.
        state = next(iter(states.values()), None)
        if state is not None and Schema.parse(request.model.schema).center == "own":
            state = replace(state, own=None, run_lengths=None)  # its limits alone
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


def as_object(found: FoundAlarm) -> dict[str, Any]:
    """Return an alarm as JSON holds it; times are seconds since 1970, None without times."""
    alarm = found.alarm
    return {
        "machine": alarm.node,
        "began": _place(found.began),
        "peaked": _place(found.peaked),
        "ended": None if found.ended is None else _place(found.ended),
        "worst": alarm.worst,
        "cause": alarm.cause,
        "first": dict(alarm.first),
        "top": dict(alarm.top),
        "deviations": {
            each.channel: {"value": each.value, "expected": each.expected}
            for each in found.deviations
        },
        "settled": alarm.settled,
        "provisional": alarm.provisional,
    }


def as_text(found: FoundAlarm, detection: Detected) -> str:
    """Return the lines of an alarm."""
    alarm = found.alarm
    when = _when(found.began)
    if detection.machines > 1:
        when = f"{name_text(alarm.node)} {when}"
    marks = "".join(
        f", {mark}"
        for mark, holds in (("provisional", alarm.provisional), ("settled", alarm.settled))
        if holds
    )
    channels = ", ".join(f"{name_text(name)} {share:.0%}" for name, share in alarm.first)
    about = f"{lasted(found)}, {alarm.worst:.3g} times its limit"
    lines = [f"{when}  {about} ({alarm.cause}){marks}: {channels or 'no channel'}"]
    for each in found.deviations[:1]:
        unit = detection.units.get(each.channel, "")
        value = f"{figure(each.value)} {name_text(unit)}".rstrip()
        lines.append(
            f"    {name_text(each.channel)} {value}, where the others say {figure(each.expected)}"
        )
    return "\n".join(lines)


def _place(place: RowPlace) -> dict[str, Any]:
    time = None if math.isnan(place.time) else place.time
    return {"time": time, "file": place.file, "row": place.row}


def _when(place: RowPlace) -> str:
    if math.isnan(place.time):
        return f"{printable(place.file)} row {place.row}"
    return moment(place.time)
