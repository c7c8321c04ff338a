"""hashes(): the hashes of files' rows, by which rows count once; workers read the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from submerge_bridges.on_dask.answers import answering
from submerge_bridges.on_dask.cluster import Call, Cluster
from submerge_bridges.on_dask.packing import packed, unpacked
from submerge_bridges.on_dask.portions import PortionReading, stretch_text
from submerge_bridges.on_dask.stretch import Stretch
from submerge_files.reader.options import ReadingOptions
from submerge_files.reader.parts import ONLY_MACHINE, MachinePart
from submerge_files.reader.reading import FileReading


@answering
def digest(work: bytes) -> bytes:
    """Return the hash of one file's rows."""
    head, _ = unpacked(work)
    return packed({}, [PortionReading.of(head["reading"], ()).file(head["stretch"]).digest()])


def hashes(
    cluster: Cluster, options: ReadingOptions, readings: Sequence[FileReading]
) -> list[bytes]:
    """Return the hash of each file's rows."""
    reading = {"names": (), "order": (), "options": asdict(options)}
    calls = []
    for each in readings:
        stretch = stretch_text(Stretch(MachinePart(ONLY_MACHINE, each, None, True)))
        calls.append(Call((packed({"reading": reading, "stretch": stretch}),)))
    return [answer for _, (answer,) in cluster.answers(digest, calls)]
