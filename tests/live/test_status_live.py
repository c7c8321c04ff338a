"""Doors on sockets: the status address, and the operator's socket beside the store."""

from __future__ import annotations

import asyncio
import http.client
import logging
import os
import signal
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from submerge import UsageError
from submerge_aggregator.config import AggregatorConfig, StatusConfig
from submerge_aggregator.http import metrics
from submerge_aggregator.http.endpoints import Endpoints
from submerge_aggregator.listening import listen
from submerge_aggregator.questions.views import socket_of
from submerge_client.config.links import Endpoint
from submerge_client.config.tomlfile import decoded
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import NoAnswer, UnixSocket
from support.house import House
from support.patience import PATIENCE_S

ROWS = np.random.default_rng(0).normal(size=(60, 6))


def config_of(store: Path, *, address: str = "127.0.0.1:0") -> AggregatorConfig:
    """A root's configuration; port 0 is one that is free."""
    table = {
        "node": "root",
        "store": str(store),
        "listen": {"grpc": {"insecure": True}},
        "groups": {"room": {"summary": {"rank": 1}, "schema": {"channels": ["a", "b"]}}},
        "status": {"address": address},
    }
    return decoded(table, AggregatorConfig)


class Open:
    """A house with its doors open."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.endpoints = house.does(self._made())
        self.path = socket_of(house.store)
        house.does(self.endpoints.start())

    async def _made(self) -> Endpoints:
        return Endpoints(self.house.server, config_of(self.house.store))

    @property
    def place(self) -> tuple[str, int]:
        """Host and port of the status address."""
        _, watched = self.endpoints._open
        return watched.listener.getsockname()

    def watches(self, path: str, said: bytes = b"") -> tuple[int, bool]:
        """The status of a page, and whether it says something."""
        with closing(http.client.HTTPConnection(*self.place, timeout=PATIENCE_S)) as connection:
            connection.request("GET", f"/{path}")
            response = connection.getresponse()
            return response.status, said in response.read()

    def closes(self) -> None:
        self.house.does(self.endpoints.stop())


@pytest.fixture
def opened(tmp_path) -> Iterator[Open]:
    with House(tmp_path) as house:
        opened = Open(house)
        yield opened
        opened.closes()


def test_health_readiness_and_metrics_are_served(opened):
    for path, said in (
        ("healthz", b"uptime_s"),
        ("readyz", b'"ready":true'),
        ("metrics", b"submerge_reports_total 0.0"),
    ):
        assert (200, True) == opened.watches(path, said)


def test_the_socket_is_the_owners_alone(opened):
    """Who may open the file may do all: nobody else gets in."""
    mode = opened.path.stat().st_mode

    assert stat.S_ISSOCK(mode)
    assert 0o600 == stat.S_IMODE(mode)


def test_the_command_reaches_it_by_the_socket(opened):
    opened.house.hears("c", ROWS)
    admin = AdminClient(UnixSocket(opened.path))

    assert b'"node":"c"' in admin.get("nodes")
    assert b'"rows":[]' in admin.post("nodes", "room", "c", "forget", ban="0")
    with pytest.raises(UsageError, match="no node d here"):
        admin.post("nodes", "room", "d", "forget")


def test_nobody_there_is_said_in_one_line(tmp_path):
    """No file; a file that nobody listens on."""
    path = tmp_path / "root.db.sock"
    with pytest.raises(NoAnswer, match=r"no aggregator answers on .*: is it running\?"):
        AdminClient(UnixSocket(path)).get()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with pytest.raises(NoAnswer, match="is it running"):
        AdminClient(UnixSocket(path)).get()


def test_a_socket_that_a_dead_process_left_is_replaced(tmp_path):
    path = socket_of(tmp_path / "root.db")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    with House(tmp_path) as house:
        opened = Open(house)
        assert b"root" in AdminClient(UnixSocket(path)).get()
        opened.closes()

    assert not path.exists()


def test_a_socket_that_somebody_answers_on_is_refused(opened):
    """And goes on being answered."""
    with pytest.raises(UsageError, match="another aggregator answers on"):
        Open(opened.house)

    assert b"root" in AdminClient(UnixSocket(opened.path)).get()


def test_a_file_in_the_sockets_place_is_left_alone(tmp_path):
    path = socket_of(tmp_path / "root.db")
    path.write_text("mine")
    with House(tmp_path) as house, pytest.raises(UsageError, match="got another file"):
        Open(house)

    assert "mine" == path.read_text()


def test_a_path_too_long_for_a_socket_is_said(tmp_path):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    with House(folder) as house, pytest.raises(UsageError, match="give the store a shorter path"):
        Open(house)


def test_a_port_in_use_is_one_line_and_leaves_nothing_open(tmp_path):
    """The socket that was opened before is closed again."""
    with socket.create_server(("127.0.0.1", 0)) as taken, House(tmp_path) as house:
        host, port = taken.getsockname()

        async def both() -> None:
            await Endpoints(house.server, config_of(house.store, address=f"{host}:{port}")).start()

        with pytest.raises(UsageError, match=r"status\.address") as refusal:
            house.does(both())
        assert f"expected to listen on 127.0.0.1:{port}, got: Address already in use" in str(
            refusal.value
        )
        assert not socket_of(house.store).exists()


def test_an_address_that_is_not_ours_is_refused():
    with pytest.raises(UsageError, match=r"status\.address"):
        listen(Endpoint("192.0.2.1", 0), setting="status.address")
    with pytest.raises(UsageError, match=r"status\.address"):
        listen(Endpoint("nowhere.invalid", 0), setting="status.address")


def test_no_address_is_no_status(tmp_path):
    """The operator's door is there all the same."""
    assert StatusConfig(address="").endpoint is None
    with House(tmp_path) as house:

        async def alone() -> Endpoints:
            endpoints = Endpoints(house.server, config_of(house.store, address=""))
            await endpoints.start()
            return endpoints

        endpoints = house.does(alone())
        assert 1 == len(endpoints._open)
        assert b"root" in AdminClient(UnixSocket(socket_of(house.store))).get()
        house.does(endpoints.stop())


