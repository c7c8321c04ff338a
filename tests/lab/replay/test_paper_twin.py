"""`submerge replay --paper` beside its twin: an SVD of what is kept and the block, and the rule."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from papers.federated import streams
from submerge_lab.plants.room import QUANTITIES, Room
from support import oracle
from support.commands import shell
from support.data import shared

pytestmark = pytest.mark.slow

BLOCK, ROWS = 50, 1500


def room(quantity: str) -> np.ndarray:
    """The generated room's readings of one quantity, without faults and losses."""
    rows = Room(seed=0, days=1.0, faults=()).sound(0, ROWS)
    return rows[:, QUANTITIES.index(quantity) :: len(QUANTITIES)][:, :48]


def light() -> np.ndarray:
    with gzip.open(shared("motes/light.dat.gz")) as file:
        return np.loadtxt(file)


def synth(alpha: float) -> np.ndarray:
    return streams.synth(alpha, n=ROWS, dim=60, seed=int(10 * alpha))


def turning() -> np.ndarray:
    """Another subspace, ten times as loud, from the middle on."""
    return np.concatenate([synth(3.0)[: ROWS // 2], 10 * streams.synth(1.0, n=750, dim=60, seed=9)])


STREAMS = {
    "Light": light,
    **{quantity: lambda quantity=quantity: room(quantity) for quantity in QUANTITIES},
    **{f"Synth({alpha})": lambda alpha=alpha: synth(alpha) for alpha in (1e-4, 0.5, 1, 2, 3, 4)},
    "nearly of rank 3": lambda: synth(1.0) * np.where(np.arange(60) < 3, 1.0, 1e-3),
    "quiet at first": lambda: np.vstack([1e-3 * synth(4)[:300], synth(2)]),
    "turning": turning,
}


def prepared(rows: np.ndarray) -> np.ndarray:
    """Whole blocks, the mean of all rows removed, as the authors' scripts have them."""
    rows = rows - rows.mean(axis=0)
    return rows[: len(rows) // BLOCK * BLOCK]


def twin(rows: np.ndarray) -> list[tuple[int, np.ndarray]]:
    return oracle.sapca(prepared(rows), start=10, block=BLOCK)


@pytest.mark.parametrize("name", STREAMS)
def test_ranks_and_errors_are_the_twins_block_by_block(name, monkeypatch, capsys, tmp_path):
    """Err_t = ||Y - Y U U'||^2 / t with the basis of that moment, to nine digits of the energy."""
    rows = STREAMS[name]()
    np.savetxt(tmp_path / "rows.dat", rows, fmt="%.17g")
    options = ("--paper", "--rank", 10, "--over-time", "--json")
    _, out, err = shell(monkeypatch, capsys)("replay", tmp_path / "rows.dat", *options)
    assert out, err
    found = json.loads(out)

    rows, moments = prepared(rows), twin(rows)
    errors, energy = [], np.square(rows).sum() / len(rows)
    for number, (_, basis) in enumerate(moments, 1):
        seen = rows[: number * BLOCK]
        errors.append(np.square(seen - seen @ basis @ basis.T).sum() / len(seen))
    assert [basis.shape[1] for _, basis in moments] == found["over_time"]["ranks"]
    np.testing.assert_allclose(errors, found["over_time"]["errors"], rtol=0, atol=1e-9 * energy)
    assert moments[-1][1].shape[1] == found["rank"]
    assert np.isclose(errors[-1], found["error"], rtol=1e-9, atol=1e-9 * energy)


def test_there_are_fourteen_streams_and_ranks_move():
    """Up and down, and to other ends."""
    ranks = {name: [10, *(r for r, _ in twin(of()))] for name, of in STREAMS.items()}
    steps = {int(step) for each in ranks.values() for step in np.diff(each)}

    assert 14 == len(STREAMS)
    assert {-1, 0, 1} == steps
    assert 5 <= len({each[-1] for each in ranks.values()}), ranks
