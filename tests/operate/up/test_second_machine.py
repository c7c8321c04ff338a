"""A second machine's client joins a box with a kit, over gRPC and through a broker.

The kits are made by the commands of docs/one-machine.md, and Mosquitto has the shipped settings.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

from support.boxes import NAMES, Box, counted, fed, last_line, ran, rows_of, until_read
from support.broker import PROGRAM, REQUIRED, Mosquitto
from support.patience import until
from support.programs import Programs, free_port
from support.shipped_broker import shipped

pytestmark = pytest.mark.slow


def make_kits(folder: Path) -> Path:
    """Make the kits of a box, a second machine and a broker; return their folder."""
    ran(folder, "pki", "init", "--fleet", "home")
    ran(folder, "pki", "issue", "desk-root", "--host", "127.0.0.1")
    ran(folder, "pki", "issue", "shed")
    ran(folder, "pki", "issue", "broker", "--role", "reader", "--host", "127.0.0.1")
    ran(folder, "pki", "acl", "--out", "pki/acl")
    return folder / "pki" / "kits"


def second(programs: Programs, url: str, kit: Path) -> Path:
    """Write the configuration of a second machine; return its file."""
    return programs.file(
        "shed.toml",
        f"""
node = "shed"
group = "box"
parent = "desk-root"
state = "{programs.folder}/shed.state"
kit = "{kit}"
log = "debug"
[uplink]
url = "{url}"
[sensor]
kind = "ndjson"
[schema]
channels = {json.dumps(list(NAMES))}
""",
    )


def joins(programs: Programs, box: Box, url: str, kits: Path) -> None:
    """Let a second machine join, go, and come again: both count what they read, once."""
    up = box.start()
    up.write(rows_of(150))
    until_read(up, 150)
    config = second(programs, url, kits / "shed.kit")
    for _ in range(2):
        shed = programs.start("client", "--config", config)
        shed.until("reading")
        fed(shed, rows_of(100, seed=1))
    until(lambda: counted(box, "shed") == 200, lambda: up.log, lambda: len(up.lines))
    line = last_line(up)
    assert 150 == line["learnt"] + line["withheld"]
    assert not [line for line in up.lines if line.level in ("warning", "error")], up.log


def test_over_grpc():
    port = free_port()
    with Programs() as programs:
        kits = make_kits(programs.folder)
        listen = f'[listen.grpc]\naddress = "127.0.0.1:{port}"\n'
        box = Box(programs, listen, top=f'kit = "{kits}/desk-root.kit"')
        joins(programs, box, f"grpcs://127.0.0.1:{port}", kits)


@pytest.mark.skipif(PROGRAM is None and not REQUIRED, reason="mosquitto is not installed")
def test_through_a_broker():
    with Programs() as programs:
        kits = make_kits(programs.folder)
        (kits / "crl.pem").write_bytes((programs.folder / "pki" / "crl.pem").read_bytes())
        broker = Mosquitto(kits)
        broker.start(*shipped(kits, rules=programs.folder / "pki" / "acl"))
        try:
            listen = f'[listen.mqtt]\nurl = "mqtts://127.0.0.1:{broker.port}"\n'
            box = Box(programs, listen, top=f'kit = "{kits}/desk-root.kit"')
            joins(programs, box, f"mqtts://127.0.0.1:{broker.port}", kits)
        finally:
            broker.stop()


def test_a_stranger_does_not_join():
    """With a kit of another authority."""
    port = free_port()
    with Programs() as programs:
        kits, other = make_kits(programs.folder), programs.folder / "other"
        other.mkdir()
        strange = make_kits(other)
        listen = f'[listen.grpc]\naddress = "127.0.0.1:{port}"\n'
        box = Box(programs, listen, top=f'kit = "{kits}/desk-root.kit"')
        up, url = box.start(), f"grpcs://127.0.0.1:{port}"
        shed = programs.start("client", "--config", second(programs, url, strange / "shed.kit"))
        shed.until("parent unreachable, trying on")
        assert 0 == counted(box, "shed")
        assert 0 == shed.end(), shed.log
        assert 0 == up.end(), up.log
