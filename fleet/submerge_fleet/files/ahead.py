"""ahead(): what a reader yields next is made in a thread, while what it yielded is in use.

1. Order, items and errors are those of the reader: an error is raised where its item would be.
2. `AHEAD` items wait at most, beside the one in use and one that was made: memory stays flat.
3. A reader that is left early is closed, and its thread has ended when the caller goes on.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TypeVar

Item = TypeVar("Item")

AHEAD = 1
"""Items that wait. More smooth out readers of uneven pace, and take as many times the memory."""


class _End:
    """What comes behind the last item.

    error : raised by the reader; None if it came to its end
    """

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def ahead(items: Generator[Item, None, None]) -> Iterator[Item]:
    """Yield the same items, read ahead."""
    ready: queue.Queue[Item | _End] = queue.Queue(AHEAD)
    stop = threading.Event()
    # A program that ends in the middle does not wait for it.
    thread = threading.Thread(target=_read, args=(items, ready, stop), name="ahead", daemon=True)
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stop.set()
        _empty(ready)
        thread.join()


def _read(
    items: Generator[Item, None, None], ready: queue.Queue[Item | _End], stop: threading.Event
) -> None:
    end = _End()
    try:
        with closing(items):
            for item in items:
                ready.put(item)
                if stop.is_set():
                    return
    except BaseException as error:
        end = _End(error)
    if not stop.is_set():
        ready.put(end)


def _empty(ready: queue.Queue[Item | _End]) -> None:
    """Make room for what the thread may be about to put: it puts nothing after that."""
    while True:
        try:
            ready.get_nowait()
        except queue.Empty:
            return
