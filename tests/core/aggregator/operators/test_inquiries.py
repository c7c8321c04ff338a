"""Questions go down the tree by their path, and replies come back, each once and in time."""

from __future__ import annotations

import pytest

from submerge.aggregator.operators.inquiries import BURST, MOST_OPEN
from submerge.client import node as clients
from submerge.protocol.machine import Answered, Ask, Consult, Received, Replied, Send
from submerge.protocol.messages import (
    MOST_BODY,
    PATIENCE_S,
    Incarnation,
    Question,
    QuestionReply,
    Reason,
    ReplyTaken,
    Stamp,
)
from support.nodes import GROUP, Table

NOWHERE = Incarnation(0, 0)


def chain() -> Table:
    """A root, two aggregators below each other, and a client that has reported."""
    table = Table()
    table.root("r")
    table.aggregator("a")
    table.aggregator("b", under="a")
    table.client("c", under="b")
    for n in (1, 1, 0, 0):
        table.reads("c", n)
        table.passes(360.0)
    return table


def ask(*path: str, number: int = 7, group: str = GROUP, topic: str = "nodes") -> Ask:
    return Ask(Question("", group, NOWHERE, number, path, topic))


def question(table: Table, label: str, topic: str = "nodes") -> Received:
    """What the parent of a node would ask it."""
    parent = {"a": "r", "c": "b"}[label]
    pinned = table.hosts[parent].node.incarnation
    return Received(Question(label, GROUP, pinned, 7, (), topic))


def replied(effects: list[object]) -> list[Replied]:
    return [each for each in effects if isinstance(each, Replied)]


class Driver:
    """Steps nodes by hand, and lets each that is consulted say its name."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.consulted: list[str] = []
        self.replied: list[Replied] = []

    def step(self, label: str, event: object) -> None:
        for effect in self.table.step(label, event):
            if isinstance(effect, Consult):
                self.consulted.append(label)
                self.step(label, Answered(effect.question, label.encode()))
            elif isinstance(effect, Replied):
                self.replied.append(effect)

    def run(self) -> None:
        while self.table.wire:
            letter = self.table.wire.pop(0)
            self.step(letter.to, Received(letter.message))


@pytest.mark.parametrize("path", [("a",), ("a", "b")])
def test_the_last_of_the_path_replies(path):
    """Once; and nothing of it is kept."""
    table = chain()
    driver, before = Driver(table), {label: dict(host.disk) for label, host in table.hosts.items()}
    driver.step("r", ask(*path))
    driver.run()
    assert [path[-1]] == driver.consulted
    assert [Replied(7, path[-1].encode(), "")] == driver.replied
    assert before == {label: dict(host.disk) for label, host in table.hosts.items()}


@pytest.mark.parametrize("topic", clients.TOPICS)
def test_a_client_is_consulted_about_itself(topic):
    """And replies through all aggregators above, which keep nothing of it."""
    table = chain()
    driver, before = Driver(table), {label: dict(host.disk) for label, host in table.hosts.items()}
    driver.step("r", ask("a", "b", "c", topic=topic))
    driver.run()
    assert ["c"] == driver.consulted
    assert [Replied(7, b"c", "")] == driver.replied
    assert before == {label: dict(host.disk) for label, host in table.hosts.items()}


def test_a_client_says_what_it_knows_nothing_of():
    driver = Driver(chain())
    driver.step("r", ask("a", "b", "c", topic="weather"))
    driver.run()
    assert [Replied(7, b"", "c is a client, and knows nothing of weather")] == driver.replied


def test_a_client_sends_no_reply_that_is_too_large():
    """The border above would refuse it, and who asked would wait in vain."""
    table = chain()
    (consult,) = table.step("c", question(table, "c", topic="recent"))
    for body, problem in [
        (b"x" * MOST_BODY, ""),
        (b"x" * (MOST_BODY + 1), "c has a reply that is too large to be sent"),
    ]:
        (sent,) = table.step("c", Answered(consult.question, body))
        assert (b"" if problem else body, problem) == (sent.message.body, sent.message.problem)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (("x",), "x does not report to r in group room"),
        (("a", "x"), "x does not report to a in group room"),
        (("a", "b", "c"), "c is a client: no node reports to it"),
        (("a", "b", "c", "d"), "c is a client: no node reports to it"),
    ],
)
def test_a_way_that_leads_nowhere_is_said(path, why):
    driver = Driver(chain())
    driver.step("r", ask(*path))
    driver.run()
    assert [Replied(7, b"", why)] == driver.replied
    assert not driver.consulted


def test_a_group_that_is_not_served_is_said():
    driver = Driver(chain())
    driver.step("r", ask("a", group="other"))
    assert [Replied(7, b"", "r serves no group other")] == driver.replied


def test_a_reply_is_taken_once_and_of_the_child_that_was_asked():
    table = chain()
    table.step("r", ask("a"))
    for sender, number, reason in [
        ("x", 7, Reason.STALE),
        ("a", 8, Reason.STALE),
        ("a", 7, Reason.ACK),
        ("a", 7, Reason.STALE),
    ]:
        reply = QuestionReply(Stamp(sender, GROUP, NOWHERE, 1), number, b"{}")
        effects = table.step("r", Received(reply))
        assert [reason] == [each.message.reason for each in effects if isinstance(each, Send)]
        assert (reason is Reason.ACK) == bool(replied(effects))


def test_a_reply_that_comes_late_is_dropped():
    table = chain()
    table.step("r", ask("a"))
    table.time += PATIENCE_S + 1
    effects = table.step("r", Received(QuestionReply(Stamp("a", GROUP, NOWHERE, 1), 7, b"{}")))
    assert not replied(effects)


@pytest.mark.parametrize("label", ["a", "c"])
def test_a_node_replies_to_its_own_parent_alone(label):
    """Any process can publish to a broker's topics, where nothing forbids it."""
    table = chain()
    asked = question(table, label).message
    for foreign in (asked._replace(pinned=NOWHERE), asked._replace(node="x")):
        assert not table.step(label, Received(foreign))
    assert table.step(label, Received(asked))


def test_who_asks_too_much_is_refused_and_later_heard_again():
    table = chain()
    asked = question(table, "a")
    answers = [table.step("a", asked) for _ in range(int(BURST) + 8)]
    refused = [each[0] for each in answers if not isinstance(each[0], Consult)]
    assert 8 == len(refused)
    assert "too much at once" in refused[0].message.problem
    table.time += 60.0
    assert isinstance(table.step("a", asked)[0], Consult)


def test_a_client_replies_so_often_and_later_again():
    table = chain()
    asked = question(table, "c")
    assert clients.BURST == sum(bool(table.step("c", asked)) for _ in range(20))
    table.time += 60.0
    assert table.step("c", asked)


def test_open_questions_are_bounded():
    """And forgotten after a while: a child that never replies holds no place for ever."""
    table = chain()
    for number in range(1, 4 * MOST_OPEN):
        table.time += PATIENCE_S / MOST_OPEN / 2
        table.step("r", ask("a", number=number))
        assert len(table.hosts["r"].node.inquiries._open) <= MOST_OPEN
    table.time += 2 * PATIENCE_S
    assert not replied(table.step("r", ask("a", number=9999)))


@pytest.mark.parametrize("label", ["a", "c"])
def test_that_a_reply_has_arrived_needs_nothing(label):
    taken = ReplyTaken(Stamp(label, GROUP, NOWHERE, 0), Reason.ACK)
    assert not chain().step(label, Received(taken))
