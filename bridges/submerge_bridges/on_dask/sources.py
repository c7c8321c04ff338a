"""ClusterRows: where the rows of a history are, for tasks to read: in files, or in partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from submerge import UsageError
from submerge_bridges.on_dask import tasks
from submerge_bridges.on_dask.cluster import Call, Cluster
from submerge_bridges.on_dask.portions import AnyStretch, FileStretch, Partition, PortionReading
from submerge_bridges.on_dask.stretch import Stretch, stretches_of
from submerge_bridges.on_dask.tables import Collection
from submerge_files.reader import Recordings
from submerge_files.reader.file_rows import FileReading
from submerge_files.reader.options import ReadingOptions
from submerge_files.reader.parts import ONLY_MACHINE, MachinePart


@dataclass(frozen=True)
class ClusterRows:
    """Rows that workers read."""

    reading: PortionReading
    machines: Mapping[str, list[AnyStretch]]
    partitions: Sequence[Any] = ()

    @classmethod
    def of_recordings(cls, rows: object) -> ClusterRows:
        """Return the rows of what stands for recordings, if that is files, each in one go."""
        if not isinstance(rows, Recordings):
            raise UsageError(f"expected files for workers to read, got {type(rows).__name__}")
        return cls.of_files(rows, cut=False)

    @classmethod
    def of_files(cls, recordings: Recordings, *, cut: bool = True) -> ClusterRows:
        """Return the rows of files that were opened here, to be read by workers."""
        # Rows that have to be sorted, or put together, are refused: that needs all of them in one
        # place.
        options = recordings.options
        for wanted, name in ((options.sort, "--sort"), (options.long, "--long")):
            if wanted:
                raise UsageError(
                    f"expected rows in the order of time, one for each time, got {name}: workers"
                    " read files apart; write them so before, or leave --dask out"
                )
        machines: dict[str, list[AnyStretch]] = {}
        for part in recordings.parts:
            known = machines.setdefault(part.machine, [])
            known += map(FileStretch.of, stretches_of(part) if cut else [Stretch(part)])
        return cls(PortionReading(recordings.names, recordings.order, options), machines)

    @classmethod
    def of_collection(cls, found: Collection) -> ClusterRows:
        """Return the rows of a Dask collection, whose partitions workers compute."""
        every = range(len(found.partitions))
        stretches: list[AnyStretch] = [Partition(n, f"the frame, part {n}") for n in every]
        order = tuple(range(len(found.names)))
        reading = PortionReading(found.names, order, found.options)
        return cls(reading, {found.head.machine: stretches}, found.partitions)


def hashes(
    cluster: Cluster, options: ReadingOptions, readings: Sequence[FileReading]
) -> list[bytes]:
    """Return the hash of each file's rows, by which rows count once; workers read the files."""
    whole = (Stretch(MachinePart(ONLY_MACHINE, each, None, True)) for each in readings)
    reading = PortionReading((), (), options)
    calls = [Call((reading, FileStretch.of(each))) for each in whole]
    return list(cluster.answers(tasks.digest, calls))
