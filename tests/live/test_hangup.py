"""SIGHUP: in a terminal it ends a program in order, and has a service read its files again."""

from __future__ import annotations

import signal
import sys

import pytest

pytest.importorskip("grpc")

from support.boxes import Box, rows_of, until_read
from support.programs import SUBMERGE, Program, Programs, free_port

pytestmark = pytest.mark.slow

AGGREGATOR = """node = "root"
store = "{folder}/root.db"
[listen.grpc]
address = "127.0.0.1:{port}"
insecure = true
[groups.g.schema]
channels = ["a", "b"]
scaling = "none"
[groups.g.summary]
rank = 1
"""

CLIENT = """node = "pump"
group = "g"
parent = "root"
state = "{folder}/pump.state"
[sensor]
kind = "ndjson"
[schema]
channels = ["a", "b"]
scaling = "none"
[uplink]
url = "grpc://127.0.0.1:{port}"
insecure = true
"""

PROGRAMS = ("aggregator", "client", "up")

_WITH = """
import fcntl, os, sys, termios
os.setsid()
if sys.argv[1] == "terminal":
    there, here = os.openpty()
    os.set_inheritable(there, True)
    fcntl.ioctl(here, termios.TIOCSCTTY, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""


def begun(programs: Programs, word: str, where: str) -> Program:
    """Start a program in a session of its own, in a terminal or not."""
    before = (sys.executable, "-c", _WITH, where, str(SUBMERGE))
    if word == "up":
        program = Box(programs).start(command=before)
        program.write(rows_of(20))
        until_read(program, 20)
        return program
    text, said = (AGGREGATOR, "serving") if word == "aggregator" else (CLIENT, "reading")
    config = programs.file(f"{word}.toml", text.format(folder=programs.folder, port=free_port()))
    program = programs.start(word, "--config", config, command=before)
    program.until(said)
    return program


@pytest.mark.parametrize("word", PROGRAMS)
def test_a_closed_terminal_ends_a_program_in_order(word):
    with Programs() as programs:
        program = begun(programs, word, "terminal")
        program.signal(signal.SIGHUP)
        assert 0 == program.ended(), program.log


@pytest.mark.parametrize("word", PROGRAMS)
def test_a_service_reads_its_lists_again_and_goes_on(word):
    with Programs() as programs:
        program = begun(programs, word, "service")
        program.signal(signal.SIGHUP)
        program.until("lists and certificates are read again at their next use")
        program.signal(signal.SIGTERM)
        assert 0 == program.ended(), program.log
