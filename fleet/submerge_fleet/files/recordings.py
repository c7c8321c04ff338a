"""Recordings: the rows of files, machine by machine and in the order of time.

1. A machine's files are in the order of their first times. Files without times are independent
   pieces in the order of a hash of their rows: the order of arguments does not matter.
2. Two files of the same rows are read once, whatever their names and formats; a note says so.
3. Rows that go back in time are refused, or sorted on request (`time_order`).
4. Memory does not grow with the number of rows, but for `sort`, `.npy` and logs.
5. With a column of machines, files are read once to find them and once for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge import Array
from submerge.history.recorded import Recorded
from submerge_client.datasets.source import refusal
from submerge_fleet.files import long_table
from submerge_fleet.files.opening import files_of, open_file
from submerge_fleet.files.options import BY_FILE, ReadingOptions
from submerge_fleet.files.plan import planned
from submerge_fleet.files.reading import FileReading, Span
from submerge_fleet.files.tables import TableFile
from submerge_fleet.files.time_order import TimeOrder, sorted_spans

ONLY_MACHINE = "machine"
"""The name of the machine if all files are of one."""

MOST_MACHINES = 10_000


@dataclass(frozen=True)
class MachinePart:
    """One file's rows of one machine.

    first : its first time; None if it has none
    whole : whether all rows of the file are this machine's
    """

    machine: str
    reading: FileReading
    first: float | None
    whole: bool


class Recordings:
    """Files that were opened to be read together.

    Attributes
    ----------
    names : tuple of str
        Channels.
    timed : bool
        Whether rows have times.
    machines : tuple of str
        In the order in which their rows come.
    files : tuple of Path
        Those that are read, each once.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        parts: Sequence[MachinePart],
        notes: tuple[str, ...],
        options: ReadingOptions,
    ) -> None:
        self.names = names
        self.timed = parts[0].first is not None
        self.machines = tuple(dict.fromkeys(part.machine for part in parts))
        self.files = tuple(dict.fromkeys(part.reading.file.path for part in parts))
        self._parts, self._notes = parts, notes
        self._found: tuple[str, ...] = ()
        self._options = options

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: what was left out or guessed; after a whole `rows()`, what it found too."""
        return (*self._notes, *self._found)

    def rows(self) -> Iterator[Recorded]:
        """Read all rows from the start, in blocks.

        Raises
        ------
        UsageError
            At the first row that cannot be read, or goes back in time. One line: the place, what
            was expected, what came, what to do.
        """
        found, said = ColumnRanges(self.names), list[str]()
        for machine in self.machines:
            parts = [part for part in self._parts if part.machine == machine]
            for span, file in self._in_order(machine, parts, said.append):
                found.add(span.rows)
                first = int(span.numbers[0])
                yield Recorded(machine, span.rows, span.times, str(file.path), first)
        self._found = (*said, *found.notes())

    def _in_order(
        self, machine: str, parts: Sequence[MachinePart], note: Callable[[str], None]
    ) -> Iterator[tuple[Span, TableFile]]:
        spans = _spans(parts)
        if self._options.sort and self.timed:
            spans = sorted_spans(spans, machine, note)
        if self._options.long:
            # After sorting: values of one time may be far apart.
            spans = long_table.widened(spans, self.names)
        order = TimeOrder()
        for span, file in spans:
            if len(span.rows) == 0:
                continue
            if self.timed:
                order.check(span, file)
            yield span, file


def open_recordings(paths: Sequence[Path], options: ReadingOptions) -> Recordings:
    """Open files, folders and globs to read their rows together.

    Parameters
    ----------
    paths : sequence of Path
        CSV, TSV, whitespace tables, `.npy` and Intel Lab logs, plain or gzip; Parquet and Arrow.
    options : ReadingOptions
        Which columns are read, and as what.

    Raises
    ------
    UsageError
        If a file is no table, a column is not there, or the files do not go together. One line:
        the place, what was expected, what came, what to do.
    """
    plan = planned([open_file(path) for path in files_of(paths)], options)
    called = _machines(plan.readings, options)
    parts = [
        part
        for reading, name in zip(plan.readings, called, strict=True)
        for part in _parts(reading, name, options)
    ]
    digests = Digests()
    parts, notes = _each_once(parts, digests)
    return Recordings(plan.names, _arranged(parts, digests), (*plan.notes, *notes), options)


def _machines(readings: Sequence[FileReading], options: ReadingOptions) -> list[str]:
    """Return the name of each file's machine, if all of its rows are of one."""
    if options.node_by != BY_FILE:
        return [ONLY_MACHINE for _ in readings]
    paths = [reading.file.path for reading in readings]
    stems = [path.name.split(".")[0] or path.name for path in paths]
    # Files of the same name in different folders are different machines.
    return stems if len({*stems}) == len(stems) else list(map(str, paths))


