"""Cluster: a Dask scheduler that runs our tasks; their answers, values, in the order of the tasks.

The scheduler runs a task again whose worker, or whose answer, was lost before it was fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import submerge
from submerge import SubmergeError, UsageError

P = ParamSpec("P")
T = TypeVar("T")
Advance = Callable[[int], None]

CONNECT_S = 20.0
"""How long it waits for a scheduler."""

RETRIES = 3
"""How often a task is run again after an error of the cluster; lost workers count apart."""


def answering(task: Callable[P, T]) -> Callable[P, T | UsageError]:
    """Return a task that returns an error which a person can mend: it is not run again for it."""

    @wraps(task)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T | UsageError:
        try:
            return task(*args, **kwargs)
        except SubmergeError as error:
            return UsageError(str(error))

    return answer


def answered(found: T | UsageError) -> T:
    """Return what a task returned, or raise what is wrong with the rows."""
    if isinstance(found, UsageError):
        raise found
    return found


class Call(NamedTuple):
    """A task with its arguments."""

    arguments: tuple[Any, ...]
    rows: int = 0


class Cluster:
    """Runs tasks on the workers of a scheduler."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._check()

    @property
    def workers(self) -> int:
        """Threads of all workers now; at least 1."""
        return max(1, int(sum(self._client.nthreads().values())))

    def answers(
        self,
        task: Callable[..., T | UsageError],
        calls: Sequence[Call],
        advance: Advance = lambda _: None,
    ) -> Iterator[T]:
        """Run a task for each call; yield what they return, in order."""
        import distributed

        as_completed: Any = distributed.as_completed
        futures = [self._future(task, call) for call in calls]
        places = {future.key: place for place, future in enumerate(futures)}
        waiting: dict[int, T] = {}
        following = 0
        try:
            for future in as_completed(futures, loop=self._client.loop):
                place = places[future.key]
                waiting[place] = _answer(future)
                future.release()
                advance(calls[place].rows)
                while following in waiting:
                    yield waiting.pop(following)
                    following += 1
        finally:
            if left := [each for each in futures if not each.done()]:
                self._client.cancel(left)

    def share(self, value: object) -> Any:
        """Give all workers the same value, which many tasks are given."""
        return self._client.scatter(value, broadcast=True, hash=False)

    def value(self, partition: Any) -> Any:
        """Compute one partition of a Dask collection, and fetch it."""
        return self._client.compute(partition, retries=RETRIES).result()

    def _future(self, task: Callable[..., object], call: Call) -> Any:
        if not any(hasattr(each, "__dask_graph__") for each in call.arguments):
            return self._client.submit(task, *call.arguments, pure=False, retries=RETRIES)
        from dask.delayed import delayed

        # Partitions are computed where the task runs, and let go with it.
        later = delayed(task, pure=False, traverse=False)(*call.arguments)
        return self._client.compute(later, retries=RETRIES)

    def _check(self) -> None:
        """Refuse a cluster without workers, or with another version of ours."""
        versions = self._client.run(_version)
        if not versions:
            raise UsageError(
                "expected a Dask scheduler with workers, got one without: start `dask worker`"
            )
        others = {version for version in versions.values() if version != submerge.__version__}
        if others:
            raise UsageError(
                f"expected submerge {submerge.__version__} on all workers, got"
                f" {', '.join(sorted(others))}: install the same version"
            )


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


def _version() -> str:
    return submerge.__version__


def _answer(future: Any) -> Any:
    """Return what a task returned, or raise what it could not read."""
    try:
        found = future.result()
    except Exception as error:
        # What fails here is the cluster, or what it runs: the first line says it.
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise UsageError(
            f"expected the workers to run each task, got {reason}: see the workers' logs"
        ) from error
    return answered(found)
