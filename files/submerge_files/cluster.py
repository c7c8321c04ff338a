"""Workers: what runs functions on parts of rows elsewhere, for `--dask ADDRESS` of `fit`, `score`
and `detect`. It is a package of its own, found by its entry point (group `submerge.clusters`): a
function that connects to an address and yields Workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

import click

from submerge.errors import UsageError
from submerge_client.config.plugins import plugin

Advance = Callable[[int], None]
"""Takes numbers of rows that are done."""

T = TypeVar("T")

DASK = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Let the workers of this Dask scheduler read FILEs, which may be paths that fsspec knows,"
    " such as s3://bucket/*.parquet.",
)


class Task(NamedTuple):
    """What a function is given: values, or what becomes one at a worker; and how many rows."""

    arguments: tuple[Any, ...]
    rows: int = 0


class Workers(Protocol):
    """Run a function for each task, wherever; one that is lost is run again, and gives the same."""

    def map(
        self, function: Callable[..., T], tasks: Sequence[Task], advance: Advance = ..., /
    ) -> Iterator[T]:
        """Yield the answers in the order of the tasks; raise the UsageError of one."""


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
