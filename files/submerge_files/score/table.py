"""ScoredFile: one file of any format, with the columns that are scored and those carried along.

1. `submerge_files.reader` opens files, so that `score` reads what `fit` reads. Unlike there,
   each file is by itself, its rows keep their order, and a row without a time is no error.
2. Times and kept columns are text, as they stand in the file. Times of a time type are ISO 8601 in
   UTC.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from submerge import Array, Schema, UsageError
from submerge.headings import called
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import counted
from submerge_files.reader import ReadingOptions, open_recordings
from submerge_files.reader.clock_column import ClockColumn, clock_of
from submerge_files.reader.file_rows import FileReading
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.tables import TableFile, names_of, words
from submerge_files.reader.plan import time_sharing
from submerge_files.reader.selection import check_numbers, place_of, some, unknown
from submerge_files.reader.time_form import TEXT, TimeForm, either_order
from submerge_files.reader.time_order import iso


class Carried(NamedTuple):
    """What n rows bring beside readings: texts of times, "" without one, and of kept columns."""

    times: Sequence[str] = ()
    kept: tuple[Sequence[str], ...] = ()
    form: TimeForm = TEXT

    def part(self, begin: int, end: int) -> Carried:
        """Return what some of the rows bring."""
        kept = tuple(column[begin:end] for column in self.kept)
        return Carried(self.times[begin:end], kept, self.form)

    @property
    def seconds(self) -> Array:
        """(n,), times in seconds since 1970; NaN for what is no time."""
        return self.form.of_text(list(self.times))


class TableRows(NamedTuple):
    """Some rows of a file: (n, columns used), and what they bring along."""

    rows: Array
    carried: Carried


@dataclass(frozen=True)
class ScoredFile:
    """One file, opened but not yet read; its columns are `x0, x1, ...` if it has no names.

    Columns in places that are `taken` are carried along, and are no channels.
    """

    path: Path
    names: tuple[str, ...]
    named: bool
    notes: tuple[str, ...]
    taken: frozenset[int]
    timed: bool
    _read: Callable[[Sequence[int]], Iterator[TableRows]]

    def blocks(self, used: Sequence[int]) -> Iterator[TableRows]:
        """Read the file from its start: the columns `used`, in that order."""
        return self._read(used)


@dataclass(frozen=True)
class TableOptions:
    """How files are read for scoring."""

    quantity: str = "temperature"
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    keep: tuple[str, ...] = ()


def open_table(path: Path, options: TableOptions, channels: Sequence[str]) -> ScoredFile:
    """Open a file, or refuse one that is no table, or lacks a column that is to be kept."""
    # A column with a channel's name is no time unless it is named as one.
    if options.reading.long is not None:
        return _long(path, options)
    file = open_file(path, options.reading.missing, options.quantity)
    clock, notes = _clock(file, options.reading, channels)
    kept = tuple(place_of(file, name, "--keep") for name in options.keep)
    taken = frozenset([*(clock.places if clock else ()), *kept])

    def read(used: Sequence[int]) -> Iterator[TableRows]:
        reading = FileReading(file, tuple(used), missing=options.reading.missing_numbers)
        return _blocks(reading, clock, kept)

    said = (*file.notes, *notes)
    return ScoredFile(path, names_of(file), file.named, said, taken, clock is not None, read)


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
    if clock is not None:
        notes += time_sharing([FileReading(file, (), clock)])
    if clock is None or asked:
        return clock, notes
    # A model may have a channel that is called like a time.
    taken = {file.columns[i].name for i in clock.places} & {*channels}
    return (None, ()) if taken else (clock, notes)


def _blocks(
    reading: FileReading, clock: ClockColumn | None, kept: Sequence[int]
) -> Iterator[TableRows]:
    file, used, first = reading.file, reading.channels, 1
    typed = clock is not None and clock.form.typed
    places = () if clock is None else clock.places
    numbers, texts = [*used], [*kept]
    (numbers if typed else texts).extend(places)
    for place in used:
        check_numbers(file, place, empty=True)
    for raw in file.blocks(numbers, texts):
        rows = reading.readings(raw.numbers[:, : len(used)], first)
        first += len(rows)
        carried = tuple(words(column) for column in raw.texts)
        if typed:
            times = [iso(value) if value == value else "" for value in raw.numbers[:, -1].tolist()]
            yield TableRows(rows, Carried(times, carried))
            continue
        times = [" ".join(parts).strip() for parts in zip(*carried[len(kept) :], strict=True)]
        form = TEXT if clock is None else clock.form
        yield TableRows(rows, Carried(times, carried[: len(kept)], form))


def _long(path: Path, options: TableOptions) -> ScoredFile:
    """Return a long table, a row a time and a column a channel."""
    if options.keep:
        raise refusal(
            path,
            expected="a row for each time, to keep columns of it",
            got="--keep of a long table",
            hint="leave --keep out: times are carried along",
        )
    recordings = open_recordings([path], replace(options.reading, skip=(), columns=()))

    def read(used: Sequence[int]) -> Iterator[TableRows]:
        for recorded in recordings.rows():
            times = [] if recorded.times is None else list(map(iso, recorded.times.tolist()))
            yield TableRows(recorded.rows[:, list(used)], Carried(times))

    return ScoredFile(
        path, recordings.names, True, recordings.notes, frozenset(), recordings.timed, read
    )


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
    file: ScoredFile, schema: Schema, left: Sequence[int], *, allow_missing: bool = False
) -> Columns:
    """Find the channels of a schema in a file."""
    names, lags = schema.names, lags_of(schema.names)
    sensed = names[: len(names) // lags]
    # A heading may have a unit beside the channel's name.
    places = dict(zip(called(schema.named, [file.names[i] for i in left]), left, strict=True))
    nameless = isinstance(schema.channels, int)
    if file.named and (not nameless or places.keys() >= set(names)):
        if lags > 1 and places.keys() >= set(names):
            return _by_name(file, places, names, 1, allow_missing=allow_missing)
        return _by_name(file, places, sensed, lags, allow_missing=allow_missing)
    if len(left) not in (len(sensed), len(names)):
        left = [i for i in left if i not in file.taken]
    if len(left) not in (len(sensed), len(names)):
        raise refusal(
            file.path,
            expected=f"{len(sensed)} columns, one for each channel of the model",
            got=str(len(left)),
            hint="give it a header with the channels' names, or skip columns",
        )
    width = len(left)
    return Columns(tuple(left), tuple(range(width)), width, len(names) // width, ())


def lags_of(names: Sequence[str]) -> int:
    """Return how many rows a client has put side by side, by the channels' names.

    Examples
    --------
    >>> lags_of(("flow", "temp", "flow-1", "temp-1"))
    2
    """
    for width in range(1, len(names) // 2 + 1):
        lags, rest = divmod(len(names), width)
        if not rest and all(
            name == f"{names[i % width]}-{i // width}" for i, name in enumerate(names) if i >= width
        ):
            return lags
    return 1


def _by_name(
    file: ScoredFile,
    places: dict[str, int],
    names: Sequence[str],
    lags: int,
    *,
    allow_missing: bool,
) -> Columns:
    filled = tuple(i for i, name in enumerate(names) if name in places)
    missing = [name for name in names if name not in places]
    if 2 * len(missing) > len(names):
        raise _foreign(file, places, names, missing[0], len(filled))
    if missing and not allow_missing:
        # A name that the model knows is no misspelt one.
        free = [name for name in places if name not in names]
        raise unknown(
            file.path, missing[0], free or list(places), "a channel of the model; --allow-missing"
        )
    known = set(names)
    extra = [name for name, i in places.items() if name not in known and i not in file.taken]
    notes = []
    if missing:
        few = counted(len(missing), "channel")
        notes.append(f"no column for {few} of the model, so each row is filled: {some(missing)}")
    if extra:
        few = counted(len(extra), "column")
        notes.append(f"left out {few} that the model has no channel for: {some(extra)}")
    used = tuple(places[names[i]] for i in filled)
    return Columns(used, filled, len(names), lags, tuple(notes))


def _foreign(
    file: ScoredFile, places: dict[str, int], names: Sequence[str], missing: str, found: int
) -> UsageError:
    near = difflib.get_close_matches(missing, places, n=1)
    return refusal(
        file.path,
        expected=f"a column for each of the model's channels {some(names)}",
        got=f"only {found} of them" if found else f"columns {some(list(places))}",
        hint=f"is {near[0]!r} meant for {missing!r}?" if near else "rename its columns",
    )
