"""`--dask ADDRESS` of `fit`, `score` and `detect`: the workers of a Dask scheduler read FILEs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from submerge.errors import UsageError

if TYPE_CHECKING:
    from submerge_bridges.on_dask.cluster import Cluster
    from submerge_files.reader import ReadingOptions
    from submerge_files.reader.parts import Digests

DASK = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Let the workers of this Dask scheduler read FILEs, which may be paths that fsspec knows,"
    " such as s3://bucket/*.parquet.",
)


@contextmanager
def cluster_at(address: str | None, **refused: object) -> Iterator[Cluster | None]:
    """Connect to a scheduler; None without an address.

    refused : options that a cluster does not have, by their names
    """
    if address is None:
        yield None
        return
    for name, value in refused.items():
        if value:
            raise UsageError(
                f"expected no --{name.replace('_', '-')} with --dask: it needs all rows in one"
                " place; leave one of the two out"
            )
    from submerge_bridges.on_dask.cluster import connected

    with connected(address) as cluster:
        yield cluster


def digests_on(cluster: Cluster | None, options: ReadingOptions) -> Digests:
    """Return what reads files for their hashes: workers, or this program."""
    from submerge_files.reader.parts import digests_here

    if cluster is None:
        return digests_here
    from submerge_bridges.on_dask.sources import hashes

    return partial(hashes, cluster, options)
