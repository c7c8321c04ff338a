"""What the MQTT client holds in memory: as little as it can, seen in a process that runs."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading

import pytest

CONFIG = """\
node = "pump-1"
group = "pumps"
parent = "root"
state = "{folder}/pump-1.state"
[uplink]
url = "mqtt://127.0.0.1:{port}"
insecure = true
[schema]
channels = ["a", "b", "c"]
[summary]
rank = 1
[sensor]
kind = "ndjson"
[scores]
to = "stdout"
"""

# The end would wait ten seconds for a parent that is not there.
RUN = """
import json, os, signal, sys

def tell(*_):
    print(json.dumps([*sys.modules]), file=sys.stderr, flush=True)
    os._exit(0)

signal.signal(signal.SIGUSR1, tell)
sys.argv = ["submerge", "client", "--config", sys.argv[1]]
from submerge_operate.cli import main
main()
"""


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names in sys.modules of `submerge client` that has read 100 rows, and met its broker.

    Whoever listens at that broker's port takes the connection, and hangs up.
    """
    folder = tmp_path_factory.mktemp("client")
    path, rows = folder / "client.toml", folder / "rows"
    rows.write_text("".join(f"[{i}, {i % 7}, {i % 3}]\n" for i in range(100)))
    with socket.create_server(("127.0.0.1", 0)) as broker, rows.open() as stdin:
        threading.Thread(target=_hang_up, args=(broker,), daemon=True).start()
        path.write_text(CONFIG.format(folder=folder, port=broker.getsockname()[1]))
        client = subprocess.Popen(
            [sys.executable, "-c", RUN, path],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        with client:
            awaited = {"the sensor has no more rows", "parent unreachable"}
            while awaited:
                line = client.stderr.readline()
                assert line, f"the client has ended without {awaited}"
                awaited -= {what for what in awaited if what in line}
            client.send_signal(signal.SIGUSR1)
            return set(json.loads(client.stderr.readlines()[-1]))


def _hang_up(broker: socket.socket) -> None:
    while True:
        try:
            broker.accept()[0].close()
        except OSError:
            return


@pytest.mark.slow
def test_the_mqtt_client_holds_nothing_that_others_need(held):
    """Neither another uplink's library, nor the optimum's, the operator's or the aggregator's."""
    foreign = {
        "scipy",
        "grpc",
        "rich",
        "humanize",
        "prometheus_client",
        "asyncio",
        "sqlite3",
        "psutil",
        # Loaded for one name and a few waits, they would be 2.2 MiB.
        "numpy.random",
        # Of paho and protobuf: 2.4 MiB.
        "http.client",
        "email",
        "google.protobuf.text_format",
        # For files, saved engines and mistakes: 1.3 MiB.
        "zipfile",
        "lzma",
        "csv",
        "gzip",
        "difflib",
        "submerge_client.datasets",
        # Of the page of an aggregator.
        "starlette",
        "uvicorn",
        "jinja2",
        "markupsafe",
    }
    ours = {"submerge.aggregator.node", "submerge.aggregator.rows.ledger"}
    # The package itself has a table of its commands, which is read as all are.
    ours |= {name for name in held if name.startswith("submerge_aggregator.")}

    assert {"paho.mqtt.client", "submerge_client.uplink.line"} <= held
    assert not foreign & held
    assert not ours & held
