"""Two to seven channels need no setting: rank, spare directions, lags and period are left out.

A client and a root of configuration files with nothing but their channels: they start, learn, get a
model, score, and find a fault.
"""

from __future__ import annotations

import numpy as np
import pytest

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import Reading, Scored
from submerge_aggregator import config as root_config
from submerge_client.config import client_config
from support.nodes import Host, Table

ROOT = """\
node = "root"
store = "root.db"
[listen.grpc]
insecure = true
[groups.box.schema]
channels = {channels}
scaling = "fleet"
"""
CLIENT = """\
node = "c"
group = "box"
parent = "root"
state = "c.state"
[uplink]
url = "grpc://127.0.0.1"
insecure = true
[schema]
channels = {channels}
scaling = "fleet"
[sensor]
kind = "ndjson"
"""


class Configured(Table):
    """A root and a client `c`, as configuration files have them."""

    def __init__(self, folder, channels: int) -> None:
        names = str([f"x{i}" for i in range(channels)])
        for name, text in (("root", ROOT), ("c", CLIENT)):
            (folder / f"{name}.toml").write_text(text.format(channels=names))
        root = root_config.load(folder / "root.toml", {})
        client = client_config.load(folder / "c.toml", {})
        super().__init__(client.summaries, client.built_schema)
        settings, plans = root.settings, root.plans
        self._seat(Host("root", "root", None, lambda rng: AggregatorNode(settings, plans, rng)))
        known = client.settings, client.built_schema, client.summaries
        self._seat(Host("c", "c", "root", lambda rng: ClientNode(*known, rng)))

    def scores(self, rows: np.ndarray) -> list[Scored]:
        """Have the client read rows, and return their scores."""
        effects = self.step("c", Reading(rows))
        return [each for each in effects if isinstance(each, Scored)]


@pytest.mark.slow
@pytest.mark.parametrize("channels", [2, 3, 5, 7])
def test_defaults_fit_few_channels(tmp_path, channels):
    """Two hidden causes move all channels; a channel that leaves them scores far above all rows."""
    table, rng = Configured(tmp_path, channels), np.random.default_rng(channels)
    mixed = rng.standard_normal((min(2, channels - 1), channels))

    def rows(n: int) -> np.ndarray:
        hidden = rng.standard_normal((n, len(mixed)))
        return 20 + hidden @ mixed + 0.05 * rng.standard_normal((n, channels))

    for _ in range(60):
        table.step("c", Reading(rows(50)))
        table.run()
        table.passes(30)
    table.passes(600)
    root = table.hosts["root"].node
    model, counts = root.model("box"), root.ledger("box").counts()
    faulty = rows(20)
    faulty[:, 0] += 3
    (normal,), (odd,) = table.scores(rows(200)), table.scores(faulty)

    # False alarms of the first rows withhold some; eight wait for others.
    assert (3000 - 8, 0) == (counts.learnt + counts.withheld, counts.lost)
    assert counts.learnt > 2700
    assert model.summary is not None
    assert 1 <= model.rank < channels
    assert odd.scores.even["distance"].min() > np.median(normal.scores.even["distance"])
    assert np.median(odd.scores.even["distance"]) > normal.scores.even["distance"].max()
