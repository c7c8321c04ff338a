"""What a leaf learns: the sums of the Python client, and to the bit those of a twin."""

from __future__ import annotations

import numpy as np
import pytest

from c_leaf import CLeaf, Now
from submerge import Schema, nodes
from submerge.schema import Scaling
from support import oracle

NOW = Now(0.0, 0.0, 0)


def stream(seed: int) -> tuple[Schema, np.ndarray]:
    """Rows of related channels, of one to 32; offsets up to a thousand times what varies."""
    rng = np.random.default_rng(seed)
    dim, n = int(rng.integers(1, 33)), int(rng.integers(1, 150))
    center = ("fleet", "own", "none")[int(rng.integers(3))]
    sizes, offset = 10.0 ** rng.uniform(-3, 3, dim), rng.normal(0, 1, dim) * 10 ** rng.uniform(0, 3)
    causes = rng.standard_normal((int(rng.integers(1, dim + 1)), dim))
    rows = rng.standard_normal((n, len(causes))) @ causes + 0.1 * rng.standard_normal((n, dim))
    scaling = Scaling(tuple(rng.normal(0, 1, dim)), tuple(10.0 ** rng.uniform(-2, 2, dim)))
    schema = Schema(dim, center=center, scaling=scaling if rng.random() < 0.5 else None)
    return schema, sizes * (rows + (0 if center == "none" else offset))


def check(library, seeds: range) -> None:
    worst = 0.0
    for seed in seeds:
        schema, rows = stream(seed)
        leaf = CLeaf(library, schema, "leaf", scores=False)
        leaf.learn(rows, NOW)
        sums, scaled = leaf.sums, schema.scaled(rows)
        twin = oracle.row_by_row(scaled, center=schema.center != "none")
        assert np.array_equal(twin.scatter, sums.scatter), seed
        assert np.array_equal(twin.mean, sums.mean), seed

        engine = nodes.Subspaces(10).engine(schema)
        for block in np.array_split(scaled, 1 + len(rows) // 40):
            engine.partial_fit(block)
        whole = engine.whole_scatter
        assert whole.weight == sums.weight
        off = np.abs(whole.scatter - sums.scatter).max()
        size = np.abs(scaled).max(axis=0)
        assert (np.abs(whole.mean - sums.mean) <= 1e-14 * size).all(), seed
        worst = max(worst, off / max(sums.scatter.trace(), 1e-300)) if len(rows) > 1 else worst
    assert worst <= 1e-12


def test_sums_are_those_of_the_python_client(library):
    """Weight, mean and scatter, within 1e-12 of the energy; those of the twin bit for bit."""
    check(library, range(70))


@pytest.mark.soak
def test_sums_of_ten_thousand_streams_are_those_of_the_python_client(library):
    """The same, of ten thousand streams."""
    check(library, range(200, 10_200))


def test_what_fades_is_to_the_bit_what_the_twin_has(library):
    """By the schema's half-life; a step is a 64th of it."""
    rng = np.random.default_rng(0)
    schema, rows = Schema(7, half_life=64.0), rng.standard_normal((300, 7)) + 100
    leaf, kept, last, t = CLeaf(library, schema, "leaf"), [], 0.0, 0.0
    for row in rows:
        t += float(rng.uniform(0, 3))
        fades = t - last > 1.0
        kept.append(2.0 ** (-(t - last) / 64) if fades else 1.0)
        last = t if fades else last
        leaf.learn(row[None], Now(t, 0.0, 0))
    twin = oracle.row_by_row(rows, np.array(kept))

    np.testing.assert_allclose(leaf.sums.scatter, twin.scatter, rtol=1e-13)
    assert twin.weight == pytest.approx(leaf.sums.weight, rel=1e-14)
    # What powers of two are is the library's: sums by halves are equal to the bit.
    leaf, kept = CLeaf(library, schema, "leaf"), [1.0, 0.5, 0.25, 0.125]
    for row, t in zip(rows, (0.0, 64.0, 192.0, 384.0), strict=False):
        leaf.learn(row[None], Now(t, 0.0, 0))
    twin = oracle.row_by_row(rows[:4], np.array(kept))

    assert np.array_equal(twin.scatter, leaf.sums.scatter)
    assert (twin.weight, *twin.mean) == (leaf.sums.weight, *leaf.sums.mean)


def test_rows_that_are_no_readings_are_withheld(library):
    """A gap, and what is too large: counted, and never learnt."""
    leaf = CLeaf(library, Schema(2), "leaf")
    fates = leaf.learn(
        np.array([[1, 2], [np.nan, 1], [np.inf, 1], [1e12, 0], [-1e12, np.nan]]), NOW
    )

    assert [0, 1, 2, 2, 1] == fates
    assert (1, 4) == (leaf.state.learnt, leaf.state.withheld)
    assert 1 == leaf.sums.weight
