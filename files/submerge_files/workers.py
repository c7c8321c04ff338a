"""Workers: what runs functions on parts of rows, wherever these are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

Advance = Callable[[int], None]  # takes numbers of rows that are done

T = TypeVar("T")


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


class Here:
    """Runs tasks in this process, one after another."""

    def map(
        self, function: Callable[..., T], tasks: Sequence[Task], advance: Advance = lambda _: None
    ) -> Iterator[T]:
        for task in tasks:
            yield function(*task.arguments)
            advance(task.rows)


HERE = Here()
