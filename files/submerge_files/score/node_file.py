"""NodeFile: one file whose rows are a node's, with the columns of a model's channels.

1. Unlike in `fit`, each file is by itself, and its rows keep their order, also if times go back.
2. Times and kept columns come along as text; times of a time type are ISO 8601 in UTC.
3. Rows in another state are read, too: they have a line without a score, and are a past for lags.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge import Array, Schema, UsageError
from submerge.condition import InState
from submerge.headings import called, lags_of
from submerge.history.recording import Recorded
from submerge.judge.prepare import LEAD_IN, OTHER_STATE
from submerge_client.datasets.fields import ANOTHER_MARK
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import counted
from submerge_client.sensors.gather import Lags
from submerge_files.console.reading_options import as_fitted
from submerge_files.reader import ReadingOptions, Recordings, open_recordings
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.tables import TableFile, names_of
from submerge_files.reader.plan import FileReading, MachinePart, state_of, time_sharing
from submerge_files.reader.recordings import iso
from submerge_files.reader.selection import (
    ClockColumn,
    check_numbers,
    clock_of,
    matching,
    place_of,
    some,
    unknown,
)
from submerge_files.reader.time_form import either_order, no_time

BLOCK = 64  # rows whose features are in memory at once, as on a device


class NodeRows(NamedTuple):
    """Some rows of a file, ready to be prepared."""

    recorded: Recorded
    # (n,), places in `REASONS`: why it is known of some that they have no score
    unscored: npt.NDArray[np.int8]
    rows: Array  # (m, channels), the others, with their lags


@dataclass(frozen=True)
class NodeFile:
    """One file, opened but not yet read."""

    path: Path
    recordings: Recordings
    columns: Columns  # of `recordings`; its texts are kept, clock's, states'
    clock: ClockColumn | None = None
    kept: int = 0  # columns of `--keep`
    states: tuple[InState, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: what was left out or guessed, and after a whole reading what it found."""
        return (*self.recordings.notes, *self.columns.notes)

    @property
    def timed(self) -> bool:
        """Whether rows have times."""
        return self.clock is not None or self.recordings.timed

    def rows(self, schema: Schema, most: int | None = None) -> Iterator[NodeRows]:
        """Read the file from its start: so many rows, or all."""
        lags, newest = Lags(self.columns.lags, self.columns.width), -np.inf
        for recorded in first_rows(self.recordings.rows(), most):
            newest = self._check_times(recorded, newest)
            n = len(recorded.rows)
            step = max(1, n) if schema.linear else BLOCK
            for begin in range(0, n, step):
                part = recorded.part(begin, min(n, begin + step))
                whole = lags.embed(self.columns.placed(part.rows))
                unscored = np.zeros(len(part.rows), dtype=np.int8)
                lead = len(unscored) - len(whole)
                for place, state in enumerate(self.states, -len(self.states)):
                    texts = [] if part.texts is None else part.texts[:, place].tolist()
                    unscored[~state.holds(texts)] = OTHER_STATE
                unscored[:lead] = LEAD_IN
                yield NodeRows(part, unscored, whole[unscored[lead:] == 0])

    def _check_times(self, recorded: Recorded, newest: float) -> float:
        """Refuse a row without a time, as of `Total`; note the first one that goes back."""
        if self.clock is None:
            return newest
        file, times = self.recordings.parts[0].reading.file, self.seconds(recorded)
        for i in np.flatnonzero(~np.isfinite(times))[:1].tolist():
            text = self.texts(recorded)[0][i]
            raise no_time(file, self.clock.places[0], recorded.number(i), text)
        back = np.flatnonzero(np.diff(times, prepend=newest) < 0)
        if not len(back):
            return float(times[-1]) if newest == newest else newest
        place = f"{file.at(recorded.number(int(back[0])))} of {self.path.name}"
        self.recordings.say(f"times go back in {place}: rows are scored as they stand there")
        return np.nan  # one note is enough

    def texts(self, recorded: Recorded) -> list[Sequence[str]]:
        """Return what comes along with rows, (n,) each: times, if it has such, and kept columns."""
        found = [] if recorded.texts is None else recorded.texts.T.tolist()
        times = [self._times(recorded, found)] if self.timed else []
        return [*times, *found[: self.kept]]

    def _times(self, recorded: Recorded, texts: list[list[str]]) -> list[str]:
        if recorded.times is not None:
            return [iso(value) if value == value else "" for value in recorded.times.tolist()]
        places = () if self.clock is None else self.clock.places
        columns = texts[self.kept : self.kept + len(places)]
        return [" ".join(parts).strip() for parts in zip(*columns, strict=True)]

    def seconds(self, recorded: Recorded) -> Array:
        """Return times (n,) in seconds since 1970; NaN for what is no time."""
        if recorded.times is not None:
            return recorded.times
        if self.clock is None:
            return np.full(len(recorded.rows), np.nan)
        return self.clock.form.of_text([*self.texts(recorded)[0]])


