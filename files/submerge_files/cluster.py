"""`--dask ADDRESS` of `fit`, `score` and `detect`: workers read FILEs in place of this program.
What runs them is a package of its own, found by its entry point (group `submerge.clusters`): a
function that connects to an address and yields a FileCluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from submerge.errors import UsageError
from submerge_client.config.plugins import plugin

if TYPE_CHECKING:
    from submerge.history.fit import Fitted
    from submerge.history.settings import FitSettings
    from submerge_files.detect.run import Detected, DetectRequest
    from submerge_files.reader import ReadingOptions, Recordings
    from submerge_files.reader.parts import Digests
    from submerge_files.score.run import ScoreOrder
    from submerge_files.score.summary import ScoreSummary

Advance = Callable[[int], None]

DASK = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Let the workers of this Dask scheduler read FILEs, which may be paths that fsspec knows,"
    " such as s3://bucket/*.parquet.",
)


class FileCluster(Protocol):
    """Workers that read files, and do what a command asks; `advance` takes numbers of rows."""

    def digests(self, options: ReadingOptions) -> Digests:
        """Return what reads files for their hashes."""

    def fit(self, recordings: Recordings, settings: FitSettings, advance: Advance) -> Fitted:
        """Learn a history."""

    def detect(self, request: DetectRequest, advance: Advance) -> Detected:
        """Find the alarms of a request."""

    def score(
        self, order: ScoreOrder, model: Path, folder: str, advance: Advance
    ) -> tuple[ScoreSummary, Iterable[str]]:
        """Score files, each into a file in a folder; return the summary of all, and remarks."""


@contextmanager
def cluster_at(address: str | None, **refused: object) -> Iterator[FileCluster | None]:
    """Connect to a scheduler and refuse `refused` options; None without an address."""
    if address is None:
        yield None
        return
    for name, value in refused.items():
        if value:
            raise UsageError(
                f"expected no --{name.replace('_', '-')} with --dask: it needs all rows in one"
                " place; leave one of the two out"
            )
    connected = plugin("submerge.clusters", "dask")
    if connected is None:
        raise UsageError("no installed package offers --dask: pip install 'submerge[dask]'")
    with connected(address) as cluster:
        yield cluster


def digests_on(cluster: FileCluster | None, options: ReadingOptions) -> Digests:
    """Return what reads files for their hashes: workers, or this program."""
    from submerge_files.reader.parts import digests_here

    return digests_here if cluster is None else cluster.digests(options)
