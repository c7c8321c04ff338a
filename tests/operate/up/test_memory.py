"""What a box weighs with 50 channels, and what it does not load: it runs on small machines.

The figure is `benchmarks/one_machine.py`'s; here is a limit with some margin above it.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("grpc")

from support.boxes import Box, lines_of
from support.patience import until
from support.programs import Programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc says what a process holds"),
]

CHANNELS = [f"c{i}" for i in range(50)]

MOST_MIB = 70.0

TELLING = """
import atexit, sys
import submerge_operate.up.config as config
import submerge_operate.up.line as telling
config.OFTEN_S, telling.EVERY_S = 0.5, 1.0
atexit.register(lambda: print("modules:", *sorted(sys.modules), file=sys.stderr))
from submerge_operate.cli import main
main()
"""
"""A box with a line each second, which says at its end what it had loaded."""

UNUSED = (
    "grpc",
    "prometheus_client",
    "paho.mqtt.client",
    "numpy.random",
    "scipy",
    "urllib.request",
)


def test_fifty_channels_with_scores_fit():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1000, 6)) @ rng.normal(size=(6, 50)) + 0.1 * rng.normal(size=(1000, 50))
    data = "".join(f"{json.dumps(row)}\n" for row in rows.round(4).tolist()).encode()
    with Programs() as programs:
        box = Box(programs, 'scaling = "fleet"\n', channels=CHANNELS)
        program = box.start(command=(sys.executable, "-c", TELLING))

        def scores() -> bool:
            program.write(data)
            return any("score" in line and line["rows"] > 5000 for line in lines_of(program))

        until(scores, lambda: program.log, lambda: len(program.out))
        status = Path(f"/proc/{program._process.pid}/status").read_text()
        held = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024
        assert held <= MOST_MIB, f"{held:.1f} MiB"
        assert 0 == program.end(), program.log
        loaded = program.lines[-1].what.split()
        assert "modules:" == loaded[0]
        assert [] == [name for name in UNUSED if name in loaded]
