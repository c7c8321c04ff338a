"""What waits of a job is bounded, goes in order, and goes after everything else."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from submerge_client.uplink import JobQueue, JobRoom
from submerge_client.uplink.broker import Broker, Parting, Publication
from submerge_client.uplink.line import LATER, WINDOW, BrokerConnection


def test_the_oldest_goes_first():
    """Order is kept."""
    queue = JobQueue[str]()
    for word in "abc":
        queue.put(word, 1)

    assert ["a", "b", "c"] == [queue.take() for _ in range(len(queue))]
    with pytest.raises(IndexError):
        queue.take()


def test_what_finds_no_room_is_dropped():
    """Bytes are counted, given back, and dropped messages are counted."""
    queue = JobQueue[str](10)

    assert [True, True, False] == [queue.put("x", size) for size in (4, 6, 1)]
    queue.take()
    assert [True, False] == [queue.put("x", size) for size in (4, 1)]
    assert 2 == queue.dropped


def test_queues_share_a_room():
    """What one holds another cannot; what is forgotten is given back."""
    room = JobRoom(10)
    one, other = JobQueue[str](8, room), JobQueue[str](8, room)

    assert one.put("x", 8)
    assert not other.put("x", 3)
    one.clear()
    assert 0 == room.used
    assert other.put("x", 3)


class FakePaho:
    """Publishes to a list."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def publish(self, topic: str, data: bytes, **_: Any) -> SimpleNamespace:
        self.sent.append(data)
        return SimpleNamespace(mid=len(self.sent))


def connection() -> BrokerConnection:
    """A connection whose thread does not run."""
    return BrokerConnection(
        Broker("127.0.0.1", 1),
        name="n",
        topics=(),
        will=None,
        opened=lambda: None,
        parted=lambda _: None,
        came=lambda *_: None,
    )


def test_a_broker_gets_reports_before_messages_of_jobs():
    """A report goes first though it was put last, and few of a job are under way at once."""
    line = connection()
    line.put_later(Publication("job", b"lost", False))
    line.is_open = True
    for number in range(WINDOW):
        line.put_later(Publication("job", b"%d" % number, False))
    line.put("report", Publication("report", b"report", True))
    paho = FakePaho()
    line._publish(paho)  # type: ignore[arg-type]

    assert [b"report", *(b"%d" % number for number in range(LATER))] == paho.sent
    line._on_publish(None, None, 2, ReasonCode(PacketTypes.PUBACK), None)
    line._publish(paho)  # type: ignore[arg-type]
    assert b"%d" % LATER == paho.sent[-1]
    assert LATER + 2 == len(paho.sent)


def test_a_broker_that_refuses_a_message_of_a_job_gets_no_more_and_keeps_the_connection():
    """In MQTT 5 it says so. A report that it refuses is a reason to part."""
    line, paho = connection(), FakePaho()
    line.is_open, refused = True, ReasonCode(PacketTypes.PUBACK, identifier=0x87)
    line.put_later(Publication("job", b"x", False))
    line.put("report", Publication("report", b"report", True))
    line._publish(paho)  # type: ignore[arg-type]
    line._on_publish(None, None, 2, refused, None)
    line.put_later(Publication("job", b"y", False))
    line._publish(paho)  # type: ignore[arg-type]

    assert [b"report", b"x"] == paho.sent
    with pytest.raises(Parting, match="refuses a message of n: not authorized"):
        line._on_publish(None, None, 1, refused, None)


def hang_up(line: BrokerConnection, *, after_s: float) -> int:
    """Publish a message of a job, and end the connection; return how many are published."""
    line.is_open, paho = True, FakePaho()
    line.put_later(Publication("job", b"x", False))
    line._publish(paho)  # type: ignore[arg-type]
    line._unacknowledged.clear()
    line._note_hang_up(time.monotonic() + after_s)
    return len(paho.sent)


def test_a_broker_that_hangs_up_at_messages_of_jobs_gets_no_more_of_them():
    """Its rules may have no topic for them: reports keep their connection after the second time."""
    line = connection()

    assert [1, 1, 0, 0] == [hang_up(line, after_s=0.1) for _ in range(4)]


def test_a_connection_that_holds_is_not_taken_for_a_forbidden_message():
    """It ends later, for another reason."""
    line = connection()

    assert [1] * 6 == [hang_up(line, after_s=after) for after in (0.1, 60.0) * 3]
