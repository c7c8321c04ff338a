"""The workers of a Dask scheduler as `fit`, `score` and `detect` of files use them, by `--dask`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from submerge_bridges.on_dask import cluster as on_dask

if TYPE_CHECKING:
    from submerge.history.fit import Fitted
    from submerge.history.settings import FitSettings
    from submerge_files.detect.run import Detected, DetectRequest
    from submerge_files.reader import ReadingOptions, Recordings
    from submerge_files.reader.file_rows import FileReading
    from submerge_files.reader.parts import Digests
    from submerge_files.score.run import ScoreOrder
    from submerge_files.score.summary import ScoreSummary

Advance = Callable[[int], None]


class DaskCluster(NamedTuple):
    """A `submerge_files.cluster.FileCluster`; what a task needs is imported when one is run."""

    cluster: on_dask.Cluster

    def digests(self, options: ReadingOptions) -> Digests:
        """Return what reads files for their hashes: workers."""
        from submerge_bridges.on_dask import tasks
        from submerge_bridges.on_dask.rows import RowReader, Stretch

        def hashes(readings: Sequence[FileReading]) -> list[bytes]:
            reader = RowReader((), (), options)
            whole = (Stretch.of("", each, whole=True) for each in readings)
            calls = [on_dask.Call((reader, each)) for each in whole]
            return list(self.cluster.answers(tasks.digest, calls))

        return hashes

    def fit(self, recordings: Recordings, settings: FitSettings, advance: Advance) -> Fitted:
        """Learn a history."""
        from submerge_bridges.on_dask.history import ClusterFit
        from submerge_bridges.on_dask.rows import ClusterRows

        rows, channels = ClusterRows.of_files(recordings), recordings.channels
        return ClusterFit(self.cluster, rows, channels, settings, advance).run()

    def detect(self, request: DetectRequest, advance: Advance) -> Detected:
        """Find the alarms of a request."""
        from submerge_bridges.on_dask.detection import detect_on

        return detect_on(self.cluster, request, advance)

    def score(
        self, order: ScoreOrder, model: Path, folder: str, advance: Advance
    ) -> tuple[ScoreSummary, Iterable[str]]:
        """Score files, each into a file in a folder."""
        from submerge_bridges.on_dask.scores import score_on

        return score_on(self.cluster, order, model, folder, advance)


@contextmanager
def connected(address: str) -> Iterator[DaskCluster]:
    """Connect to a scheduler."""
    with on_dask.connected(address) as cluster:
        yield DaskCluster(cluster)
