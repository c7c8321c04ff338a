"""Clients that run SAPCA, as programs: two levels, gRPC and MQTT, killed and begun again."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("grpc")

from papers.federated.streams import MoteSet, standing_in, synth
from submerge import SAPCA, SapcaRank, SubmergeError
from submerge_aggregator.questions.views import socket_of
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import UnixSocket
from support.data import shared
from support.kills.configs import OverGrpc, OverMqtt, Way
from support.patience import until
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow

DIM, HALF, STEP = 48, 700, 350
RULE = SapcaRank(8, alpha=0.03, beta=0.12, highest=12)


@pytest.fixture(params=["grpc", "mqtt"])
def way(request) -> Way:
    if request.param == "grpc":
        return OverGrpc({node: free_port() for node in ("root", "room")})
    return OverMqtt(request.getfixturevalue("mosquitto").port)


def streams() -> dict[str, np.ndarray]:
    """Rows of the paper's three kinds: Light, humidity of the generated room, Synth(2)."""
    humidity = MoteSet("", "humidity", DIM, 10)
    return {
        "light": np.loadtxt(shared("motes/light.dat.gz"))[: 2 * HALF],
        "humidity": standing_in(humidity)[: 2 * HALF],
        "synth": synth(2.0, n=2 * HALF, dim=DIM, seed=7),
    }


class Room:
    """A root, an aggregator below it, and what it says of its clients."""

    def __init__(self, way: Way, programs: Programs) -> None:
        self._way, self._programs, self.running = way, programs, {}
        names = json.dumps([f"x{i}" for i in range(DIM)])
        self._schema = f'schema]\nchannels = {names}\nscaling = "none"\n'
        timing = '[timing]\nreport_every_s = 0.5\nmodel_every_s = 60\n[status]\naddress = ""\n'
        for node, above in (("root", ""), ("room", f'[parent]\nname = "root"\n{way.up("root")}')):
            group = f"[groups.motes.{self._schema}" if node == "root" else "[groups.motes]\n"
            store = programs.folder / f"{node}.store"
            self._start(
                node,
                f'node = "{node}"\nstore = "{store}"\n{way.listens(node)}{above}{group}{timing}',
            ).until("serving")

    def client(self, node: str):
        return self._start(
            node,
            f'node = "{node}"\ngroup = "motes"\nparent = "room"\n'
            f'state = "{self._programs.folder / node}.state"\n'
            f'[uplink]\n{self._way.up("room")}[sensor]\nkind = "ndjson"\n[{self._schema}'
            '[alarms]\nat_most = "off"\n'
            "[timing]\nreport_every_s = 0.1\nmin_rows = 1\n"
            f'[summary]\nrank = "sapca"\nrank_max = 12\nalpha = {RULE.alpha}\nbeta = {RULE.beta}\n',
        )

    def _start(self, node: str, text: str):
        kind = "aggregator" if node in ("root", "room") else "client"
        config = self._programs.file(f"{node}.toml", text)
        self.running[node] = self._programs.start(kind, "--config", config)
        return self.running[node]

    def said(self, node: str) -> tuple[int, int, str]:
        """Return readings learnt, and the rank and algorithm of the newest report."""
        admin = AdminClient(UnixSocket(socket_of(self._programs.folder / "room.store")))
        try:
            nodes = json.loads(admin.get("tree", "motes"))["nodes"]
        except SubmergeError:
            return 0, 0, ""
        (view,) = [each for each in nodes if each["node"] == node] or [{"rows": (), "sealed": ()}]
        if not view["rows"]:
            return 0, 0, ""
        learnt = sum(each["learnt"] for each in (*view["rows"], *view["sealed"]))
        return learnt, view["rows"][0]["rank"], view["rows"][0]["algorithm"]


def test_each_device_has_the_rank_of_its_own_rows(way):
    """Row by row equal to the rule's in one process, also after a kill; every reading counts.

    In steps of 350 rows, which no block of the engine ends with: what waits is in a report as well.
    """
    rows, ends = streams(), {name: set() for name in streams()}
    with Programs() as programs:
        room = Room(way, programs)
        for name in rows:
            room.client(name)
        for part in (slice(0, HALF), slice(HALF, 2 * HALF)):
            alone = {name: SAPCA(RULE, exact="never") for name in rows}
            for first in range(part.start, part.stop, STEP):
                for name, each in rows.items():
                    lines = (f"{json.dumps(row.tolist())}\n" for row in each[first : first + STEP])
                    room.running[name].write("".join(lines).encode())
                for name, each in rows.items():
                    engine = alone[name].partial_fit(each[first : first + STEP])
                    wanted = first + STEP, engine.target, f"SAPCA, {RULE}"
                    until(lambda name=name, wanted=wanted: wanted == room.said(name))
                    ends[name].add(engine.target)
            if part.start == 0:
                for name in rows:
                    room.running[name].kill()
                    room.client(name)
    assert len({min(ranks) for ranks in ends.values()}) > 1, ends
    assert any(len(ranks) > 1 for ranks in ends.values()), ends
