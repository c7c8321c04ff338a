"""Models with noise, by real programs: what is published stays so over a restart."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.commands import shell
from support.kills.configs import OverGrpc, aggregator, client
from support.patience import until
from support.programs import Programs

pytest.importorskip("opendp", reason="OpenDP is not installed: pip install 'submerge[noise]'")
pytestmark = pytest.mark.slow

NAMES = "abc"
FIXED = "channels = [{}]\nscaling = 'fixed'".format(
    ", ".join(f'{{name = "{name}", offset = 0.0, scale = 1.0}}' for name in NAMES)
)
PRIVATE = "[privacy]\nepsilon = 10.0\n[timing]"


def fixed(config: str) -> str:
    return config.replace(f"channels = {list(NAMES)}", FIXED)


def test_a_model_with_noise_stays_what_it_was_until_there_are_more_rows(monkeypatch, capsys):
    """Its epsilon never falls; a restart draws no other noise of the same rows."""
    submerge = shell(monkeypatch, capsys)

    def shown() -> dict:
        """What `model show` says of the running root's model; {} while there is none."""
        found = submerge("model", "show", "--config", config, "--json")
        return {} if found.status else json.loads(found.out)

    way, rng = OverGrpc.on_free_ports(), np.random.default_rng(0)
    with Programs() as programs:
        text = aggregator("root", None, way, NAMES, programs.folder / "root.store")
        text = fixed(text.replace("[timing]", PRIVATE))
        config = programs.file("root.toml", text)
        root = programs.start("aggregator", "--config", config)
        root.until("serving")
        nodes = []
        for node in ("n1", "n2"):
            state = programs.folder / f"{node}.state"
            given = fixed(client(node, "root", way, NAMES, state))
            nodes.append(programs.start("client", "--config", programs.file(node, given)))
            nodes[-1].until("schema settled")

        def learn(rows: int) -> None:
            for node in nodes:
                X = rng.normal(size=(rows, 1)) * [1.0, 1.0, 0.0] + 0.3 * rng.normal(size=(rows, 3))
                node.write("".join(f"{json.dumps(row)}\n" for row in X.tolist()).encode())

        learn(1500)
        until(lambda: shown().get("directions"), lambda: f"a model: {shown()}")
        until(lambda: shown()["learnt"] >= 3000, lambda: f"all rows: {shown()}")
        before = shown()
        root.kill()
        root = programs.start("aggregator", "--config", config)
        root.until("serving")
        until(lambda: shown().get("directions"), lambda: "the model of before")
        after = shown()
        learn(100)
        until(lambda: shown()["directions"] != after["directions"], lambda: f"{shown()}")
        later = shown()

    # A release costs more only where it begins another level of the tree.
    assert 0 < before["epsilon"] <= after["epsilon"] <= later["epsilon"] < 10
    assert before["directions"] == after["directions"]
    names = [name for name, _ in before["directions"][0]["channels"][:2]]
    assert {"a", "b"} == set(names)
