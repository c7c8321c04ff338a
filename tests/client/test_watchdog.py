"""What a service manager hears of a process: that it began, works, is stuck, and ends."""

from __future__ import annotations

import io
import os
import socket
import tempfile
from pathlib import Path

import pytest

from submerge_client import logs
from submerge_client.watchdog import EVERY_S, Watchdog

MINUTE_US = "60000000"


class Clock:
    """Time passes when the test says so."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


class Manager:
    """Whoever looks after the process: a datagram socket, as systemd has one."""

    def __init__(self, name: str) -> None:
        self.environ = {"NOTIFY_SOCKET": name}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self._socket.setblocking(False)

    def hears(self) -> list[dict[str, str]]:
        """Everything that was said since it last listened."""
        said = []
        while True:
            try:
                text = self._socket.recv(4096).decode()
            except BlockingIOError:
                return said
            said.append(dict(line.split("=", 1) for line in text.splitlines()))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request):
    """At a path, and at an abstract address: systemd uses either."""
    with tempfile.TemporaryDirectory() as folder:  # short enough for a socket's path
        name = f"{folder}/notify" if request.param == "path" else f"@submerge-{folder[-8:]}"
        here = Manager(name)
        yield here
        here.close()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log():
    """What was said, without time and level."""
    stream = io.StringIO()
    logs.begin("debug", stream=stream)
    return lambda: [line.split(maxsplit=2)[2] for line in stream.getvalue().splitlines()]


def facts():
    return "7 rows"


def test_it_is_ready_with_the_first_row(manager, clock):
    """Before that it starts, and asks for the time that it takes."""
    dog = Watchdog(60.0, environ=manager.environ, steady=clock)
    dog.tick(facts)
    assert [{"EXTEND_TIMEOUT_USEC": "90000000", "STATUS": "starting; 7 rows"}] == manager.hears()
    dog.rows()
    dog.tick(facts)

    assert [{"READY": "1", "WATCHDOG": "1", "STATUS": "7 rows"}] == manager.hears()


def test_it_is_ready_without_rows_once_its_parent_is_there(manager, clock):
    """A sensor that reads once an hour is no failed start; and it is said once."""
    dog = Watchdog(3600.0, environ=manager.environ, steady=clock)
    dog.start()
    dog.tick(facts)
    clock.at += EVERY_S
    dog.tick(facts)

    assert ["1", None] == [said.get("READY") for said in manager.hears()]


def test_it_is_fed_twice_as_often_as_is_asked(manager, clock):
    """The loop knows when; more rounds report nothing more."""
    dog = Watchdog(60.0, environ=manager.environ | {"WATCHDOG_USEC": "8000000"}, steady=clock)
    dog.rows()
    dog.tick(facts)
    assert 4.0 == dog.due_s
    fed = len(manager.hears())
    for _ in range(8):
        clock.at += 1.0
        dog.tick(facts)

    assert (1, 2) == (fed, len(manager.hears()))


def test_a_watchdog_that_is_for_another_process_sets_no_pace(manager, clock):
    """systemd started a shell, which started us."""
    asked = {"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid() + 1)}
    dog = Watchdog(60.0, environ=manager.environ | asked, steady=clock)
    dog.tick(facts)

    assert EVERY_S == dog.due_s


def test_a_loop_that_turns_without_rows_is_not_fed(manager, clock, log):
    """The sensor has died: the last that is heard says so, and the log does."""
    dog = Watchdog(60.0, environ=manager.environ | {"WATCHDOG_USEC": MINUTE_US}, steady=clock)
    dog.rows()
    dog.tick(facts)
    manager.hears()
    while clock.at < 160.0:
        clock.at += dog.due_s
        dog.tick(facts)
    heard = manager.hears()
    clock.at += 600.0
    dog.tick(facts)

    assert {"STATUS": "the sensor is silent; 7 rows"} == heard[-1]
    assert all("WATCHDOG" in said for said in heard[:-1])
    assert [] == manager.hears()
    assert ["the sensor is silent for_s=60"] == log()


def test_rows_that_come_again_feed_it_again(manager, clock, log):
    """Before systemd has lost its patience."""
    dog = Watchdog(10.0, environ=manager.environ, steady=clock)
    dog.rows()
    clock.at += 10.0
    dog.tick(facts)
    manager.hears()
    dog.rows()
    dog.tick(facts)

    assert ["1"] == [said.get("WATCHDOG") for said in manager.hears()]
    assert "the sensor delivers again" == log()[-1]


def test_a_start_without_rows_and_parent_is_given_up(manager, clock):
    """It asks for no more time once the sensor has been silent for too long."""
    dog = Watchdog(60.0, environ=manager.environ, steady=clock)
    while clock.at < 300.0:
        dog.tick(facts)
        clock.at += dog.due_s
    asked = ["EXTEND_TIMEOUT_USEC" in said for said in manager.hears()]

    assert [True] * 4 + [False] == asked


def test_its_end_takes_the_time_it_needs(manager, clock):
    """Rows do not matter any more, and nothing keeps the loop from sleeping."""
    dog = Watchdog(5.0, environ=manager.environ, steady=clock)
    dog.rows()
    dog.tick(facts)
    manager.hears()
    dog.stopping(10.0)
    (said,) = manager.hears()
    clock.at += 10.0
    dog.tick(facts)

    assert ("1", "35000000") == (said["STOPPING"], said["EXTEND_TIMEOUT_USEC"])
    assert not dog.silent
    assert 0 < dog.due_s


def test_what_could_not_be_said_is_said_at_the_next_turn(clock, log):
    """The manager was away for a moment; READY is reported again."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"{folder}/notify"
        dog = Watchdog(60.0, environ={"NOTIFY_SOCKET": name}, steady=clock)
        dog.rows()
        dog.tick(facts)
        manager = Manager(name)
        clock.at += dog.due_s
        dog.tick(facts)
        (said,) = manager.hears()
        manager.close()

    assert "1" == said["READY"]
    assert 1 == len(log())