def test_signals_stay_the_aggregators(tmp_path):
    """A server that took them would end in the aggregator's place."""

    async def handlers() -> tuple[object, object]:
        loop = asyncio.get_running_loop()
        called = asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, called.set)
        house = House(tmp_path)
        server = house.server_here()
        endpoints = Endpoints(server, config_of(house.store))
        await endpoints.start()
        await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(called.wait(), PATIENCE_S)
        still = endpoints._open[0]._server.should_exit
        await endpoints.stop()
        loop.remove_signal_handler(signal.SIGTERM)
        house.lets_go()
        return called.is_set(), still

    assert (True, False) == asyncio.run(handlers())


@pytest.mark.slow
def test_a_slow_visitor_does_not_hold_up_the_end(opened):
    """One that has asked for nothing, and one in the middle of asking."""
    with (
        socket.create_connection(opened.place),
        socket.create_connection(opened.place) as half,
    ):
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        began = time.monotonic()
        opened.closes()

    assert time.monotonic() - began < PATIENCE_S


def test_bytes_that_are_no_http_do_not_fill_the_log(opened, monkeypatch, caplog):
    """Whoever scans a network meets a 400, and the log a line that nobody has asked for."""
    monkeypatch.setattr(logging.getLogger("submerge"), "propagate", True)
    with (
        caplog.at_level(logging.INFO, "submerge"),
        socket.create_connection(opened.place) as visitor,
    ):
        visitor.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n")
        assert visitor.recv(100).startswith(b"HTTP/1.1 400")

    assert [] == [record for record in caplog.records if record.getMessage() == "http"]


def test_what_goes_wrong_inside_is_a_line_of_ours(opened, monkeypatch, caplog):
    """500 to the visitor, and no traceback on standard error."""
    monkeypatch.setattr(logging.getLogger("submerge"), "propagate", True)

    def broken(_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(metrics, "not_ready", broken)

    assert 500 == opened.watches("readyz")[0]
    opened.closes()  # the line comes after the answer
    assert ["RuntimeError: a bug"] == [
        record.facts["why"] for record in caplog.records if record.getMessage() == "request failed"
    ]


def test_a_connection_may_be_used_again(opened):
    """As Prometheus does."""
    with closing(http.client.HTTPConnection(*opened.place, timeout=PATIENCE_S)) as connection:
        for _ in range(3):
            connection.request("GET", "/metrics")
            response = connection.getresponse()
            assert 200 == response.status
            response.read()
