"""Files and a model in, alarms out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from submerge import UsageError
from submerge.condition import Condition
from submerge.headings import heading_of
from submerge.history.detection import FoundAlarm, HistoryDetector, RowPlace, watching
from submerge.history.knowledge import Learnt
from submerge.history.layout import Periods
from submerge.history.recording import LeftOut, Recorded, TimeSpan
from submerge.history.settings import SOON
from submerge.judge.prepare import none_left
from submerge.protocol.alarm_status import excess
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Schema
from submerge.stats.statistic import KINDS, averaged
from submerge_client.config.alarms import AlarmsConfig, LearnConfig
from submerge_client.datasets.table import counted
from submerge_files import model_file
from submerge_files.console.curves import Curves
from submerge_files.console.reading_options import as_fitted, condition_of, in_states
from submerge_files.console.units import figure, in_words, moment, name_text, printable
from submerge_files.model_file import SavedModel
from submerge_files.reader import ReadingOptions, Recordings, open_recordings
from submerge_files.reader.formats.remote_path import path_of
from submerge_files.reader.options import ONLY_MACHINE
from submerge_files.reader.selection import some
from submerge_files.score.model import AnotherLevel, level_of, of_saved
from submerge_files.workers import Advance, Task, Workers

PACES = 2.0  # factor between two paces of rows from which they are not the same

OLDER = "an earlier version made the model: alarms are by single channels alone; fit it again"


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
    """Rows of a model's channels, in their order, that can be read from the start."""

    @property
    def notes(self) -> tuple[str, ...]:
        """As in `Recordings`."""

    def rows(self) -> Iterator[Recorded]:
        """Read all rows."""


@dataclass(frozen=True)
class DetectRequest:
    learnt: Learnt
    alarms: AlarmSettings
    when: Condition | None = None
    without: tuple[TimeSpan, ...] = ()
    level: AnotherLevel | None = None

    @cached_property
    def schema(self) -> Schema:
        return Schema.parse(self.learnt.model.schema)


@dataclass
class Judged:
    """What came of rows that were judged; those of other machines may be judged apart."""

    alarms: dict[str, list[FoundAlarm]] = field(default_factory=dict)
    rows: int = 0  # that were read
    judged: int = 0  # that could be judged
    stated_rows: float = 0.0  # in which limits are exceeded once, if they are provisional
    left_out: Counter[str] = field(default_factory=Counter)  # rows that could not, by reason
    periods: Periods = field(default_factory=Periods)
    level: AnotherLevel | None = None

    def take(self, other: Judged) -> None:
        """Put what came of another machine beside the others."""
        self.alarms |= other.alarms
        self.rows += other.rows
        self.judged += other.judged
        self.stated_rows = max(self.stated_rows, other.stated_rows)
        self.left_out.update(other.left_out)
        self.periods.follow(other.periods)
        if self.level is not None and other.level is not None:
            self.level.take(other.level.parts)


