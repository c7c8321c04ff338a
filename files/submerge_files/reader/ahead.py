"""ahead(): what a reader yields next is made in a thread, while what it yielded is in use.

1. Order, items and errors are those of the reader: an error is raised where its item would be.
2. One item is made beside the one in use: memory stays flat.
3. A reader that is left early is closed, and its thread has ended when the caller goes on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, TypeVar

Item = TypeVar("Item")


def ahead(items: Generator[Item, None, None]) -> Iterator[Item]:
    """Yield the same items, read ahead."""
    end: Any = object()
    # The thread ends before the reader is closed: what runs cannot be.
    with closing(items), ThreadPoolExecutor(1, "ahead") as pool:
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield item
