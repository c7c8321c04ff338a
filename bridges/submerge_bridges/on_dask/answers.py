"""Answers of tasks: bytes, or an error that a person can mend, as text."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from submerge import SubmergeError, UsageError
from submerge_bridges.on_dask.packing import packed, unpacked

Task = Callable[..., bytes]
"""A function of bytes, and of partitions of a Dask collection."""


def answering(task: Task) -> Task:
    """Return a task whose errors for a person come back as text."""

    @wraps(task)
    def answer(*args: Any) -> bytes:
        try:
            return packed({"ok": True}, [task(*args)])
        except SubmergeError as error:
            return packed({"ok": False, "error": str(error)})

    return answer


def answer_of(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return what a task returned.

    Raises
    ------
    UsageError
        If it says what is wrong with the rows.
    """
    head, pieces = unpacked(data)
    if not head["ok"]:
        raise UsageError(head["error"])
    return unpacked(pieces[0])
