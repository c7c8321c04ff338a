"""Questions to the history: of an operator here, and of the parent, down the tree."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import msgspec

from submerge import SubmergeError
from submerge.protocol.machine import Answered, Event
from submerge.protocol.messages import Question
from submerge_aggregator.history.file import HistoryFile
from submerge_aggregator.history.recorder import HistoryRecorder
from submerge_aggregator.history.scores import ScoresAsked, ScoreSteps, scores_page

T = TypeVar("T")

SCORES = "scores"
"""The topic of a question that the history answers."""


async def read(recorder: HistoryRecorder, question: Callable[[HistoryFile], T]) -> T:
    """Return what the history says; raises SubmergeError if it says nothing."""
    return await asyncio.wrap_future(recorder.ask(question))


def reply(
    recorder: HistoryRecorder,
    question: Question,
    wall: float,
    send: Callable[[Event], None],
) -> None:
    """Answer a question of the parent, by and by.

    send : called once, on the event loop, with the event that answers it
    """
    loop, me = asyncio.get_running_loop(), question.node
    steps = ScoreSteps(question.since_s, question.step_s)
    asked = ScoresAsked(question.group, steps, question.about, question.after)

    def answered(done: Future[bytes]) -> None:
        try:
            said = Answered(question, done.result(), "")
        except SubmergeError as error:
            said = Answered(question, b"", f"{me}: {error}")
        if not loop.is_closed():
            loop.call_soon_threadsafe(send, said)

    def body(file: HistoryFile) -> bytes:
        return msgspec.json.encode(scores_page(file, me, asked, wall))

    recorder.ask(body).add_done_callback(answered)
