"""The engine's laws on streams made to break them, on every path: benchmarks/bounds.py in small."""

from __future__ import annotations

import numpy as np
import pytest

import hard_streams
from submerge import SAPCA, MergeTree, Schema, Subspace, merge
from support import checks, oracle

RANK, KEPT, ROWS = 10, 15, 900
FORGETTING = 0.99

PATHS = {
    "default": {},
    "low rank": {"exact": "never"},
    "low rank, no spares": {"exact": "never", "oversample": 0},
    "low rank, forgetting": {"exact": "never", "forgetting_factor": FORGETTING},
    "default, forgetting": {"forgetting_factor": FORGETTING},
    "default, float32": {"dtype": np.float32},
    "low rank, float32": {"exact": "never", "dtype": np.float32},
}

streams = pytest.mark.parametrize("stream", hard_streams.STREAMS)


def rows_of(stream: str, dim: int) -> np.ndarray:
    return hard_streams.STREAMS[stream](ROWS, dim, np.random.default_rng(0))


GATED = ("default", "low rank", "low rank, forgetting")
"""Of the paths of 300 columns, which take long: `make soak` has all."""

CASES = [(48, path) for path in PATHS] + [
    pytest.param(300, path, marks=pytest.mark.slow if path in GATED else pytest.mark.soak)
    for path in PATHS
]


@streams
@pytest.mark.parametrize(("dim", "path"), CASES)
def test_the_laws_hold_on_hard_streams(stream, dim, path):
    """Orthogonal to 1e-12, sigma never overstates, both bounds hold, the energy is exact."""
    X, settings = rows_of(stream, dim), PATHS[path]

    engine = SAPCA(RANK, **settings)
    for start in range(0, ROWS, 50):
        engine.partial_fit(X[start : start + 50])

    truth = oracle.twin(X, oracle.decay(ROWS, settings.get("forgetting_factor", 1.0)))
    checks.never_overstates(engine.subspace, truth, blocks=ROWS // 30)
    checks.never_overstates(engine.shown, truth, blocks=ROWS // 30)


@streams
@pytest.mark.parametrize("parts", [2, 16])
def test_merged_parts_of_hard_streams_obey_the_laws(stream, parts):
    """Fewer rows than columns or more: the merge and the tree never overstate."""
    X, schema, dim = rows_of(stream, 48), Schema.anonymous(48), 48
    summaries = [Subspace.of(part, schema, rank=KEPT) for part in np.array_split(X, parts)]
    tree = MergeTree(rank=dim, fan_in=4)
    for number, summary in enumerate(summaries):
        tree[f"child-{number}"] = summary

    truth = oracle.twin(X)
    checks.never_overstates(merge(*summaries, rank=KEPT), truth, blocks=2 * parts)
    checks.never_overstates(merge(tree.root(), rank=KEPT), truth, blocks=4 * parts)
