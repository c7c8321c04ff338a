"""Both ends of a way between nodes, for tests that wait for what comes and never sleep.

An `Ear` is a child's `hear`. A `Host` runs a downlink on an event loop in a thread of its own.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from submerge_aggregator.downlink import Downlink, Inbound
from submerge_client.uplink import Came, Heard, Opened, Parted
from support.patience import PATIENCE_S

T = TypeVar("T")


class Ear:
    """What a child heard, in order."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self._passed = 0
        self._news = threading.Condition()

    def __call__(self, heard: Heard) -> None:
        with self._news:
            self.heard.append(heard)
            self._news.notify_all()

    def until(self, wanted: Callable[[Heard], bool]) -> Heard:
        """Return the next that is wanted, and pass over what comes before it."""
        found: list[Heard] = []

        def look() -> bool:
            while self._passed < len(self.heard) and not found:
                heard = self.heard[self._passed]
                self._passed += 1
                if wanted(heard):
                    found.append(heard)
            return bool(found)

        self._wait(look)
        return found[0]

    def opened(self) -> Opened:
        """Wait until the way is open."""
        return self.until(lambda heard: isinstance(heard, Opened))  # type: ignore[return-value]

    def parted(self) -> Parted:
        """Wait until it is closed."""
        return self.until(lambda heard: isinstance(heard, Parted))  # type: ignore[return-value]

    def came(self, data: bytes) -> Came:
        """Wait for certain bytes."""
        return self.until(  # type: ignore[return-value]
            lambda heard: isinstance(heard, Came) and heard.data == data
        )

    def has(self, *data: bytes) -> None:
        """Wait until all of these have come, in any order."""
        self._wait(lambda: set(data) <= set(self.all_came))

    @property
    def all_came(self) -> list[bytes]:
        """All bytes that came so far."""
        return [heard.data for heard in self.heard if isinstance(heard, Came)]

    def _wait(self, until: Callable[[], bool]) -> None:
        with self._news:
            if not self._news.wait_for(until, PATIENCE_S):
                raise TimeoutError(f"not heard within {PATIENCE_S} s; heard {self.heard}")


class Host:
    """An event loop in a thread, and the downlink on it."""

    def __init__(self, downlink: Downlink) -> None:
        self.downlink = downlink
        self.letters: queue.SimpleQueue[Inbound] = queue.SimpleQueue()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="host")
        self._thread.start()
        try:
            self.wait(downlink.open(self._take))
        except Exception:
            self._end()
            raise

    def _take(self, letter: Inbound) -> None:
        """Keep a letter, as one that was handled."""
        self.letters.put(letter)
        letter.done()

    def wait(self, what: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(PATIENCE_S)

    def call(self, what: Callable[..., T], *arguments: Any) -> T:
        """Call something on the loop."""

        async def called() -> T:
            return what(*arguments)

        return self.wait(called())

    def publish(self, group: str, data: bytes) -> None:
        """Publish, on the loop."""
        self.call(self.downlink.publish, group, data)

    def letter(self, data: bytes) -> Inbound:
        """Return the next letter with certain bytes."""
        end = time.monotonic() + PATIENCE_S
        passed = []
        while True:
            letter = self.letters.get(timeout=max(0.0, end - time.monotonic()))
            if letter.data == data:
                # Two children's letters may come in any order.
                for other in passed:
                    self.letters.put(other)
                return letter
            passed.append(letter)

    def close(self) -> None:
        """Close the downlink, and end the loop."""
        if not self.loop.is_closed():
            self.wait(self.downlink.close())
            self._end()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
