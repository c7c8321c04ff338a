"""The agent: rows in, messages out, one thread; what fails around it does not stop it."""

from __future__ import annotations

import io
import json
import threading
import time
from typing import ClassVar

import numpy as np
import pytest

from submerge import Schema, UsageError
from submerge.client.node import ClientNode
from submerge.protocol.machine import Reading
from submerge.protocol.messages import Answer, Hello, Incarnation, Joined, Reason
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge_client import logs
from submerge_client.agent import Agent
from submerge_client.checkpoint import CheckpointFile, RecordStore
from submerge_client.clock import now
from submerge_client.sensors.gather import Lags
from submerge_client.uplink import Came, Opened, Parted, TooLarge
from submerge_client.watchdog import Watchdog
from submerge_proto.wire import codec
from support.patience import PATIENCE_S, until

PARENT = Incarnation(1_600_000_000_000, 5)
ROWS = np.random.default_rng(0).standard_normal((200, 4))


class Parent:
    """An uplink whose other end answers at once, or does not; what it heard is in `heard`."""

    def __init__(self, *, answers=True, message=()):
        self.heard, self.closed = [], False
        self._answers, self._lines_of = answers, message

    def open(self, hear):
        self._hear = hear
        if self._answers:
            hear(Opened())
            hear(Came("watch", codec.encode(Hello("root", PARENT, True, 1))))
        for word in self._lines_of:
            hear(word)

    def send(self, kind, group, data, *, final=False):
        message = codec.decode(kind, data)
        self.heard.append(message)
        if not self._answers:
            return
        if kind == "join":
            said = Joined(
                message.stamp._replace(seq=0),
                Reason.ACK,
                b"",
                PARENT,
                True,
                0,
                Schema.anonymous(message_width(message)).canonical,
            )
        else:
            seq = message.stamp.seq
            said = Answer(message.stamp, Reason.ACK, b"", PARENT, True, seq, PARENT, seq)
        self._hear(Came(codec.kind_of(said), codec.encode(said)))

    def close(self):
        self.closed = True


def message_width(join):
    return Schema.parse(join.schema).width


class Rows:
    """A sensor that hands over rows in blocks, then ends, fails, or waits to be stopped."""

    counts: ClassVar[dict[str, int]] = {}

    def __init__(self, rows=ROWS, *, fails=None, waits=False):
        self._rows, self._fails, self._waits = rows, fails, waits

    def read(self, hand, stop):
        for first in range(0, len(self._rows), 50):
            hand(self._rows[first : first + 50])
        if self._fails is not None:
            raise self._fails
        if self._waits:
            stop.wait()


def agent(
    *,
    uplink,
    sensor=None,
    disk=None,
    lags=1,
    linger_s=0.5,
    watchdog=None,
    gather_s=0.0,
    **settings,
):
    """An agent around a real node."""
    node = ClientNode(
        ClientSettings("c", "g", "root", report_every_s=0.05, **settings),
        Schema.anonymous(4 * lags),
        Subspaces(2),
        np.random.default_rng(),
    )
    return Agent(
        node,
        uplink=uplink,
        sensor=sensor or Rows(),
        disk=disk or RecordStore(None),
        lags=Lags(lags, 4),
        scores=None,
        clock=now,
        gather_s=gather_s,
        linger_s=linger_s,
        watchdog=watchdog,
    )


class OneByOne(Rows):
    """Hands over each row by itself, the second one when the first was taken."""

    driven = None

    def read(self, hand, stop):
        hand(self._rows[:1])
        until(lambda: self.driven.rows)
        for row in self._rows[1:]:
            hand(row[None])
        if self._waits:
            self.driven.stop()
            stop.wait()


def said(log, what):
    """Log lines that say something, as JSON has them."""
    lines = map(json.loads, log.getvalue().splitlines())
    return [line for line in lines if line["what"] == what]


@pytest.fixture(autouse=True)
def log():
    """What is logged, as lines of JSON."""
    lines = io.StringIO()
    logs.begin("debug", as_json=True, stream=lines)
    return lines


