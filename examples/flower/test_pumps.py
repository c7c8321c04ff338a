"""The example in Flower's simulation, with 20 clients: two are dropped, one misses a round."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parent
sys.path.insert(0, str(EXAMPLE))

from federation import federation  # noqa: E402
from pumps.task import RANK, ROWS, SCHEMA, readings  # noqa: E402

CLIENTS, ROUNDS = 20, 3
DROPPED, AWAY = (3, 11), 5

CLIENT = f"""
from flwr.clientapp import ClientApp

from pumps.client import train

app = ClientApp()


@app.train()
def dropping(message, context):
    pump, number = context.node_config["partition-id"], message.content["config"]["server-round"]
    if pump in {DROPPED} and number > 1 or pump == {AWAY} and number == 2:
        raise RuntimeError("switched off")
    return train(message, context)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The file that one run has left behind."""
    folder = tmp_path_factory.mktemp("simulation")
    app = folder / "app"
    shutil.copytree(EXAMPLE, app)
    (app / "pumps/dropping.py").write_text(CLIENT)
    text = (app / "pyproject.toml").read_text()
    text = text.replace("pumps.client:app", "pumps.dropping:app")
    text = text.replace("min-nodes = 2", f"min-nodes = {CLIENTS}")
    (app / "pyproject.toml").write_text(text.replace("pumps.npz", str(folder / "pumps.npz")))
    with federation(folder) as flower:
        said = flower.run(app, CLIENTS)
        assert (folder / "pumps.npz").exists(), said + flower.log.read_text()
    return np.load(folder / "pumps.npz")


def test_every_reading_that_arrived_counts_once(model):
    """Weight, mean and scatter are those of the rows that the server has heard of."""
    taken = dict.fromkeys(range(CLIENTS), ROUNDS * ROWS)
    taken |= dict.fromkeys(DROPPED, ROWS) | {AWAY: (ROUNDS - 1) * ROWS}
    rows = SCHEMA.scaled(np.vstack([readings(pump, 0, n) for pump, n in taken.items()]))
    _, sigma, directions = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)

    assert len(rows) == pytest.approx(model["weight"][0], rel=1e-12)
    np.testing.assert_allclose(rows.mean(axis=0), model["mean"], atol=1e-9)
    np.testing.assert_allclose(sigma[:RANK], model["sigma"], rtol=1e-6)
    turned = np.abs(directions[:RANK] @ model["basis"])
    np.testing.assert_allclose(np.eye(RANK), turned, atol=1e-4)