def first_rows(parts: Iterator[Recorded], most: int | None) -> Iterator[Recorded]:
    """Yield the first so many rows of a file; all of them for None."""
    for part in parts:
        if most is not None and most <= len(part.rows):
            yield part.part(0, most)
            return
        yield part
        most = None if most is None else most - len(part.rows)


def open_node(
    path: Path,
    schema: Schema,
    options: ReadingOptions,
    keep: Sequence[str] = (),
    *,
    allow_missing: bool = False,
    remembered: str = "",
) -> NodeFile:
    """Open a file and find a model's channels, and its states unless they are `remembered`."""
    if options.long is not None:
        options = replace(options, states=()) if remembered else options
        return _long(path, schema, options, keep, allow_missing=allow_missing)
    file = open_file(path, options.missing, options.quantity)
    clock, notes = _clock(file, options, schema.names)
    if remembered:
        states, said = as_fitted(remembered, options.states, names_of(file))
        options, notes = replace(options, states=states), (*notes, said)
    kept = tuple(place_of(file, name, "--keep") for name in keep)
    places = tuple(state_of(file, each) for each in options.states)
    times = () if clock is None else clock.places
    given, asked = (path, names_of(file), schema, options), {*times, *kept, *places}
    try:
        columns = columns_of(*given, allow_missing=allow_missing, named=file.named, taken=asked)
    except UsageError as error:
        # They may say why: another sheet, or a first row that was read as headings.
        raise UsageError("; ".join([str(error), *file.notes])) from error
    for place in columns.used:
        check_numbers(file, place, empty=True)
    typed = clock is not None and clock.form.typed
    reading = FileReading(
        file,
        columns.used,
        clock if typed else None,
        missing=options.missing_numbers,
        carried=(*kept, *(() if typed else times), *places),
    )
    headings = tuple(file.columns[place].name for place in columns.used)
    part = MachinePart(path.name.split(".")[0] or path.name, reading, None, True)
    recordings = Recordings(headings, [part], (*file.notes, *notes), options)
    return NodeFile(path, recordings, columns, clock, len(kept), options.states)


def _clock(
    file: TableFile, options: ReadingOptions, channels: Sequence[str]
) -> tuple[ClockColumn | None, tuple[str, ...]]:
    asked = options.time or options.time_format
    try:
        clock, notes, _ = clock_of(file, options)
        if clock is not None and clock.either:
            raise either_order(file, clock.places, clock.either)
    except UsageError as error:
        if asked:
            raise
        # Scores need no times: a column that cannot be read as such is left out as others are.
        return None, (f"no times are carried along, since one column is unclear: {error}",)
    if clock is None:
        return None, notes
    notes += time_sharing([FileReading(file, (), clock)])
    # A model may have a channel that is called like a time.
    taken = {file.columns[i].name for i in clock.places} & {*channels}
    return (None, ()) if taken and not asked else (clock, notes)


