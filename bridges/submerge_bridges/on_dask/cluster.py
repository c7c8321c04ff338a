"""Cluster: a Dask scheduler whose workers are `submerge_files.workers.Workers`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

import submerge
from submerge import SubmergeError, UsageError
from submerge_files.workers import Advance, Task

T = TypeVar("T")

RETRIES = 3  # how often a task is run again after an error of the cluster; lost workers count apart


class Cluster:
    """Runs tasks on the workers of a scheduler."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._check()

    def map(
        self, function: Callable[..., T], tasks: Sequence[Task], advance: Advance = lambda _: None
    ) -> Iterator[T]:
        import distributed

        as_completed: Any = distributed.as_completed
        shared = self._shared(function)
        futures = [self._future(shared, *task.arguments) for task in tasks]
        places = {future.key: place for place, future in enumerate(futures)}
        waiting: dict[int, T] = {}
        following = 0
        try:
            for future in as_completed(futures, loop=self._client.loop):
                place = places[future.key]
                waiting[place] = _fetched(future)
                future.release()
                advance(tasks[place].rows)
                while following in waiting:
                    yield waiting.pop(following)
                    following += 1
        finally:
            if left := [each for each in futures if not each.done()]:
                self._client.cancel(left)

    def value(self, part: Any) -> Any:
        """Compute what Dask computes later, and fetch it."""
        return self._client.compute(part, retries=RETRIES).result()

    def _shared(self, function: Callable[..., T]) -> Any:
        """Give workers what each task needs once: it may hold models."""
        import dask

        # As a task, it is made again if its worker is lost. What is scattered is not: the scheduler
        # soon keeps one copy alone, whatever was broadcast.
        config: Any = dask.config
        with config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            return self._client.submit(_same, function, pure=False, retries=RETRIES)

    def _future(self, *call: Any) -> Any:
        if not any(hasattr(each, "__dask_graph__") for each in call):
            return self._client.submit(run, *call, pure=False, retries=RETRIES)
        from dask.delayed import delayed

        # Partitions are computed where the task runs, and let go with it.
        later = delayed(run, pure=False, traverse=False)(*call)
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


def run(function: Callable[..., T], *arguments: Any) -> T | UsageError:
    """Run a task; return an error that a person can mend: it is not run again for it."""
    _keep_blocks()
    try:
        return function(*arguments)
    except SubmergeError as error:
        return UsageError(str(error))


def _same(value: T) -> T:
    return value


def _version() -> str:
    return submerge.__version__


def answer_of(found: T | UsageError) -> T:
    """Return what a task returned, or raise what is wrong with the rows."""
    if isinstance(found, UsageError):
        raise found
    return found


def _fetched(future: Any) -> Any:
    try:
        found = future.result()
    except Exception as error:
        # What fails here is the cluster, or what it runs: the first line says it.
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise UsageError(
            f"expected the workers to run each task, got {reason}: see the workers' logs"
        ) from error
    return answer_of(found)


KEPT, LARGEST = 64 << 20, 32 << 20
"""Bytes that a worker keeps for the next blocks of rows, at most; larger blocks go back at once."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


@cache
def _keep_blocks() -> bool:
    """Let the C library keep freed blocks of rows, once in a process; others are as they are."""
    # Dask starts workers with MALLOC_TRIM_THRESHOLD_, by which glibc gives each freed block back:
    # then every block of rows costs its page faults again.
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, KEPT))
