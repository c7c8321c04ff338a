"""Acceptance: the example in Flower's simulation, with 20 clients of which two are dropped."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from submerge import Schema
from submerge_files import model_file
from support.flower_simulation import federation

if os.environ.get("SUBMERGE_FLOWER") != "required":
    pytest.importorskip("flwr", reason="Flower has an environment of its own: make test-flower")
    pytest.importorskip("ray", reason="Flower's simulation needs it")

EXAMPLE = Path(__file__).parents[3] / "examples/flower"
CLIENTS, ROUNDS = 20, 3
DROPPED, AWAY = (3, 11), 5

CLIENT = f"""
from flwr.clientapp import ClientApp

from pumps.client import rows
from pumps.task import GROUP
from submerge.flower import train_function

app = ClientApp()
learn = train_function(GROUP, rows)


@app.train()
def train(message, context):
    pump, number = context.node_config["partition-id"], message.content["submerge"]["server-round"]
    if pump in {DROPPED} and number > 1:
        raise RuntimeError("switched off for good")
    if pump == {AWAY} and number == 2:
        raise RuntimeError("out of reach for one round")
    return learn(message, context)
"""

SERVER = f"""
import json
from pathlib import Path

from flwr.serverapp import ServerApp

from pumps.task import GROUP
from submerge.flower import SubmergeStrategy

app = ServerApp()
HERE = Path(FOLDER)


@app.main()
def main(grid, context):
    strategy = SubmergeStrategy(GROUP, store=HERE / "root.db", min_nodes={CLIENTS})
    result = strategy.start(grid, num_rounds={ROUNDS})
    strategy.save(HERE / "pumps.model")
    (HERE / "result.model").write_bytes(result.arrays["submerge.model"].numpy().tobytes())
    found = {{
        node.node: sum(each.learnt for each in (*node.rows, *node.sealed))
        for node in strategy.root.nodes()
    }}
    counts = strategy.root.counts()
    whole = counts.learnt, counts.withheld, counts.lost
    (HERE / "nodes.json").write_text(json.dumps([found, whole]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what one run has left behind."""
    folder = tmp_path_factory.mktemp("simulation")
    app = folder / "app"
    shutil.copytree(EXAMPLE, app)
    (app / "pumps/dropping.py").write_text(CLIENT)
    (app / "pumps/counting.py").write_text(SERVER.replace("FOLDER", repr(str(folder))))
    settings = (app / "pyproject.toml").read_text()
    settings = settings.replace("pumps.server:app", "pumps.counting:app")
    (app / "pyproject.toml").write_text(settings.replace("pumps.client:app", "pumps.dropping:app"))
    with federation(folder) as flower:
        said = flower.run(app, CLIENTS)
        assert (folder / "nodes.json").exists(), said + flower.log.read_text()
    return folder


@pytest.fixture(scope="module")
def task() -> ModuleType:
    """The example's module that both sides share."""
    spec = importlib.util.spec_from_file_location("pumps_task", EXAMPLE / "pumps/task.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_every_reading_of_the_others_counts_once(run: Path, task: ModuleType) -> None:
    """Of 20 clients two are dropped and one misses a round: 17 x 600 and 400 readings count."""
    nodes, counted = json.loads((run / "nodes.json").read_text())
    whole, less = ROUNDS * task.ROWS, (ROUNDS - 1) * task.ROWS

    assert [less, *[whole] * 17] == sorted(nodes.values())
    assert [17 * whole + less, 0, 0] == counted


@pytest.mark.slow
def test_the_model_is_that_of_these_readings(run: Path, task: ModuleType) -> None:
    """Weight, mean and energy of the model are those of all delivered rows, each taken once."""
    saved = model_file.read(run / "pumps.model")
    whole = [pump for pump in range(CLIENTS) if pump not in (*DROPPED, AWAY)]
    rows = [task.readings(pump, 0, ROUNDS * task.ROWS) for pump in whole]
    rows.append(task.readings(AWAY, 0, (ROUNDS - 1) * task.ROWS))
    scaled = Schema.parse(saved.model.schema).scaled(np.vstack(rows))
    assert saved.learnt is not None
    assert saved.learnt.summary is not None
    (summary,) = saved.learnt.summary.pieces

    assert len(scaled) == pytest.approx(summary.weight, rel=1e-12)
    # Scatters travel as float32.
    np.testing.assert_allclose(scaled.mean(axis=0), summary.mean, atol=1e-6)
    assert ((scaled - scaled.mean(axis=0)) ** 2).sum() == pytest.approx(summary.energy, rel=1e-6)


@pytest.mark.slow
def test_the_saved_model_scores_rows(run: Path, task: ModuleType) -> None:
    """`submerge score` takes the file, and the array of the result is the same file."""
    readings = task.readings(pump=99, first=0, n=50)
    readings[40:, 0] += 8  # the flow meter reads too high
    names = [channel.split(" ")[0] for channel in task.GROUP.channels]
    table = run / "day.csv"
    np.savetxt(table, readings, delimiter=",", header=",".join(names), comments="")
    done = subprocess.run(
        [sys.executable, "-m", "submerge_operate", "score", table, "--model", run / "pumps.model"],
        capture_output=True,
        text=True,
        check=True,
    )

    spe = [float(line["spe"]) for line in csv.DictReader(done.stdout.splitlines())]
    assert max(spe[:40]) < min(spe[40:])
    assert model_file.read(run / "result.model").model.counts.learnt == 17 * 600 + 400