def _long(
    path: Path, schema: Schema, options: ReadingOptions, keep: Sequence[str], *, allow_missing: bool
) -> NodeFile:
    """Return a long table, a row a time and a column a channel."""
    if keep:
        raise refusal(
            path,
            expected="a row for each time, to keep columns of it",
            got="--keep of a long table",
            hint="leave --keep out: times are carried along",
        )
    recordings = open_recordings([path], replace(options, skip=(), columns=()))
    columns = columns_of(path, recordings.names, schema, options, allow_missing=allow_missing)
    channels = [recordings.channels[place] for place in columns.used]
    return NodeFile(path, recordings.ordered(channels), columns)


@dataclass(frozen=True)
class Columns:
    """Places of columns that are read, the channel `filled` by each, and channels before lags."""

    used: tuple[int, ...]
    filled: tuple[int, ...]
    width: int
    lags: int
    notes: tuple[str, ...]

    def placed(self, block: Array) -> Array:
        """Return columns (n, used) as channels (n, width), NaN for channels without a column."""
        if self.filled == tuple(range(self.width)):
            return block
        rows = np.full((len(block), self.width), np.nan)
        rows[:, self.filled] = block
        return rows


def columns_of(
    path: Path,
    names: Sequence[str],
    schema: Schema,
    options: ReadingOptions,
    *,
    allow_missing: bool,
    named: bool = True,
    taken: Collection[int] = (),
) -> Columns:
    """Find the channels of a schema in a file's columns, but for those `taken`."""
    matches = partial(matching, path, tuple(names))
    skipped = matches(options.skip, "--skip")
    left = [i for i in matches(options.columns or names, "--columns") if i not in skipped]
    lags = lags_of(schema.names)
    sensed = schema.names[: len(schema.names) // lags]
    # A heading may have a unit beside the channel's name.
    places = dict(zip(called(schema.named, [names[i] for i in left]), left, strict=True))
    lagged = places.keys() >= {*schema.names}
    if named and (lagged or not isinstance(schema.channels, int)):
        given = (schema.names, 1) if lagged else (sensed, lags)
        return _by_name(path, places, taken, *given, allow_missing=allow_missing)
    if len(left) not in (len(sensed), len(schema.names)):
        left = [i for i in left if i not in taken]
    if len(left) not in (len(sensed), len(schema.names)):
        raise refusal(
            path,
            expected=f"{len(sensed)} columns, one for each channel of the model",
            got=str(len(left)),
            hint="give it a header with the channels' names, or skip columns",
        )
    width = len(left)
    return Columns(tuple(left), tuple(range(width)), width, len(schema.names) // width, ())


def _by_name(
    path: Path,
    places: dict[str, int],
    taken: Collection[int],
    names: Sequence[str],
    lags: int,
    *,
    allow_missing: bool,
) -> Columns:
    filled = tuple(i for i, name in enumerate(names) if name in places)
    missing = [name for name in names if name not in places]
    if 2 * len(missing) > len(names):
        near = difflib.get_close_matches(missing[0], places, n=1)
        other = ANOTHER_MARK if len(places) == 1 else "rename its columns"
        raise refusal(
            path,
            expected=f"a column for each of the model's channels {some(names)}",
            got=f"only {len(filled)} of them" if filled else f"columns {some(list(places))}",
            hint=f"is {near[0]!r} meant for {missing[0]!r}?" if near else other,
        )
    # A name that the model knows is no misspelt one.
    free = [name for name in places if name not in names]
    if missing and not allow_missing:
        option = "a channel of the model; --allow-missing"
        raise unknown(path, missing[0], free or list(places), option)
    extra, notes = [name for name in free if places[name] not in taken], []
    if missing:
        few = counted(len(missing), "channel")
        notes.append(f"no column for {few} of the model, so each row is filled: {some(missing)}")
    if extra:
        few = counted(len(extra), "column")
        notes.append(f"left out {few} that the model has no channel for: {some(extra)}")
    used = tuple(places[names[i]] for i in filled)
    return Columns(used, filled, len(names), lags, tuple(notes))
