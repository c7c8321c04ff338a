"""Questions to the history: of an operator here, and of the parent, down the tree."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import msgspec

from submerge import SubmergeError, UsageError
from submerge.protocol.machine import Answered, Event
from submerge.protocol.messages import MOST_BODY, MOST_STEP_S, Question
from submerge.protocol.score_trail import MINUTE_S
from submerge_aggregator.history.file import HOUR, HistoryFile, NodeLevels, ScoresPage, steps_of
from submerge_aggregator.history.recorder import HistoryRecorder
from submerge_aggregator.questions.views import AlarmView

MOST_STEPS = 2016  # most steps that can be asked for: a week of five minutes each

FRAME, OF_NODE = 300, 30
"""Bytes of a page without its nodes, and of a node without its name and its levels."""


class ScoreSteps(NamedTuple):
    since_s: int
    step_s: int

    @property
    def first_s(self) -> int:
        return self.since_s // self.step_s * self.step_s

    def count(self, wall: float) -> int:
        """Return the number of steps up to now; 0 if the first one is yet to come."""
        if self.step_s % MINUTE_S or not MINUTE_S <= self.step_s <= MOST_STEP_S:
            raise UsageError(
                f"a step is a multiple of 60 s, at most {MOST_STEP_S}, got {self.step_s}"
            )
        count = max(0, int((wall - self.first_s) // self.step_s) + 1)
        if count > MOST_STEPS:
            raise UsageError(
                f"expected at most {MOST_STEPS} steps, got {count}: ask for longer steps, or for"
                " less time"
            )
        return count


class ScoresAsked(NamedTuple):
    group: str
    steps: ScoreSteps
    node: str = ""
    after: str = ""


def scores_page(file: HistoryFile, me: str, asked: ScoresAsked, wall: float) -> ScoresPage:
    steps, count = asked.steps, asked.steps.count(wall)
    first, step = int(steps.first_s // MINUTE_S), int(steps.step_s // MINUTE_S)
    hours = range(first // HOUR, (first + step * count - 1) // HOUR + 1)
    size, of_node = FRAME, OF_NODE + 4 * -(-count // 3)
    found = file.levels(
        *(asked.group, hours),
        node=asked.node,
        after=asked.after,
        most=1 + max(1, (MOST_BODY - size) // of_node),
    )
    nodes = list[NodeLevels]()
    for name, levels in found.items():
        size += of_node + len(name)
        if nodes and size > MOST_BODY:
            return ScoresPage(me, asked.group, steps.step_s, steps.first_s, nodes, more=True)
        nodes.append(NodeLevels(name, steps_of(levels, first, step, count)))
    return ScoresPage(me, asked.group, steps.step_s, steps.first_s, nodes)


MOST_ALARMS = 200

MOST_VERSIONS = 500  # the newest versions, which one page has


def past_alarms(file: HistoryFile, group: str, before: float, after: str = "") -> dict[str, Any]:
    """Return alarms that have ended or are judged: an `AlarmView` each, the newest first."""
    # Those before a time, and of that time itself those whose id follows `after`.
    rows = file.alarms(group, before, MOST_ALARMS + 1, after=after)
    shown = [msgspec.Raw(row.view) for row in rows[:MOST_ALARMS]]
    return {"alarms": shown, "more": len(rows) > MOST_ALARMS}


def known_alarms(
    file: HistoryFile, group: str, listed: Iterable[AlarmView], wall: float
) -> tuple[list[AlarmView], dict[str, int]]:
    """Return the newest alarms, once, and the highest level of each one's rows in its trail."""
    views = (row.view for row in file.alarms(group, math.inf, MOST_ALARMS))
    known = {each.id: each for each in (msgspec.json.decode(v, type=AlarmView) for v in views)}
    known |= {each.id: each for each in listed}
    levels, found = dict[str, int](), list[AlarmView]()
    for each in known.values():
        if each.parts or each.is_quiet:
            continue
        first, last = int(each.began // MINUTE_S), int((each.ended or wall) // MINUTE_S)
        hours = range(first // HOUR, last // HOUR + 1)
        held = file.levels(group, hours, node=each.node, most=1).get(each.node, {})
        levels[each.id] = max(steps_of(held, first, 1, max(last - first, 0) + 1))
        found.append(each)
    return found, levels


def versions(file: HistoryFile, group: str) -> dict[str, Any]:
    """Return versions of a group's model: a `VersionView` each, the newest first."""
    rows = file.versions(group, MOST_VERSIONS)
    return {"versions": [msgspec.Raw(row.view) for row in rows]}


T = TypeVar("T")

SCORES = "scores"  # the topic of a question that the history answers


async def read(recorder: HistoryRecorder, question: Callable[[HistoryFile], T]) -> T:
    """Return what the history says; raises SubmergeError if it says nothing."""
    return await asyncio.wrap_future(recorder.ask(question))


def reply(
    recorder: HistoryRecorder, question: Question, wall: float, send: Callable[[Event], None]
) -> None:
    """Answer a question of the parent, by and by; `send` is called once, on the event loop."""
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
