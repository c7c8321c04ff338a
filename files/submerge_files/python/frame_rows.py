"""FrameRows: the channels of a frame as one machine's `Recorded` rows, with their times. It stands
where `Recordings` stand for files: `rows()` reads from the start, any number of times.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from submerge import Array, UsageError
from submerge.condition import Condition
from submerge.headings import channels_of
from submerge.history.recording import Recorded
from submerge.judge.decision import Mask
from submerge_client.datasets.source import refusal
from submerge_files.python.frames import NUMBERS, PLACE, TIMES, Frame
from submerge_files.reader.column_ranges import ColumnRanges
from submerge_files.reader.formats.tables import BLOCK_ROWS
from submerge_files.reader.options import NO_TIME
from submerge_files.reader.parts import ONLY_MACHINE
from submerge_files.reader.selection import place_in, some
from submerge_files.reader.time_form import going_on, shared_times
from submerge_files.reader.time_order import iso


class FrameRows:
    """Rows (n, channels) of a frame; its time is a column, "none", or by default what is found.

    That is the index, if it is of times, or the only column of a time type that goes on.
    """

    def __init__(
        self,
        frame: Frame,
        columns: Sequence[str] | None = None,
        time: str | None = None,
        machine: str = ONLY_MACHINE,
    ) -> None:
        self.frame, self.machine = frame, machine
        self.clock = _clock(frame, time)
        self._counted: Mask | None = None
        self._when = frame.index if self.clock is None else frame.column(self.clock)
        if time == NO_TIME:
            self._when = None
        self._times = None if self._when is None else _checked_times(self._when.values())
        self.headings, self._said = _channels(frame, columns, self.clock)
        self.channels = channels_of(self.headings)
        if frame.passed_over and self._times is None and time != NO_TIME:
            self._said += (f"the index is {frame.passed_over}: rows are learnt without times",)
        self.values: Array = np.empty((len(frame), len(self.headings)))
        for i, name in enumerate(self.headings):
            self.values[:, i] = frame.column(name).values()

    @property
    def names(self) -> tuple[str, ...]:
        """The channels' names."""
        return tuple(channel.name for channel in self.channels)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: what was left out, and which values are hardly readings, as of files."""
        ranges = ColumnRanges(self.names, "write NaN for it", "leave these rows out (when)")
        ranges.add(self.values if self._counted is None else self.values[self._counted])
        times = np.empty(0) if self._times is None else self._times
        counts = np.unique(times, return_counts=True)[1]
        shared = shared_times("", len(times), len(counts), int(counts.max(initial=0)))
        return (*self._said, *shared, *ranges.notes())

    def note_only(self, counted: Callable[[Array], Mask]) -> None:
        """Have notes on values tell of some rows alone, as `Recordings.note_only`."""
        self._counted = counted(self.values)

    def rows(self) -> Iterator[Recorded]:
        """Read all rows from the start, in blocks."""
        for first in range(0, len(self.values), BLOCK_ROWS):
            some = slice(first, first + BLOCK_ROWS)
            times = None if self._times is None else self._times[some]
            yield Recorded(self.machine, self.values[some], times, PLACE, first + 1)

    def looks(self, when: Condition | None = None) -> Iterator[Recorded]:
        """Read all rows: they are in memory, whatever is asked of them."""
        return self.rows()

    def label(self, row: int) -> Any:
        """Return how the frame's reader calls a row: its time, or its number from 0."""
        return row if self._when is None else self._when.label(row)


def _clock(frame: Frame, time: str | None) -> str | None:
    """Return the column of times; None if there is none, or if the index has them."""
    found = list(frame.named(TIMES))
    if time == NO_TIME:
        return None
    if time is not None:
        if time not in frame.names:
            raise _unknown(time, frame.names)
        if time not in found:
            raise refusal(
                f"{PLACE}, column {time}",
                expected="a column of a time type",
                got=frame.column(time).type,
                hint="convert it first, as with pandas.to_datetime",
            )
        return time
    if frame.index is not None:
        return None
    different = [len(np.unique(frame.column(name).values())) for name in found]
    found = [found[i] for i in going_on(different)]
    if len(found) > 1:
        raise refusal(
            PLACE,
            expected="one column of times that goes on",
            got=some(found),
            hint=f"name one, such as time={found[0]!r}",
        )
    return found[0] if found else None


def _channels(
    frame: Frame, columns: Sequence[str] | None, clock: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the channels, and sentences on other columns."""
    if isinstance(columns, str):
        raise UsageError(f"expected a list of columns, got {columns!r}: write [{columns!r}]")
    if columns is not None:
        found = []
        for wanted in columns:
            place = place_in(frame.names, wanted)
            if place is None:
                raise _unknown(wanted, frame.names)
            name = frame.names[place]
            found.append(name)
            column = frame.column(name)
            if column.kind != NUMBERS:
                raise refusal(
                    f"{PLACE}, column {name}",
                    expected="a column of numbers",
                    got=column.type,
                    hint="convert it first, or leave it out",
                )
        return tuple(found), ()
    chosen = frame.named(NUMBERS)
    others = [name for name in frame.names if name not in chosen and name != clock]
    notes = tuple(f"column {name} is {frame.column(name).type} and is left out" for name in others)
    if len(chosen) < 2:
        raise refusal(
            PLACE,
            expected="at least two columns of numbers",
            got=some(chosen) if chosen else "none",
            hint="; ".join(notes) or "give each channel a column",
        )
    return chosen, notes


def _unknown(name: str, names: Sequence[str]) -> UsageError:
    """Return the error for a column that is not there, with the nearest that is."""
    folded = [each for each in names if each.casefold() == name.casefold()]
    near = folded or difflib.get_close_matches(name, names, n=1)
    return refusal(
        PLACE,
        expected=f"a column {name!r}",
        got="no such column",
        hint=f"is {near[0]!r} meant? if so, name that, or rename it"
        if near
        else f"it has {some(names)}",
    )


def _checked_times(times: Array) -> Array:
    """Return times (n,), or refuse them if one is missing or earlier than the one before it."""
    missing = np.flatnonzero(np.isnan(times))
    if len(missing):
        raise refusal(
            f"{PLACE}, row {missing[0]}",
            expected="a time in each row",
            got="none",
            hint="leave the row out",
        )
    back = np.flatnonzero(np.diff(times) < 0)
    if len(back):
        row = int(back[0]) + 1
        raise refusal(
            f"{PLACE}, row {row}",
            expected=f"no time before {iso(times[row - 1])}",
            got=iso(times[row]),
            hint="sort the rows by time",
        )
    return times
