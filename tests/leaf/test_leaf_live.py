"""Two leaves in C and two Python clients at a real root, over a real broker."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from c_leaf import CLeaf, Now
from submerge import Schema
from submerge.protocol.messages import Model
from submerge.schema import Channel
from submerge_client.uplink import Came, Opened
from submerge_client.uplink.broker import Broker
from submerge_client.uplink.over_mqtt import MqttUplink
from submerge_proto.wire import codec
from support.broker import PROGRAM, REQUIRED, Mosquitto
from support.kills.configs import GROUP, OverMqtt, aggregator, client
from support.patience import until
from support.programs import Programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None and not REQUIRED, reason="mosquitto is not installed"),
]

NAMES = tuple("abcdef")
SCHEMA = Schema(tuple(map(Channel, NAMES)))
QUICK = {"report_every_s": 0.2, "patience_s": 0.4, "cap_s": 1.0}


@pytest.fixture
def port(tmp_path) -> Iterator[int]:
    broker = Mosquitto(tmp_path)
    broker.start()
    yield broker.port
    broker.stop()


class Device:
    """A leaf and its host: a thread that learns, publishes, and hands over what comes.

    loses, doubles : How many of the next answers do not arrive; whether all that goes comes twice.
    """

    def __init__(self, library, port: int, node: str, seed: int) -> None:
        at = self._now()
        self.leaf = CLeaf(library, SCHEMA, node, group=GROUP, seed=seed, at=at, **QUICK)
        self.model: Model | None = None
        self.loses, self.doubles, self.lost = 0, False, 0
        self.lock, self._over = threading.Lock(), threading.Event()
        self._came: queue.SimpleQueue[object] = queue.SimpleQueue()
        names = {"fleet": "default", "parent": "root", "node": node, "groups": [GROUP]}
        broker = Broker("127.0.0.1", port)
        self._uplink = MqttUplink(broker, **names, limit=120_000, first_wait_s=0.05)
        self._uplink.open(self._came.put)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @staticmethod
    def _now() -> Now:
        return Now(time.monotonic(), time.time(), 1)

    def learn(self, rows: np.ndarray) -> None:
        with self.lock:
            assert {0} == {*self.leaf.learn(rows, self._now())}

    def kill(self) -> None:
        """End without a word: all that it had in RAM is gone."""
        self._over.set()
        self._thread.join()
        self._uplink.close()

    def _run(self) -> None:
        while not self._over.wait(0.01):
            with self.lock:
                if self._over.is_set():  # killed while it waited for the lock
                    return
                while not self._came.empty():
                    self._take(self._came.get())
                sent = self.leaf.send(self._now())
            if sent is not None:
                self._uplink.send(sent[0], GROUP, sent[1])
                if self.doubles:
                    time.sleep(0.05)
                    self._uplink.send(sent[0], GROUP, sent[1])

    def _take(self, heard: object) -> None:
        if isinstance(heard, Opened):
            self.leaf.linked()
        if not isinstance(heard, Came):
            return
        kind = heard.kind
        if kind == "watch":
            kind = "hello" if heard.data[:1] == b"\x0a" else "model"
        if kind == "model":
            self.model = codec.decode("watch", heard.data)
        if kind == "answer" and self.loses:
            self.loses, self.lost = self.loses - 1, self.lost + 1
            return
        for _ in range(1 + self.doubles):
            self.leaf.receive(kind, heard.data, self._now())


def plant(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 6)) @ rng.standard_normal((6, 6)) + seed


class Fleet:
    """The root, two Python clients, two leaves; `rows` are those that the root has to count."""

    def __init__(self, programs: Programs, library, port: int) -> None:
        way, self._library, self._port = OverMqtt(port), library, port
        store = programs.folder / "root.store"
        self.root = programs.start(
            "aggregator",
            "--config",
            programs.file("root.toml", aggregator("root", None, way, NAMES, store)),
        )
        self.root.until("serving")
        self.clients = []
        for node in ("p1", "p2"):
            state = programs.folder / f"{node}.state"
            config = programs.file(f"{node}.toml", client(node, "root", way, NAMES, state))
            self.clients.append(programs.start("client", "--config", config))
        self.leaves = {node: self.device(node, i) for i, node in enumerate(("c1", "c2"))}
        self.rows: list[np.ndarray] = []

    def device(self, node: str, seed: int) -> Device:
        return Device(self._library, self._port, node, seed)

    def learn(self, seed: int, *, leaves=("c1", "c2")) -> None:
        """Give each node rows of its own."""
        for i, program in enumerate(self.clients):
            rows = plant(30, seed + i)
            program.write("".join(f"{json.dumps(row)}\n" for row in rows.tolist()).encode())
            self.rows.append(rows)
        for i, node in enumerate(leaves):
            self.rows.append(plant(40 + i, seed + 10 + i))
            self.leaves[node].learn(self.rows[-1])

    def check(self) -> None:
        """Wait until the model counts all rows, and hold it against them."""
        all_rows = np.vstack(self.rows)
        listener = next(iter(self.leaves.values()))

        def counts() -> bool:
            with listener.lock:
                model = listener.model
            return model is not None and model.counts.learnt == len(all_rows)

        until(counts, lambda: f"{len(all_rows)} rows in {listener.model and listener.model.counts}")
        time.sleep(0.5)  # none comes twice later
        assert counts()
        model = listener.model
        assert len(all_rows) == model.summary.weight
        np.testing.assert_allclose(all_rows.mean(axis=0), model.summary.mean, rtol=1e-12)
        off = all_rows - all_rows.mean(axis=0)
        assert np.square(off).sum() == pytest.approx(model.summary.energy, rel=1e-12)


def test_every_reading_is_counted_once(library, port):
    """While answers are lost and messages come twice, and after a leaf was killed.

    What the killed leaf had reported stays in the model; what it had not is lost with its RAM.
    """
    with Programs() as programs:
        fleet = Fleet(programs, library, port)
        try:
            fleet.learn(100)
            fleet.check()
            for leaf in fleet.leaves.values():
                leaf.loses = 2
            fleet.learn(200)
            fleet.check()
            until(lambda: all(leaf.lost for leaf in fleet.leaves.values()))
            for leaf in fleet.leaves.values():
                leaf.doubles = True
            fleet.learn(300)
            fleet.check()
            killed = fleet.leaves.pop("c1")
            with killed.lock:
                held = killed.leaf.state.delivered
                killed.leaf.learn(plant(9, 1), killed._now())
                killed._over.set()
            killed.kill()
            assert 120 == held
            fleet.leaves["c1"] = fleet.device("c1", 77)
            fleet.learn(400)
            fleet.check()
            model = fleet.leaves["c2"].model
        finally:
            for leaf in fleet.leaves.values():
                leaf.kill()

        assert 4 == model.nodes
        assert 0 == model.counts.lost
        assert [] == [line for line in fleet.root.lines if line.level == "error"]