def test_a_status_is_one_line(manager, clock):
    """Foreign words, as an error has them, cannot say anything else in its name."""
    dog = Watchdog(60.0, environ=manager.environ, steady=clock)
    dog.rows()
    dog.tick(lambda: "refused:\nSTOPPING=1")

    assert ["refused: STOPPING=1"] == [said["STATUS"] for said in manager.hears()]


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}])
def test_without_anybody_to_tell_it_wakes_nobody(environ, clock, log):
    """The loop may sleep until the sensor has been silent for too long, which is logged."""
    dog = Watchdog(60.0, environ=environ, steady=clock)
    dog.tick(facts)
    assert 60.0 == dog.due_s
    clock.at += 60.0
    dog.tick(facts)

    assert ["the sensor is silent for_s=60"] == log()
    assert float("inf") == dog.due_s


def test_a_file_is_touched_as_long_as_it_is_fed(tmp_path: Path, clock):
    """For a health check: not before rows come, not after they have ceased, gone at the end."""
    alive = tmp_path / "alive"
    dog = Watchdog(60.0, alive=alive, steady=clock)
    dog.tick(facts)
    assert not alive.exists()
    dog.rows()
    dog.tick(facts)
    os.utime(alive, (0, 0))
    clock.at += EVERY_S
    dog.tick(facts)
    assert 0 < alive.stat().st_mtime
    os.utime(alive, (0, 0))
    clock.at += 60.0
    dog.tick(facts)
    assert 0 == alive.stat().st_mtime
    dog.stopping(1.0)

    assert not alive.exists()


def test_a_file_that_cannot_be_touched_is_said_once(tmp_path: Path, clock, log):
    """And stops nothing."""
    dog = Watchdog(alive=tmp_path / "nowhere" / "alive", steady=clock)
    dog.start()
    for _ in range(3):
        dog.tick(facts)
        clock.at += EVERY_S

    (line,) = log()
    assert line.startswith("watchdog not fed why=")