class Holding(Rows):
    """Says of each number whether it is held: in every second row, all are."""

    def read(self, hand, stop):
        hand(ROWS, held=np.arange(ROWS.size).reshape(ROWS.shape) // 4 % 2 == 1)


@pytest.mark.parametrize("lags", [1, 3])
def test_what_a_sensor_holds_goes_with_its_rows(lags, monkeypatch):
    """Also behind the rows that only begin a window of lags."""
    driven, held = agent(uplink=Parent(), sensor=Holding(), lags=lags), []
    step = driven.node.step

    def stepped(event, at):
        if isinstance(event, Reading):
            held.extend(zip(event.rows[:, 0].tolist(), event.held[:, 0].tolist(), strict=True))
        return step(event, at)

    monkeypatch.setattr(driven.node, "step", stepped)
    driven.run()

    expected = [(value, i % 2 == 1) for i, value in enumerate(ROWS[:, 0].tolist())]
    assert expected[lags - 1 :] == held


def test_every_row_is_delivered_before_it_ends():
    """The sensor ends; what it said is reported and acknowledged; status 0."""
    parent = Parent()
    driven = agent(uplink=parent)

    assert 0 == driven.run()
    assert (200, 200) == (driven.rows, driven.delivered)
    assert parent.closed
    assert 200 == parent.heard[-1].counts.learnt


def test_a_parent_that_is_away_costs_no_more_than_the_lingering(log):
    """It ends all the same, and says what it could not tell."""
    driven = agent(uplink=Parent(answers=False, message=[Parted("nobody there")]), linger_s=0.1)

    assert 0 == driven.run()
    (waiting,) = said(log, "waiting for the parent to have everything")
    assert 0.1 == waiting["at_most_s"]
    (ended,) = said(log, "ended")
    assert (200, "warning") == (ended["lost"], ended["level"])


def test_a_sensor_that_fails_ends_it_with_status_1(log):
    """What was read before is reported first."""
    parent = Parent()
    driven = agent(uplink=parent, sensor=Rows(fails=UsageError("line 7: expected a number")))

    assert 1 == driven.run()
    assert 200 == driven.delivered
    assert "line 7" in said(log, "the sensor failed")[0]["why"]


def test_it_ends_when_asked():
    """From another thread, or a signal handler, while the sensor has more."""
    driven = agent(uplink=Parent(), sensor=Rows(waits=True))
    threading.Timer(0.2, driven.stop).start()

    assert 0 == driven.run()
    assert 200 == driven.delivered


@pytest.mark.parametrize("waits", [False, True], ids=["the sensor ends", "it is asked"])
def test_rows_that_wait_for_others_are_delivered_at_the_end(waits):
    """All but the first wait for an hour: the end does not."""
    parent = Parent()
    sensor = OneByOne(ROWS[:40], waits=waits)
    driven = sensor.driven = agent(uplink=parent, sensor=sensor, gather_s=3600.0)

    assert 0 == driven.run()
    assert (40, 40) == (driven.rows, driven.delivered)
    assert 40 == parent.heard[-1].counts.learnt


class Ahead(Rows):
    """Asks for the end, and then hands over more rows than may wait."""

    driven = None

    def read(self, hand, stop):
        self.driven.stop()
        super().read(hand, stop)


def test_rows_handed_over_at_the_end_are_delivered_though_the_node_is_behind(monkeypatch):
    """The loop takes none any more: the sensor, which waits for it, goes on when the end begins."""
    monkeypatch.setattr("submerge_client.agent.LAST_ROWS_S", PATIENCE_S)
    sensor, parent = Ahead(np.tile(ROWS, (3, 1))), Parent()
    driven = sensor.driven = agent(uplink=parent, sensor=sensor, gather_s=1.0)

    assert 0 == driven.run()
    assert (600, 600) == (driven.rows, driven.delivered)


def test_rows_that_come_fast_share_a_step():
    """Forty at once: the first, and then the others together."""
    dog, sensor = Dog(), OneByOne(ROWS[:40])
    sensor.driven = agent(uplink=Parent(), sensor=sensor, gather_s=3600.0, watchdog=dog)
    sensor.driven.run()

    assert 2 == dog.reported.count("rows")


def test_who_is_asked_twice_does_not_linger():
    """A second signal ends the wait for a parent that does not answer."""
    driven = agent(uplink=Parent(answers=False), linger_s=3600)
    threading.Timer(0.2, driven.stop).start()
    began = time.monotonic()
    driven.run()

    assert time.monotonic() - began < PATIENCE_S


def test_who_is_asked_does_not_wait_for_a_settled_schema(monkeypatch):
    """Ctrl-C ends the program that writes into a pipe, too: its end may come before the signal."""
    driven, waits = agent(uplink=Parent(), learns_scaling=True), []

    def said(what, **facts):
        waits.append(facts.get("at_most_s", 0.0))
        if what == "the sensor has no more rows":
            driven.stop()

    monkeypatch.setattr("submerge_client.agent.say", said)
    driven.run()

    assert max(waits) <= 0.5, "it waits for the parent, and for no more"
    assert 200 == driven.delivered


def test_a_disk_that_is_full_stops_nothing(tmp_path, monkeypatch, log):
    """It is said once; rows are learnt, reported and acknowledged as before."""
    file = CheckpointFile(tmp_path / "c.state")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file, "write", full)
    driven = agent(uplink=Parent(), disk=RecordStore(file), checkpoint_every_s=0.01)

    assert 0 == driven.run()
    assert 200 == driven.delivered
    (line,) = said(log, "checkpoint not written")
    assert "No space left" in line["why"]


