"""OpenQuestions: questions of operators here to nodes below, and what becomes of them."""

from __future__ import annotations

import asyncio
import secrets

from submerge import SubmergeError
from submerge.protocol.machine import Ask, Replied
from submerge.protocol.messages import PATIENCE_S, Incarnation, Question

MARGIN_S = 1.0
"""The machine forgets a question after `PATIENCE_S`; what it still says comes within this."""


class NoReply(SubmergeError):
    """A node below did not reply, or could not."""


class OpenQuestions:
    """The questions that wait for a reply; for the event loop's thread."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[Replied]] = {}

    def begin(
        self,
        group: str,
        path: tuple[str, ...],
        topic: str,
        *,
        about: str = "",
        after: str = "",
        span: tuple[int, int] = (0, 0),
    ) -> Ask:
        """Return the event that asks a node below; `wait` for its number."""
        number = 1 + secrets.randbelow(2**63 - 1)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        # The machine says which child it goes to, and for which of its incarnations.
        nowhere = Incarnation(0, 0)
        return Ask(Question("", group, nowhere, number, path, topic, about, after, *span))

    def take(self, replied: Replied) -> None:
        """Take a reply; one that comes too late is dropped."""
        waiting = self._waiting.get(replied.number)
        if waiting is not None and not waiting.done():
            waiting.set_result(replied)

    async def wait(self, asked: Ask) -> bytes:
        """Return the reply's body; raises NoReply if there is none, or none in time."""
        number, path = asked.question.number, asked.question.path
        try:
            replied = await asyncio.wait_for(self._waiting[number], PATIENCE_S + MARGIN_S)
        except TimeoutError:
            what = f"{'/'.join(path)} did not reply within {PATIENCE_S:g} s"
            raise NoReply(f"{what}: is it connected?") from None
        finally:
            del self._waiting[number]
        if replied.problem:
            raise NoReply(replied.problem)
        return replied.body