def _parts(reading: FileReading, name: str, options: ReadingOptions) -> Iterable[MachinePart]:
    """Return the parts of one file, one for each machine."""
    file = reading.file
    if reading.machine is None:
        return [MachinePart(name, reading, _first_time(reading), True)]
    found: dict[str, float | None] = {}
    for span in reading.without_rows().spans():
        for i, name in enumerate(() if span.machines is None else span.machines):
            if name not in found:
                found[name] = None if span.times is None else float(span.times[i])
                if not name:
                    raise refusal(
                        f"{file.path}, {file.unit} {span.places[i]}",
                        expected=f"a machine's name in column {options.node_by!r}",
                        got="none",
                        hint="complete the row or leave it out",
                    )
        if len(found) > MOST_MACHINES:
            raise refusal(
                file.path,
                expected=f"at most {MOST_MACHINES} machines in column {options.node_by!r}",
                got="more",
                hint="name the column of machines (--node-by)",
            )
    return [MachinePart(name, reading, at, len(found) == 1) for name, at in found.items()]


def _first_time(reading: FileReading) -> float | None:
    if reading.clock is None:
        return None
    spans = reading.without_rows().spans()
    return next((float(s.times[0]) for s in spans if s.times is not None and len(s.times)), None)


class Digests:
    """Hashes of files' rows, each found in one pass when it is first asked for."""

    def __init__(self) -> None:
        self._found: dict[int, bytes] = {}

    def of(self, reading: FileReading) -> bytes:
        """Return the hash of one file's rows."""
        if id(reading) not in self._found:
            self._found[id(reading)] = reading.digest()
        return self._found[id(reading)]


def _each_once(
    parts: Sequence[MachinePart], digests: Digests
) -> tuple[list[MachinePart], list[str]]:
    """Leave out files whose rows another file has. Only files that begin alike are compared."""
    begins = {id(p.reading): (p.first, p.reading) for p in parts}
    alike = Counter(first for first, _ in begins.values())
    kept: dict[bytes, FileReading] = {}
    left: dict[int, str] = {}
    for first, reading in begins.values():
        if alike[first] < 2:
            continue
        other = kept.setdefault(digests.of(reading), reading)
        if other is not reading:
            name = reading.file.path.name
            left[id(reading)] = f"{name} has the rows of {other.file.path.name}: they are read once"
    return [part for part in parts if id(part.reading) not in left], list(left.values())


def _arranged(parts: Sequence[MachinePart], digests: Digests) -> list[MachinePart]:
    """Return parts machine by machine, and those of one by their times or contents."""
    alike = Counter((part.machine, part.first) for part in parts)

    def place(part: MachinePart) -> tuple[str, float, bytes]:
        again = alike[part.machine, part.first] > 1
        return part.machine, part.first or 0.0, digests.of(part.reading) if again else b""

    return sorted(parts, key=place)


def _spans(parts: Sequence[MachinePart]) -> Iterator[tuple[Span, TableFile]]:
    for part in parts:
        for span in part.reading.spans():
            if span.machines is None or part.whole:
                yield span, part.reading.file
            elif len(chosen := np.flatnonzero(span.machines == part.machine)):
                yield span.only(chosen), part.reading.file


class ColumnRanges:
    """The least and greatest value of each channel, for notes about channels that say nothing."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._low: Array = np.full(len(names), np.inf)
        self._high: Array = np.full(len(names), -np.inf)

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) into account."""
        # fmin and fmax pass over NaN.
        self._low = np.fmin(self._low, np.fmin.reduce(rows, axis=0, initial=np.inf))
        self._high = np.fmax(self._high, np.fmax.reduce(rows, axis=0, initial=-np.inf))

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each channel without a value, or with one alone."""
        for name, low, high in zip(self._names, self._low, self._high, strict=True):
            if low > high:
                yield f"channel {name} has no value in any row"
            elif low == high:
                yield f"channel {name} is {low:g} in all rows"
