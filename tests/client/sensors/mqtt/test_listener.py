"""What the sensor asks of a broker: topics in parts, and a password for each try."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

pytest.importorskip("paho")

from submerge_client.config.links import Link
from submerge_client.sensors.mqtt.readings import KINDS, BrokerListener
from submerge_client.sensors.tally import ProblemTally
from support.patience import until

NOWHERE = {"url": "mqtt://127.0.0.1:1", "insecure": True}


def listener(topics: int = 1, **link: Any) -> tuple[BrokerListener, ProblemTally, list[Any]]:
    said: list[Any] = []

    def note(what: str, /, **facts: Any) -> None:
        said.append((what, facts))

    tally = ProblemTally(note, *KINDS)
    names = tuple(f"plant/{i}" for i in range(topics))
    at = Link(**(NOWHERE | link))
    return BrokerListener(at, names, lambda _: (), tally=tally, note=note), tally, said


class Granting:
    """A client of paho, as far as subscriptions go."""

    def __init__(self) -> None:
        self.parts: list[int] = []

    def subscribe(self, topics: list[Any]) -> tuple[int, int]:
        self.parts.append(len(topics))
        return 0, len(self.parts)


class Code:
    def __init__(self, *, is_failure: bool) -> None:
        self.is_failure = is_failure


def test_topics_are_subscribed_to_eight_at_a_time() -> None:
    """And what is refused is named, whichever part it was in."""
    heard, _, said = listener(20)
    client = Granting()
    heard._on_connect(client, None, None, Code(is_failure=False), None)
    assert [8, 8, 4] == client.parts

    for mid, codes in ((2, [False] * 8), (1, [False] * 8), (3, [False, True, False, False])):
        heard._on_subscribe(client, None, mid, [Code(is_failure=each) for each in codes], None)
    refused = [facts["topic"] for what, facts in said if what == "subscription refused"]
    assert ["plant/17"] == refused


def test_a_command_that_prints_no_password_is_a_broker_out_of_reach() -> None:
    """In the words of the command, at once; and it is tried again."""
    command = (sys.executable, "-c", "raise SystemExit(3)")
    heard, tally, said = listener(username="u", password_command=command)
    thread = threading.Thread(target=heard.listen, daemon=True)
    thread.start()
    until(lambda: tally.counts["unreachable"] >= 3)
    heard.end()
    thread.join(60)

    assert not tally.counts["failed"]
    why = [facts["why"] for what, facts in said if what == "broker unreachable, trying on"]
    assert "expected one line, the password, got status 3" in why[0]
