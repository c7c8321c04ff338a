"""From files into a fleet: the first device has limits before it has learnt a row."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

from support import pump_files
from support.kills import OverGrpc
from support.kills.configs import TIMING
from support.patience import until
from support.programs import SUBMERGE, Program, Programs, free_port

pytestmark = pytest.mark.slow

NORMAL, WITHIN = 10, 50
"""Rows before the fault, and rows of it in which an alarm is due."""

ROOT = "root"

SCHEMA = f"""
channels = {json.dumps(pump_files.NAMES)}
center = "fleet"
scaling = "fleet"
"""
"""As `submerge fit` has it, where the history settles the scaling."""


def submerge(*words: str | Path) -> str:
    """What a command prints."""
    done = subprocess.run([SUBMERGE, *words], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout


def lines_of(client: Program) -> list[dict[str, Any]]:
    """Score lines, so far."""
    return [json.loads(line) for line in list(client.out)]


def fed(client: Program, row: np.ndarray) -> dict[str, Any]:
    """Give a client a row; return its line."""
    before = len(client.out)
    client.write(json.dumps(np.round(row, 3).tolist()).encode() + b"\n")
    until(lambda: len(client.out) > before, lambda: f"a line\n{client.log}")
    return lines_of(client)[before]


@pytest.fixture
def programs() -> Iterator[Programs]:
    """Programs, and their folder."""
    with Programs() as programs:
        yield programs


class Fleet:
    """A root and a client, by gRPC, and a model file."""

    def __init__(self, programs: Programs, days: int) -> None:
        self._programs, self._way = programs, OverGrpc({ROOT: free_port()})
        self.store, self.model = programs.folder / "root.db", programs.folder / "pump.model"
        history = pump_files.readings(1440 * days)
        history = pump_files.write(programs.folder / "history.csv", history)
        submerge("fit", history, "-o", self.model, "--no-drill")
        text = f"""
node = "{ROOT}"
store = "{self.store}"
{self._way.listens(ROOT)}
[status]
address = ""
[groups.pumps.schema]
{SCHEMA}
{TIMING}
model_every_s = 0.3
"""
        root = programs.start("aggregator", "--config", programs.file("root.toml", text))
        root.until("serving")

    def client(self) -> Program:
        """Start a client whose rows stand for a minute each."""
        text = f"""
node = "pump-9"
group = "pumps"
parent = "{ROOT}"
state = "{self._programs.folder}/pump.state"
[uplink]
{self._way.up(ROOT)}
[sensor]
kind = "ndjson"
[scores]
to = "stdout"
[schema]
{SCHEMA}
[alarms]
period_s = 60
{TIMING}
gather_s = 0
"""
        path = self._programs.file("pump.toml", text)
        return self._programs.start("client", "--config", path)

    def asks(self, *words: str | Path) -> Any:
        """What the root answers to a command."""
        return json.loads(submerge(*words, "--store", self.store, "--json"))


@pytest.mark.parametrize(("days", "provisional"), [(2, True), (14, False)])
def test_a_new_clients_fault_is_an_alarm_within_fifty_rows(programs, days, provisional):
    """A fault that begins with its 11th row ever; then the history is forgotten.

    By limits of few days the alarm is provisional, and marked so.
    """
    fleet = Fleet(programs, days)
    pushed = fleet.asks("model", "push", fleet.model)
    client = fleet.client()
    client.until("scoring begins: a model is here")
    rows = pump_files.readings(NORMAL + WITHIN, seed=7, first=1440 * days)
    rows[NORMAL:, 0] += 6
    lines = [fed(client, row) for row in rows]
    until(lambda: fleet.asks("alarms"), lambda: f"the root to list it\n{client.log}")
    (alarm,) = fleet.asks("alarms")
    raised = sum(line["at"] < alarm["began"] for line in lines) + 1

    assert (True, provisional) == (pushed["limits"], alarm["provisional"])
    assert ("pump-9", "flow") == (alarm["node"], next(iter(alarm["top"])))
    assert NORMAL < raised <= NORMAL + WITHIN

    (held,) = fleet.asks("model", "histories")
    fleet.asks("model", "forget", held["name"], "--yes")
    assert [] == fleet.asks("model", "histories")
    assert 1440 * days <= pushed["learnt"]
    assert NORMAL + WITHIN >= fleet.asks("model", "show")["learnt"]
