"""`submerge jobs` at a root that runs, and after it was killed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("grpc")

from submerge.jobs.local_run import run_here
from support.job_programs import CHANNELS, ROWS, rows_of
from support.kills.configs import OverGrpc, aggregator, client
from support.patience import PATIENCE_S, until
from support.programs import SUBMERGE, Program, Programs, free_port

pytestmark = pytest.mark.slow

CLIENTS = ("a", "b")


@pytest.fixture
def programs() -> Iterator[Programs]:
    with Programs() as programs:
        yield programs


def submerge(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [SUBMERGE, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def root(programs: Programs, config: Path) -> Program:
    """Start a root."""
    program = programs.start("aggregator", "--config", config)
    program.until("serving")
    return program


def test_a_job_by_command_has_the_answer_of_one_process(programs):
    """To the bit; and the root that starts after kill -9 still has it."""
    way = OverGrpc({"root": free_port()})
    unscaled = ('center = "fleet"', 'center = "fleet"\nscaling = "none"')
    text = aggregator("root", None, way, CHANNELS, programs.folder / "root.state")
    config = programs.file("root.toml", text.replace(*unscaled))
    first = root(programs, config)
    for name in CLIENTS:
        text = client(name, "root", way, CHANNELS, programs.folder / f"{name}.state")
        path = programs.file(f"{name}.toml", text.replace(*unscaled))
        program = programs.start("client", "--config", path)
        program.until("reading")
        for row in rows_of(name):
            program.write(json.dumps(list(row)).encode() + b"\n")
        until(
            lambda program=program: any(
                line.facts["readings"] >= ROWS for line in program.said("acknowledged")
            ),
            lambda name=name: f"{name} to have reported its rows",
        )
    target = programs.folder / "answer.npz"
    ran = submerge(
        *("jobs", "kmeans", "--clusters", 3, "--seed", 5, "--quiet"),
        *("--config", config, "--out", target),
    )

    assert (0, "") == (ran.returncode, ran.stderr)
    settings = {"clusters": 3, "seed": 5}
    expected = run_here("kmeans", settings, {name: rows_of(name) for name in CLIENTS})
    with np.load(target) as found:
        assert np.array_equal(expected["centers"], found["centers_scaled"])
        assert np.array_equal(expected["held_out"], found["held_out"])
        name = json.loads(str(found["job"]))["id"]

    first.kill()
    root(programs, config)
    again = submerge("jobs", "answer", name, "--config", config, "--json")
    assert 0 == again.returncode, again.stderr
    assert expected["centers"].tolist() == json.loads(again.stdout)["answer"]["centers_scaled"]
    assert name in submerge("jobs", "--config", config).stdout
