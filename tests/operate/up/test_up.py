"""`submerge up`: one program reads, learns, keeps, and tells; another machine may join it."""

from __future__ import annotations

import contextlib
import itertools
import socket
import sys
from functools import partial

import pytest

pytest.importorskip("grpc")

from support.boxes import NAMES, Box, fed, last_line, lines_of, rows_of, until_read
from support.kills.configs import OverGrpc, client
from support.patience import PATIENCE_S, until
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow

OFTEN = """
import submerge_operate.up.config as config
import submerge_operate.up.line as telling
config.OFTEN_S, telling.FIRST_S, telling.EVERY_S = 0.3, 0.3, 0.3
from submerge_operate.cli import main
main()
"""
"""A box with a line each second, and models as often."""


def test_what_it_reads_is_learnt_and_kept():
    """To the last row, when its input ends; killed, and started again, it counts each once."""
    with Programs() as programs:
        box = Box(programs)
        first = box.start()
        fed(first, rows_of(300))
        assert (300, 300) == (lines_of(first)[-1]["rows"], lines_of(first)[-1]["learnt"])

        box.start().kill()

        last = box.start()
        last.write(rows_of(200, seed=1))
        until_read(last, 200)
        end = last_line(last)
        assert ("end", 200, 500) == (end["why"], end["rows"], end["learnt"])


def test_a_line_is_for_people_if_nothing_else_is_asked_for():
    with Programs() as programs:
        program = programs.start("up", "--config", Box(programs).config)
        program.until("reading")
        fed(program, rows_of(1200))
        assert b"  1,200 rows read, 1,200 learnt; " in program.out[-1]
        assert program.out[-1].endswith(b"; no alarm\n")


def test_a_second_machine_joins():
    """The program listens like any root, if it is asked to."""
    port = free_port()
    listen = f'[listen.grpc]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    with Programs() as programs:
        up = Box(programs, listen).start()
        way = OverGrpc({"desk-root": port})
        text = client("shed", "desk-root", way, NAMES, programs.folder / "shed.state")
        text = text.replace('group = "room"', 'group = "box"').replace('center = "fleet"', "")
        text = text.replace("rank = 2\noversample = 2\n", "")
        shed = programs.start("client", "--config", programs.file("shed.toml", text))
        shed.until("reading")
        fed(shed, rows_of(100))
        assert 100 == shed.said("acknowledged")[-1].facts["readings"]
        assert 0 == up.end(), up.log


def test_a_fault_is_said_at_once_with_its_channel_and_when_it_is_over():
    """With what the channel reads, and what was expected of it, in its unit."""
    with Programs() as programs:
        box = Box(programs, channels=("a", "b", "c [l/min]"))
        program = box.start(command=(sys.executable, "-c", OFTEN))
        seeds = itertools.count()

        def line_of(why: str, *, after: int = 0) -> dict:
            """Wait for a line of that occasion, while rows come; return it."""
            found = []

            def happens() -> bool:
                program.write(rows_of(20, next(seeds)) if why != "alarm began" else b"")
                found[:] = [line for line in lines_of(program) if why in (line["why"], *line)]
                found[:] = [line for line in found if line["rows"] > after]
                return bool(found)

            said = partial("{}: {}\n{}".format, why, program.out)
            until(happens, lambda: said(program.log), lambda: len(program.out))
            return found[-1]

        assert line_of("share_of_limit", after=2000)["provisional"]
        program.write(rows_of(20, next(seeds), jump=5.0))
        alarm, *_ = line_of("alarm began")["alarms"]
        off = {each["channel"]: each for each in alarm["channels"]}
        assert "c" == next(iter(alarm["top"]))
        assert "l/min" == off["c"]["unit"]
        assert 3 < off["c"]["value"] - off["c"]["expected"] < 7
        before = lines_of(program)[-1]["rows"]
        assert [] == line_of("alarm ended", after=before)["alarms"]
        last_line(program)


def test_the_service_manager_hears_from_the_loop_that_reads(monkeypatch):
    """A root that still works would hide a client that hangs: it says nothing."""
    with Programs() as programs, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        address = programs.folder / "notify"
        manager.bind(str(address))
        manager.settimeout(PATIENCE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(address))
        program = Box(programs).start()
        said = [manager.recv(4096).decode()]
        while "READY=1" not in said[-1]:
            said.append(manager.recv(4096).decode())
        fed(program, rows_of(10))
        while "STOPPING=1" not in said[-1]:
            said.append(manager.recv(4096).decode())
        manager.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                said.append(manager.recv(4096).decode())
        status = [line for each in said for line in each.split("\n") if "STATUS=" in line]
        assert status
        assert all(" rows, " in line or line.endswith("stopping") for line in status), status
