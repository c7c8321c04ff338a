"""Answers of nodes are shared by all who look, for a moment, and then forgotten."""

from __future__ import annotations

import asyncio

import pytest

from submerge import SubmergeError
from submerge_aggregator.http.admin_tree import MOST_KEPT, AskedTooMuch, SharedAnswers


class Node:
    """Answers when it is let, and counts how often it is asked."""

    def __init__(self, fails: bool = False) -> None:
        self.asked, self.fails, self.let = 0, fails, asyncio.Event()

    async def answer(self) -> bytes:
        self.asked += 1
        await self.let.wait()
        if self.fails:
            raise SubmergeError("no reply")
        return b"%d" % self.asked


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_many_who_look_cost_what_one_does():
    """While it is under way, and afterwards; another question is another one."""

    async def run() -> None:
        node, answers = Node(), SharedAnswers()
        looks = [asyncio.create_task(answers.get(("a",), node.answer)) for _ in range(50)]
        await settled()
        node.let.set()
        assert [b"1"] * 50 == await asyncio.gather(*looks)
        assert b"1" == await answers.get(("a",), node.answer)
        assert b"2" == await answers.get(("b",), node.answer)

    asyncio.run(run())


def test_an_answer_is_forgotten_also_if_it_is_not_asked_for_again():
    async def run() -> None:
        node, answers = Node(), SharedAnswers(kept_s=0.0)
        node.let.set()
        assert b"1" == await answers.get(("a",), node.answer)
        await settled()
        assert not answers._asked
        assert b"2" == await answers.get(("a",), node.answer)

    asyncio.run(run())


def test_who_hangs_up_takes_it_from_no_other():
    async def run() -> None:
        node, answers = Node(), SharedAnswers()
        first = asyncio.create_task(answers.get(("a",), node.answer))
        second = asyncio.create_task(answers.get(("a",), node.answer))
        await settled()
        first.cancel()
        await settled()
        node.let.set()
        assert b"1" == await second

    asyncio.run(run())


def test_a_refusal_is_shared_and_a_question_too_many_is_refused():
    """There is room again once earlier ones are forgotten."""

    async def run() -> None:
        node, answers = Node(fails=True), SharedAnswers(kept_s=0.0)
        looks = [asyncio.create_task(answers.get((i,), node.answer)) for i in range(MOST_KEPT)]
        await settled()
        with pytest.raises(AskedTooMuch):
            await answers.get(("more",), node.answer)
        node.let.set()
        failed = await asyncio.gather(*looks, return_exceptions=True)
        assert {"no reply"} == {str(each) for each in failed}
        await settled()
        with pytest.raises(SubmergeError, match="no reply"):
            await answers.get(("more",), node.answer)

    asyncio.run(run())
