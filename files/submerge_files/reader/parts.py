"""Parts: which rows of which file are which machine's, each once, and their order.

Machines are in the order of their names, and one's files in that of their first times. Files that
begin alike, or have no times, are compared by a hash of their rows: the same rows are read once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from submerge import UsageError
from submerge.condition import InState
from submerge_client.datasets.source import refusal
from submerge_files.reader.file_rows import FileReading
from submerge_files.reader.options import BY_FILE, ReadingOptions
from submerge_files.workers import Task, Workers

ONLY_MACHINE = "machine"  # the name of the machine if all files are of one

MOST_MACHINES = 10_000

FEW_MACHINES, FEWEST_ROWS = 100, 10
"""With more machines than this, and fewer rows of each, a column does not name machines."""


@dataclass(frozen=True)
class MachinePart:
    """One file's rows of one machine from a first time on, if any: all (`whole`), or so many."""

    machine: str
    reading: FileReading
    first: float | None
    whole: bool
    rows: int = 0


def parts_of(
    readings: Sequence[FileReading], options: ReadingOptions, workers: Workers
) -> tuple[list[MachinePart], list[str]]:
    """Return the parts of all files, in the order in which they are read, and notes."""
    called = _machines(readings, options)
    parts = [
        part
        for reading, name in zip(readings, called, strict=True)
        for part in _parts(reading, name, options)
    ]
    known = _hashes(parts, workers)
    parts, notes = _each_once(parts, known)
    return _arranged(parts, known), notes


def _hashes(parts: Sequence[MachinePart], workers: Workers) -> dict[int, bytes]:
    """Return the hashes of the files that begin as another does, by the readings' ids."""
    # Each is read once for it, and no other file is.
    begins = {id(part.reading): part.first for part in parts}
    readings = {id(part.reading): part.reading for part in parts}
    both = (Counter(begins.values()), Counter((part.machine, part.first) for part in parts))
    asked = {id(p.reading) for p in parts if both[1][p.machine, p.first] > 1}
    asked |= {key for key, first in begins.items() if both[0][first] > 1}
    ordered = [key for key in readings if key in asked]
    tasks = [Task((readings[key],)) for key in ordered]
    return dict(zip(ordered, workers.map(FileReading.digest, tasks), strict=True))


def _machines(readings: Sequence[FileReading], options: ReadingOptions) -> list[str]:
    """Return the name of each file's machine, if all of its rows are of one."""
    if options.node_by != BY_FILE:
        return [ONLY_MACHINE for _ in readings]
    paths = [reading.file.path for reading in readings]
    shared = set.intersection(*({*path.parts} for path in paths))
    apart = ["-".join(part for part in path.parts if part not in shared) for path in paths]
    # Files of the same name in different folders are different machines, as `machine=1` of Hive.
    # A machine is judged as a node of its name (`submerge.protocol.names`).
    for names in ([path.name.split(".")[0] or path.name for path in paths], apart):
        nodes = [re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:64] for name in names]
        if len({*filter(None, nodes)}) == len(nodes):
            return nodes
    return list(map(str, paths))


def _parts(reading: FileReading, name: str, options: ReadingOptions) -> Iterable[MachinePart]:
    file = reading.file
    if reading.machine is None:
        return [MachinePart(name, reading, _first_time(reading), True)]
    found: dict[str, float | None] = {}
    counts: Counter[str] = Counter()
    for span in reading.without_rows().spans():
        for i, name in enumerate(() if span.machines is None else span.machines):
            if name not in found:
                found[name] = None if span.times is None else float(span.times[i])
                if not name:
                    raise refusal(
                        f"{file.path}, {file.at(int(span.numbers[i]))}",
                        expected=f"a machine's name in column {options.node_by!r}",
                        got="none",
                        hint="complete the row or leave it out",
                    )
        counts.update(() if span.machines is None else span.machines)
        if len(found) > MOST_MACHINES:
            raise refusal(
                file.path,
                expected=f"at most {MOST_MACHINES} machines in column {options.node_by!r}",
                got="more",
                hint="name the column of machines (--node-by)",
            )
    rows = counts.total()
    if len(found) > FEW_MACHINES and rows < FEWEST_ROWS * len(found):
        raise refusal(
            file.path,
            expected=f"a column that names machines ({options.node_by!r})",
            got=f"{len(found):,} names in {rows:,} rows",
            hint="name another column (--node-by)",
        )
    alone = len(found) == 1
    return [MachinePart(name, reading, at, alone, counts[name]) for name, at in found.items()]


def _first_time(reading: FileReading) -> float | None:
    if reading.clock is None:
        return None
    spans = reading.without_rows().spans()
    first = next((float(s.times[0]) for s in spans if s.times is not None and len(s.times)), None)
    if first is None and reading.states:
        raise no_rows_in(reading.file.path, [state for _, state in reading.states])
    return first


def no_rows_in(where: object, states: Sequence[InState]) -> UsageError:
    """Return the error for rows of which none is in the states that are asked for."""
    wanted = f"rows where {' and '.join(map(str, states))}"
    hint = "write the states as they stand there (--when)"
    return refusal(where, expected=wanted, got="none", hint=hint)


def _each_once(
    parts: Sequence[MachinePart], hashes: Mapping[int, bytes]
) -> tuple[list[MachinePart], list[str]]:
    """Leave out files whose rows another file has. Only files that begin alike are compared."""
    begins = {id(p.reading): (p.first, p.reading) for p in parts}
    alike = Counter(first for first, _ in begins.values())
    kept: dict[bytes, FileReading] = {}
    left: dict[int, str] = {}
    for first, reading in begins.values():
        if alike[first] < 2:
            continue
        other = kept.setdefault(hashes[id(reading)], reading)
        if other is not reading:
            name = reading.file.path.name
            left[id(reading)] = f"{name} has the rows of {other.file.path.name}: they are read once"
    return [part for part in parts if id(part.reading) not in left], list(left.values())


def _arranged(parts: Sequence[MachinePart], hashes: Mapping[int, bytes]) -> list[MachinePart]:
    """Return parts machine by machine, and those of one by their times or contents."""
    alike = Counter((part.machine, part.first) for part in parts)

    def place(part: MachinePart) -> tuple[str, float, bytes]:
        again = alike[part.machine, part.first] > 1
        return part.machine, part.first or 0.0, hashes[id(part.reading)] if again else b""

    return sorted(parts, key=place)