def test_a_file_that_took_the_checkpoints_name_ends_it_with_a_last_report(tmp_path):
    """A restart would begin from that file: the parent gets all rows, and a person one line."""
    path = tmp_path / "c.state"
    disk = RecordStore(CheckpointFile(path))
    driven = agent(uplink=Parent(), sensor=Rows(waits=True), disk=disk, checkpoint_every_s=0.01)
    path.unlink()
    path.write_bytes(b"another's")

    with pytest.raises(UsageError, match=f"expected the checkpoint {path} in its place"):
        driven.run()
    assert 200 == driven.delivered
    assert b"another's" == path.read_bytes()


def test_what_was_kept_is_sent_again_as_a_final(tmp_path):
    """A life that joined, and could not report: the next process delivers it."""

    class Mute(Parent):
        """Lets its child in, and answers no report."""

        def send(self, kind, group, data, *, final=False):
            if kind == "join":
                super().send(kind, group, data)

    path = tmp_path / "c.state"
    agent(uplink=Mute(), disk=RecordStore(CheckpointFile(path)), linger_s=0.2).run()
    parent = Parent()
    driven = agent(uplink=parent, sensor=Rows(ROWS[:0]), disk=RecordStore(CheckpointFile(path)))
    driven.run()
    finals = [each for each in parent.heard if getattr(each, "final", False)]

    assert {200} == {final.counts.learnt for final in finals}
    assert driven.node.all_delivered


def test_foreign_bytes_are_counted_and_passed_over():
    """Whatever comes by the way of the parent, the node goes on."""
    driven = agent(uplink=Parent(message=[Came("watch", b"\xff\xff"), Came("answer", b"\x00")]))

    assert 0 == driven.run()
    assert (2, 200) == (driven.foreign, driven.delivered)


def test_a_report_that_is_too_large_does_not_end_it(log):
    """It is said, with the numbers; the configuration should have refused it."""

    class Narrow(Parent):
        def send(self, kind, group, data, *, final=False):
            if kind == "report":
                raise TooLarge(kind, size=len(data), most=10)
            super().send(kind, group, data)

    driven = agent(uplink=Narrow(), linger_s=0.1)

    assert 0 == driven.run()
    assert "over the limit of 10" in said(log, "message too large")[0]["why"]


def test_lags_make_one_vector_of_several_rows():
    """Three lags: two rows only begin a window."""
    parent = Parent()
    driven = agent(uplink=parent, lags=3)
    driven.run()

    assert (200, 198) == (driven.rows, driven.delivered)
    assert 12 == parent.heard[-1].summary.dim


class Dog(Watchdog):
    """Writes down the calls that it gets."""

    def __init__(self):
        super().__init__()
        self.reported = []

    def start(self):
        self.reported.append("start")

    def rows(self):
        self.reported.append("rows")

    def tick(self, status):
        self.reported.append(status())

    def stopping(self, at_most_s):
        self.reported.append("stopping")


def test_the_watchdog_hears_of_each_turn_and_of_the_rows():
    """The parent is there, four blocks of rows; each turn with the facts; then the end."""
    dog = Dog()
    agent(uplink=Parent(), watchdog=dog).run()

    assert "0 rows, 0 with the parent" == dog.reported[0]
    assert "start" in dog.reported
    assert 4 == dog.reported.count("rows")
    assert any("200 rows" in each for each in dog.reported[: dog.reported.index("stopping")])


def test_the_watchdog_hears_why_the_parent_is_away():
    """In the line that `systemctl status` shows."""
    dog = Dog()
    agent(
        uplink=Parent(answers=False, message=[Parted("no route")]), watchdog=dog, linger_s=0.01
    ).run()

    assert "; parent out of reach: no route" in "".join(dog.reported)
