"""connected(): the workers of a Dask scheduler, for `--dask ADDRESS` and for `submerge.dask`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from submerge import UsageError
from submerge_bridges.on_dask.cluster import Cluster

CONNECT_S = 20.0  # how long it waits for a scheduler


@contextmanager
def connected(where: Any) -> Iterator[Cluster]:
    """Connect to a scheduler at an address; None is the client that is in use."""
    # A `distributed.Client` that is given stays open.
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise UsageError(
            f"Dask needs {error.name}, which is not installed: pip install 'submerge[dask]'"
        ) from error
    if where is None:
        try:
            yield Cluster(distributed.get_client())
        except ValueError as error:
            raise UsageError(
                "expected a Dask client, got none: make a distributed.Client first, or give its"
                " scheduler's address as client"
            ) from error
        return
    if not isinstance(where, str):
        yield Cluster(where)
        return
    try:
        make: Any = distributed.Client
        client = make(where, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UsageError(
            f"expected a Dask scheduler at {where}, got: {reason}; start `dask scheduler`, and"
            " give its address, such as tcp://10.0.0.5:8786"
        ) from error
    with client:
        yield Cluster(client)
