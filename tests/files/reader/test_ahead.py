"""ahead(): what a reader yields, made in a thread while what it yielded is in use."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from submerge_files.reader.recordings import ahead


class Reader:
    """Yields numbers, and knows how many it made, where, and whether it was closed."""

    def __init__(self, n: int, error: BaseException | None = None) -> None:
        self.n, self.error = n, error
        self.made, self.closed, self.threads = 0, False, set[threading.Thread]()

    def items(self) -> Generator[int, None, None]:
        try:
            for i in range(self.n):
                self.made += 1
                self.threads.add(threading.current_thread())
                yield i
            if self.error is not None:
                raise self.error
        finally:
            self.closed = True


@pytest.mark.parametrize("n", [0, 1, 50])
def test_all_items_come_in_order(n):
    """Made in another thread, which has ended when they are through."""
    reader = Reader(n)

    assert list(range(n)) == list(ahead(reader.items()))
    assert reader.closed
    assert threading.current_thread() not in reader.threads
    assert not any(thread.is_alive() for thread in reader.threads)


@pytest.mark.parametrize("error", [ValueError("row 3"), KeyboardInterrupt()])
def test_an_error_comes_through(error):
    """The same object, after the items before it."""
    read = ahead(Reader(3, error).items())

    assert [0, 1, 2] == [next(read) for _ in range(3)]
    with pytest.raises(type(error)) as raised:
        next(read)
    assert error is raised.value


@pytest.mark.parametrize("used", range(1, 6))
def test_a_reader_that_is_left_early_is_closed(used):
    """Its thread has ended then, and few items were made in vain."""
    reader = Reader(1000)
    items = reader.items()
    read = ahead(items)
    for _ in range(used):
        next(read)
    read.close()

    assert reader.closed
    assert not any(thread.is_alive() for thread in reader.threads)
    assert used <= reader.made <= used + 1


def test_nothing_is_read_before_it_is_asked_for():
    """As with any generator."""
    reader = Reader(3)
    ahead(reader.items())

    assert 0 == reader.made
