"""A machine that gets a channel: what it has learnt of the others stays, and it goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading

import numpy as np
import pytest

pytest.importorskip("grpc")

from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sensors import FileSensor
from submerge_operate.up import box, newcomers
from submerge_operate.up.config import BoxConfig
from submerge_operate.up.newcomers import Newcomer
from support.boxes import Box, fed, lines_of
from support.patience import until
from support.programs import Programs

pytestmark = pytest.mark.slow

NEW = Newcomer(name="d", unit="W", offset=40.0, scale=1.2, readings=60, every_s=60.0)


def rows(n, seed, *, channels="abc"):
    """Rows of channels that follow one cause, as lines of JSON."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1)) * (1.0, 2.0, -1.0, 1.0)
    table = common + 0.1 * rng.normal(size=(n, 4)) + (10.0, 20.0, 30.0, 40.0)
    named = (dict(zip(channels, row[: len(channels)], strict=True)) for row in table.tolist())
    return "".join(f"{json.dumps(row)}\n" for row in named).encode()


def test_an_accepted_channel_joins_at_the_next_start():
    """Nothing is measured again: the first model has all rows, and rows are scored at once."""
    with Programs() as programs:
        desk = Box(programs, 'scaling = "fleet"')
        fed(desk.start(), rows(1200, 0))
        newcomers.write(desk.folder / newcomers.HEARD, [NEW])
        accepted = programs.start("up", "--config", desk.config, "--accept", "d")
        assert 0 == accepted.ended(), accepted.log

        grown = desk.start()
        grown.until("scoring begins: a model is here")
        fed(grown, rows(300, 1, channels="abcd"))
        last = lines_of(grown)[-1]

        assert (300, 1500) == (last["rows"], last["learnt"])
        assert any(line.get("score") is not None for line in lines_of(grown)), lines_of(grown)


def test_a_running_machine_begins_again_with_it(tmp_path, monkeypatch):
    """In the same process, within a look; its own signals end it as before."""
    monkeypatch.setattr(box, "EVERY_S", 0.2)
    table = np.random.default_rng(0).normal(size=(4000, 4)).cumsum(axis=0)
    data = tmp_path / "rows.csv"
    text = "\n".join(",".join(f"{x:.4f}" for x in row) for row in table)
    data.write_text(f"a,b,c,d\n{text}\n")
    config = BoxConfig(
        node="desk",
        folder=tmp_path / "kept",
        sensor=FileSensor(paths=(data,), speed=50.0, loop=True),
        schema=SchemaConfig(channels=("a", "b", "c")),
    )
    told = []

    def grow():
        until(lambda: told, lambda: "a first line", lambda: len(told))
        newcomers.write(config.folder / newcomers.ACCEPTED, [NEW])
        lines = len(told)
        until(lambda: len(told) > lines, lambda: "a line of the next run", lambda: len(told))
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    grows = threading.Thread(target=grow)
    grows.start()
    status = box.run(config, told.append, as_json=True)
    grows.join()

    assert 0 == status
    assert before == signal.getsignal(signal.SIGTERM)
    assert not [each for each in threading.enumerate() if each.name == "client"]


def test_a_signal_while_it_is_to_begin_again_ends_it(tmp_path, monkeypatch):
    """systemd would wait for the end in vain, and kill it."""
    begun = []

    async def look(looking, agent):
        begun.append(agent)
        await asyncio.sleep(0.5)
        looking.grows = len(begun) == 1
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(box, "_look", look)
    data = tmp_path / "rows.csv"
    data.write_text("a,b,c\n" + "1,2,3\n2,1,4\n4,0,1\n" * 20)
    config = BoxConfig(
        node="desk",
        folder=tmp_path / "kept",
        sensor=FileSensor(paths=(data,), speed=1.0, loop=True),
        schema=SchemaConfig(channels=("a", "b", "c")),
    )

    assert 0 == box.run(config, [].append)
    assert 1 == len(begun)
