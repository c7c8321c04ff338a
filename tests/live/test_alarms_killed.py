"""An aggregator that is killed while it has people told of alarms: nothing is twice, or missed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
import numpy as np
import pytest

from submerge.pca.subspace import Subspace
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.messages import (
    Answer,
    Counts,
    Incarnation,
    Join,
    Joined,
    Reason,
    Report,
    Stamp,
)
from submerge.schema import Schema
from submerge_client.uplink.over_grpc import SERVICE
from submerge_proto.wire import codec
from support.alarmed import alarm, alarm_status
from support.nodes import EPOCH, new_incarnation
from support.patience import PATIENCE_S, until
from support.programs import Program, Programs, free_port

CONFIG = """
node = "root"
store = "{folder}/root.db"
[listen.grpc]
address = "127.0.0.1:{port}"
insecure = true
[status]
address = ""
[alarms]
ndjson = "{folder}/alarms.ndjson"
[[alarms.webhook]]
url = "http://127.0.0.1:{hook}/alarms"
[groups.room]
summary.rank = 2
[groups.room.schema]
channels = ["a", "b", "c", "d", "e", "f"]
scaling = "none"
"""
ANSWER_S = 0.3
ROWS = np.random.default_rng(0).normal(size=(60, 6))


class Node:
    """A client, as far as an aggregator sees one."""

    def __init__(self, name: str, port: int) -> None:
        self._name, self._port, self._seq = name, port, 0
        self._root: Incarnation | None = None

    def message(self, *alarms: Alarm) -> None:
        """Report until it is acknowledged: the aggregator may be away."""
        self._seq += 1
        until(lambda: self._tries(alarms), lambda: f"an answer to {alarms}")

    def _tries(self, alarms: tuple[Alarm, ...]) -> bool:
        with grpc.insecure_channel(f"127.0.0.1:{self._port}") as channel:
            try:
                if self._root is None:
                    joined = self._called(channel, Join(self._stamp(0), b"", (), b""))
                    assert isinstance(joined, Joined)
                    self._root, self._schema = joined.pinned, Schema.parse(joined.schema)
                answer: Answer = self._called(channel, self._report(alarms))
            except grpc.RpcError:
                return False
        assert answer.reason is Reason.ACK
        return True

    def _called(self, channel: grpc.Channel, message: Any) -> Any:
        kind = codec.kind_of(message)
        call = channel.unary_unary(f"/{SERVICE}/{kind.title()}")
        answered = call(codec.encode(message), timeout=PATIENCE_S)
        return codec.decode("joined" if kind == "join" else "answer", answered)

    def _stamp(self, seq: int) -> Stamp:
        return Stamp(self._name, "room", new_incarnation(1), seq)

    def _report(self, alarms: tuple[Alarm, ...]) -> Report:
        assert self._root is not None
        summary = Subspace.of(ROWS, self._schema, rank=4)
        return Report(
            self._stamp(self._seq),
            final=False,
            pinned=self._root,
            fence=b"",
            fingerprint=self._schema.fingerprint,
            summary=summary,
            moments=None,
            counts=Counts(60),
            as_of=0.0,
            synced=False,
            version=0,
            lifetime=60,
            alarm_status=alarm_status(*alarms),
        )


@contextmanager
def hooked() -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """A server that takes every POST; its port, and the events that it has taken."""
    taken: list[tuple[str, str]] = []

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            reported = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            taken.append((reported["event"], reported["id"]))
            # Slow, so that kills come between the event and its note in the journal.
            time.sleep(ANSWER_S)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Takes) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port, taken
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
def test_killed_again_and_again_it_tells_each_start_and_each_end():
    """In a file once each; to a webhook at least once, and in order."""
    history = list(_history(rounds=2, now=time.time()))
    with Programs() as programs, hooked() as (hook, taken):
        port = free_port()
        text = CONFIG.format(folder=programs.folder, port=port, hook=hook)
        config = programs.file("root.toml", text)
        lines = programs.folder / "alarms.ndjson"

        def begins() -> Program:
            root = programs.start("aggregator", "--config", config)
            root.until("serving")
            return root

        def reported() -> list[tuple[str, str]]:
            rows = lines.read_text().splitlines() if lines.exists() else []
            return [(each["event"], each["id"]) for each in map(json.loads, rows)]

        nodes = {name: Node(name, port) for name in "cd"}
        root = begins()
        for node in nodes.values():
            node.message()
        for name, alarms in history:
            nodes[name].message(*alarms)
            # Acknowledged: from here on it may be killed at any moment.
            root.kill()
            root = begins()
        expected = _events(history)
        until(lambda: len(reported()) >= len(expected), lambda: f"{expected}, got {reported()}")
        until(lambda: set(taken) == set(expected), lambda: f"{expected}, got {taken}")
        assert 0 == root.end()
        written = reported()

    assert sorted(expected) == sorted(written)
    assert len(expected) == len(set(told_once := [*dict.fromkeys(taken)]))
    for name in "cd":
        of_node = [each for each in expected if each[1].startswith(f"{name}-")]
        assert of_node == [each for each in told_once if each[1].startswith(f"{name}-")]


def _history(rounds: int, now: float) -> Iterator[tuple[str, tuple[Alarm, ...]]]:
    """What two nodes tell, one after the other: an alarm, and that it is over; and those before.

    The alarms begin now: an aggregator that starts does not send what ended a week ago.
    """
    over: dict[str, tuple[Alarm, ...]] = {"c": (), "d": ()}
    for n in range(16, 16 * rounds + 1, 16):
        for name in "cd":
            yield name, (alarm(name, n, began=now, peaked=now), *over[name])
        for name in "cd":
            ended = alarm(name, n, began=now, peaked=now, ended=now + 5.0 - EPOCH)
            over[name] = (ended, *over[name])
            yield name, over[name]


def _events(history: list[tuple[str, tuple[Alarm, ...]]]) -> list[tuple[str, str]]:
    newest = (alarms[0] for _, alarms in history)
    return [("start" if each.is_open else "end", each.name) for each in newest]
