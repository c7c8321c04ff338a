"""`submerge up`: one program reads, learns, keeps, and tells; another machine may join it."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("grpc")

from support.kills.configs import OverGrpc, client
from support.patience import until
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow

NAMES = ("a", "b", "c")


def lines(n: int, seed: int = 0) -> bytes:
    """Rows of a machine, as lines of JSON."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 1)) * (1.0, 2.0, -1.0) + 0.1 * rng.normal(size=(n, 3))
    return "".join(f"{json.dumps(row)}\n" for row in rows.round(4).tolist()).encode()


def box(programs: Programs, listen: str = "") -> str:
    return programs.file(
        "box.toml",
        f"""
node = "desk"
folder = "{programs.folder}/kept"
log = "info"
[sensor]
kind = "ndjson"
[schema]
channels = {list(NAMES)}
{listen}
""",
    )


def test_what_it_reads_is_learnt_and_kept():
    """To the last row, when its input ends; killed, and started again, it counts each once."""
    with Programs() as programs:
        config = box(programs)
        first = programs.start("up", "--config", config)
        first.write(lines(300))
        first._process.stdin.close()
        assert 0 == first.ended(), first.log
        assert first.out[-1].startswith(b"300 rows read; 300 readings learnt; ")

        killed = programs.start("up", "--config", config)
        killed.until("reading")
        killed.kill()

        last = programs.start("up", "--config", config)
        last.until("reading")
        last.write(lines(200, seed=1))
        until(lambda: last.out, lambda: last.log, lambda: len(last.lines))
        assert 0 == last.end(), last.log
        assert last.out[-1].startswith(b"200 rows read; 500 readings learnt; ")


def test_a_second_machine_joins():
    """The program listens like any root, if it is asked to."""
    port = free_port()
    listen = f'[listen.grpc]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    with Programs() as programs:
        up = programs.start("up", "--config", box(programs, listen))
        up.until("reading")
        way = OverGrpc({"desk-root": port})
        text = client("shed", "desk-root", way, NAMES, programs.folder / "shed.state")
        text = text.replace('group = "room"', 'group = "box"').replace('center = "fleet"', "")
        text = text.replace("rank = 2\noversample = 2\n", "")
        shed = programs.start("client", "--config", programs.file("shed.toml", text))
        shed.until("reading")
        shed.write(lines(100))
        shed._process.stdin.close()
        assert 0 == shed.ended(), shed.log
        assert 100 == shed.said("acknowledged")[-1].facts["readings"]
        assert 0 == up.end(), up.log
