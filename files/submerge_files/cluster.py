"""`--dask ADDRESS` of `fit`, `score` and `detect`: workers read FILEs in place of this program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from submerge.errors import UsageError
from submerge_client.config.plugins import plugin
from submerge_files.workers import Workers

DASK = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Let the workers of this Dask scheduler read FILEs, which may be paths that fsspec knows,"
    " such as s3://bucket/*.parquet.",
)


@contextmanager
def workers_at(address: str | None, **refused: object) -> Iterator[Workers | None]:
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
    with connected(address) as workers:
        yield workers