@dataclass(frozen=True)
class Detected:
    """What came of rows; raises UsageError if none could be judged."""

    recordings: ReadableRows
    request: DetectRequest
    seen: Judged

    def __post_init__(self) -> None:
        if not self.seen.judged:
            none = none_left(self.seen.rows, self.seen.left_out, self.request.when)
            raise UsageError(f"expected rows that can be judged, got {none}")

    @property
    def alarms(self) -> list[FoundAlarm]:
        """In the order in which they began, machine by machine."""
        return [alarm for each in self.seen.alarms.values() for alarm in each]

    @property
    def machines(self) -> int:
        """How many the rows are of."""
        return len(self.seen.alarms)

    @property
    def period_s(self) -> float:
        """Time that a row stands for, by the model; 0 if these rows have no times."""
        return self.request.learnt.period_s if self.seen.periods.counts else 0.0

    @property
    def units(self) -> Mapping[str, str]:
        return {channel.name: channel.unit for channel in self.request.schema.named}

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was read, and on rows that are unlike those of the history."""
        request, seen = self.request, self.seen
        found = [*self.recordings.notes]
        found += other_pace(request.learnt.period_s, seen.periods.typical)
        if request.schema.center == "own":
            found += unknown_machines(seen.alarms, dict(request.learnt.monitors))
        if seen.level is not None and seen.level.said:
            found.append(seen.level.said)
        maxima = request.learnt.model.maxima
        if maxima is not None and maxima.distance.n and not maxima.of(averaged(KINDS)[0]).n:
            found.append(OLDER)
        return tuple(found)

    @property
    def summary(self) -> list[tuple[str, str]]:
        """Lines for a person: names and values."""
        seen, left_out = self.seen, self.seen.rows - self.seen.judged
        rows = f"{seen.judged:,} judged" + (f", {left_out:,} not" if left_out else "")
        lines = [("rows", rows), ("alarms", f"{len(self.alarms):,}")]
        if seen.stated_rows:
            rate = f"about 1 false alarm in {seen.stated_rows:,.0f} rows"
            lines.append(("limits", f"provisional: {rate}; a longer history makes it rarer"))
        return lines


def learnt_of(saved: SavedModel) -> Learnt:
    """Return what a model file has for alarms."""
    path, schema, model = saved.whence, saved.schema, saved.model
    # Runs of less than a day have no maxima of blocks, and limits by their highest scores.
    of_files = saved.learnt is not None and saved.learnt.moments is not None
    if saved.learnt is None or (model.maxima is None and not of_files):
        raise UsageError(
            f"{path} has no alarm limits: expected a model of `submerge fit`, or one that"
            " `submerge model save` wrote once its fleet was armed"
        )
    if isinstance(schema.channels, int):
        raise UsageError(f"{path} has no names of channels: fit it from files with headings")
    return saved.learnt


def check_limits(saved: SavedModel, learnt: Learnt) -> None:
    """Refuse a model without limits: rows that are judged give none, for a fault raises them."""
    if watching(learnt).limits.known:
        return
    if saved.schema.center == "own":
        raise UsageError(
            f"{saved.whence} has no alarm limits yet: expected machines of a day or more, or many"
            " shorter ones; fit again if an earlier version made the model"
        )
    raise UsageError(
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
    workers: Workers | None = None,
) -> tuple[Recordings, DetectRequest]:
    """Return what a command line asks for: rows, and by what they are judged."""
    saved = model_file.read(path)
    schema, learnt = saved.schema, learnt_of(saved)
    check_limits(saved, learnt)
    if not reading.columns:
        columns = tuple(map(heading_of, schema.named))
        reading = replace(reading, columns=columns, columns_are="a channel of the model")
    paths, remembered = list(map(path_of, files)), when is None and learnt.when
    reading, when = in_states(reading, learnt.when or None if when is None else when)
    recordings = open_recordings(paths, replace(reading, states=()), workers)
    said = ""
    if remembered:
        states, said = as_fitted(learnt.when, reading.states, recordings.columns)
        reading = replace(reading, states=states)
    if reading.states:
        recordings = open_recordings(paths, reading, workers)
    if said:
        recordings.say(said)
    recordings = recordings.ordered(schema.named, path)
    condition = condition_of(when, schema.names, recordings.columns)
    if condition is not None:
        recordings.note_only(condition.holds)
    level = None
    if schema.center != "own":
        normal = of_saved(saved)
        level = level_of(normal, normal.scorer)
    return recordings, DetectRequest(learnt, alarms_at(at_most), condition, level=level)


def detect(
    recordings: ReadableRows,
    request: DetectRequest,
    curves: Curves | None = None,
    *,
    workers: Workers | None = None,
    advance: Advance = lambda _: None,
) -> Detected:
    """Judge all rows, here or by workers; `curves` takes what a picture needs."""
    if workers is None or not isinstance(recordings, Recordings):
        seen = judged_rows(request, recordings, curves, advance=advance)
    else:
        seen = judged_apart(request, recordings, workers, advance)
    return Detected(recordings, request, seen)


def judged_apart(
    request: DetectRequest, recordings: Recordings, workers: Workers, advance: Advance
) -> Judged:
    """Judge the rows of each machine by one worker: alarms follow from all rows before."""
    recordings.check_apart()
    machines = groupby(recordings.parts, lambda part: part.machine)
    tasks = [Task((recordings.of([*parts]),)) for _, parts in machines]
    fresh = None if request.level is None else request.level.fresh()
    found = Judged(level=request.level)
    for one in workers.map(partial(judged_rows, replace(request, level=fresh)), tasks):
        found.take(one)
        advance(one.rows)
    return found


def judged_rows(
    request: DetectRequest,
    recordings: ReadableRows,
    curves: Curves | None = None,
    *,
    advance: Advance = lambda _: None,
) -> Judged:
    """Judge all rows, machine by machine: one has nothing to do with another."""
    level, found = request.level, Judged(level=request.level)
    detectors: dict[str, HistoryDetector] = {}
    left_out = LeftOut(request.without)
    for every in recordings.rows():
        found.rows += len(every.rows)
        for recorded in left_out.rest(every):
            if recorded.machine not in detectors:
                detectors[recorded.machine] = _detector(request, recorded.machine)
            detector = detectors[recorded.machine]
            if recorded.times is not None:
                found.periods.add(recorded.machine, recorded.times)
            if level is not None:
                rows = recorded.rows
                level.add(rows[... if request.when is None else request.when.holds(rows)])
            for judged in detector.add(recorded):
                found.judged += len(judged.block)
                if curves is not None:
                    curves.add(judged)
        advance(len(every.rows))
    for name, detector in detectors.items():
        found.stated_rows = max(found.stated_rows, detector.stated_rows)
        found.left_out.update(detector.left_out)
        found.alarms[name] = list(detector.found.values())
    return found


def _detector(request: DetectRequest, machine: str) -> HistoryDetector:
    learnt = request.learnt
    states = dict(learnt.monitors)
    state = states.get(machine)
    if state is None:
        # One machine's files may be named in another way than its history's.
        state = next(iter(states.values()), None)
        if state is not None and request.schema.center == "own":
            state = replace(state, own=None, run_lengths=None)  # its limits alone
    return HistoryDetector(
        learnt.model, state, learnt.period_s, request.alarms, request.when, machine
    )


def alarms_at(at_most: str, period_s: float = 0.0) -> AlarmSettings:
    """Return the settings of alarms for a rate such as "1 false per week"."""
    settings = AlarmsConfig(at_most=at_most).settings(LearnConfig(), period_s)
    if settings is None:
        raise UsageError("--at-most off raises no alarms: give a rate")
    return replace(settings, settle_s=SOON.settle_s)


def lasted(found: FoundAlarm) -> str:
    if found.ended is None:
        return "open at the end"
    seconds = found.ended.time - found.began.time
    if seconds > 0:
        return in_words(seconds)
    if found.ended.file != found.began.file:
        return f"into {found.ended.file}"
    rows = counted(found.ended.row - found.began.row, "row")
    return f"{rows} of one time" if seconds == 0 else rows


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
        "twins": list(alarm.twins),
    }


def as_text(found: FoundAlarm, detection: Detected) -> str:
    alarm = found.alarm
    began, timeless = found.began, math.isnan(found.began.time)
    when = f"{printable(began.file)} row {began.row}" if timeless else moment(began.time)
    if detection.machines > 1:
        when = f"{name_text(alarm.node)} {when}"
    marks = "".join(f", {mark}" for mark in ("provisional", "settled") if getattr(alarm, mark))
    channels = ", ".join(f"{name_text(name)} {share:.0%}" for name, share in alarm.first)
    about = f"{lasted(found)}, {excess(alarm.worst)} times its limit"
    lines = [f"{when}  {about} ({alarm.cause}){marks}: {channels or 'no channel'}"]
    for each in found.deviations[:1]:
        unit = detection.units.get(each.channel, "")
        value = f"{figure(each.value)} {name_text(unit)}".rstrip()
        lines.append(
            f"    {name_text(each.channel)} {value}, where the others say {figure(each.expected)}"
        )
    if alarm.twins:
        lines.append(f"    {' or '.join(map(name_text, alarm.twins))}: each is told by the other")
    return "\n".join(lines)


def _place(place: RowPlace) -> dict[str, Any]:
    time = None if math.isnan(place.time) else place.time
    return {"time": time, "file": place.file, "row": place.row}
