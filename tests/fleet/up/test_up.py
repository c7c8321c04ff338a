"""`submerge up`: one program reads, learns, keeps, and tells; another machine may join it."""

from __future__ import annotations

import pytest

pytest.importorskip("grpc")

from support.boxes import NAMES, Box, fed, last_line, lines_of, rows_of, until_read
from support.kills.configs import OverGrpc, client
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow


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
