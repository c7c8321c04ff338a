"""Every row of a finite input has one fate, and the last line of the client says which."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from submerge.client.incarnation import RowAccount
from submerge_client import logs
from submerge_client.uplink import Parted
from support.one_box import OneRoot, Rows, client_of

FATES = set(RowAccount.__dataclass_fields__)
ROOT = """\
node = "root"
store = "root.db"
[listen.grpc]
address = "127.0.0.1:1"
insecure = true
[groups.pumps.schema]
channels = ["flow", "pressure", "current", "temperature"]
scaling = "fleet"
[timing]
model_every_s = 1
"""
CLIENT = """\
node = "c"
group = "pumps"
parent = "root"
state = "c.state"
[uplink]
url = "grpc://127.0.0.1:1"
insecure = true
[schema]
channels = ["flow", "pressure", "current", "temperature"]
scaling = "fleet"
[sensor]
kind = "ndjson"
[timing]
report_every_s = 0.01
"""


def pump(n: int, seed: int = 0) -> np.ndarray:
    """(n, 4) readings of a pump, whose load is hidden."""
    rng = np.random.default_rng(seed)
    load = 1 + 0.3 * np.sin(np.arange(n) / 200) + rng.normal(0, 0.05, n)
    rows = np.column_stack([40 * load, 3 + 1.5 * load, 4 + 6 * load, 45 + 8 * load])
    return rows + rng.normal(0, [0.4, 0.02, 0.1, 0.3], rows.shape)


class NoParent:
    """An uplink without another end."""

    def open(self, hear):
        hear(Parted("out of reach"))

    def send(self, kind, group, data, *, final=False):
        pass

    def close(self):
        pass


@pytest.fixture(autouse=True)
def log():
    """What is logged, as lines of JSON."""
    lines = io.StringIO()
    logs.begin("info", as_json=True, stream=lines)
    return lines


@pytest.fixture
def box(tmp_path, monkeypatch, log):
    """Runs a client over rows, and returns its last line."""
    monkeypatch.chdir(tmp_path)

    def run(rows, *, more="", uplink=None, lags=1):
        scaling = 'scaling = "fleet"\n'
        root, client = (
            each.replace(scaling, f"{scaling}lags = {lags}\n") for each in (ROOT, CLIENT)
        )
        Path("root.toml").write_text(root)
        Path("client.toml").write_text(client + more)
        parent = OneRoot(Path("root.toml")) if uplink is None else uplink
        client_of(Path("client.toml"), parent, Rows(rows)).run()
        lines = map(json.loads, log.getvalue().splitlines())
        return next(line for line in lines if line["what"] == "ended")

    return run


def fates(line: dict) -> dict[str, int]:
    """The fates of a last line, without those of no row.

    Rows that a provisional alarm withholds count as learnt: when the first model comes, and so
    whether a score of the first minute is over its limits, is a matter of the machine's pace.
    """
    found = {fate: n for fate, n in line.items() if fate in FATES and n}
    withheld = found.pop("withheld", 0)
    return found | {"learnt": found["learnt"] + withheld} if withheld else found


def test_a_first_pass_learns_what_measured_the_scale(box):
    """All readings of a file that ends before the fleet has settled its scaling are learnt."""
    ended = box(pump(3000))

    assert {"learnt": 3000} == fates(ended)
    assert (3000, "info") == (ended["rows"], ended["level"])
    assert "todo" not in ended


def test_a_schema_that_is_never_settled_leaves_rows_that_wait(box):
    """Too few to settle it: they wait for the next start, and the line says so."""
    ended = box(pump(300))

    assert {"waiting": 300} == fates(ended)
    assert "warning" == ended["level"]
    assert "scaling" in ended["todo"]


@pytest.mark.slow
def test_rows_that_wait_are_learnt_by_the_next_start(box, log):
    """The next pass brings the fleet over the number that it needs: both passes are learnt."""
    root = OneRoot(_written(ROOT))
    first = box(pump(600), uplink=root)
    log.truncate(0), log.seek(0)
    second = box(pump(600, seed=1), uplink=root)

    assert {"waiting": 600} == fates(first)
    assert {"learnt": 600} == fates(second)
    assert "from_before" not in second
    assert 1200 == root.node.ledger("pumps").counts().learnt


def test_a_parent_that_is_never_reached_costs_all_rows(box):
    """Nothing that was read before the first join is ever sent: it is lost, not waiting."""
    ended = box(pump(300), uplink=NoParent())

    assert {"lost": 300} == fates(ended)
    assert "warning" == ended["level"]
    assert "parent" in ended["todo"]


def test_gaps_and_other_states_have_fates_of_their_own(box):
    """Rows without a number, and rows outside the operating state."""
    rows = pump(3000)
    rows[100, 1:] = np.nan
    rows[1200:1210, 1:] = np.nan
    rows[2000:2100, 0] = 0.0
    ended = box(rows, more='[learn]\nwhen = "flow > 1"\n')

    assert {"learnt": 2889, "gaps": 11, "other_state": 100} == fates(ended)


def test_lags_have_a_fate_of_their_own(box):
    """The first two rows only begin a window of three."""
    ended = box(pump(2000), lags=3)

    assert {"learnt": 1998, "lead_in": 2} == fates(ended)


def _written(text: str) -> Path:
    path = Path("root.toml")
    path.write_text(text)
    return path
