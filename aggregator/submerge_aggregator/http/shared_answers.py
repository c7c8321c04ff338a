"""SharedAnswers: what nodes replied a moment ago, so that many who look cost what one does.

1. While a question is under way, all who ask it get the same answer.
2. An answer is forgotten `KEPT_S` after it came, also if it is not asked for again. A refusal is
   kept for as long: it may have taken ten seconds, too.
3. There are at most `most`, of 64 KiB each: those that are kept, and questions under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from submerge import SubmergeError

KEPT_S = 2.0
"""How long an answer is shown again."""

MOST_KEPT = 64
"""Answers, where nothing else is said."""

Key = tuple[object, ...]


class AskedTooMuch(SubmergeError):
    """So much is asked at once that one more has to wait."""


class SharedAnswers:
    """The newest answers, by what was asked; on one event loop."""

    def __init__(self, kept_s: float = KEPT_S, most: int = MOST_KEPT) -> None:
        self._kept_s, self._most = kept_s, most
        self._asked: dict[Key, asyncio.Task[bytes]] = {}

    async def get(self, key: Key, ask: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """Return the answer to a question, which is asked now unless it was just asked.

        Raises AskedTooMuch if there is no room for one more.
        """
        asked = self._asked.get(key)
        if asked is None:
            if len(self._asked) >= self._most:
                raise AskedTooMuch("nodes are asked too much at once: try again in two seconds")
            asked = self._asked[key] = asyncio.create_task(ask())
            asked.add_done_callback(lambda task: self._forget_soon(key, task))
        # Who hangs up does not take the answer from the others.
        return await asyncio.shield(asked)

    def _forget_soon(self, key: Key, task: asyncio.Task[bytes]) -> None:
        if not task.cancelled():
            task.exception()  # seen: all who asked may have hung up
        task.get_loop().call_later(self._kept_s, self._asked.pop, key, None)
