"""A narrow group from end to end: clients, an aggregator and a root report whole scatters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import Schema, Subspace
from submerge.aggregator.rows.influence import ChildBounds, ChildSummary, InfluenceRule
from submerge.aggregator.rows.pool import Pool, Sealed
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol import summaries
from submerge.protocol.machine import Flush, Reading
from submerge.protocol.messages import Counts
from submerge.protocol.summaries import MOST_TIMES, Subspaces
from submerge.robust.outliers import screen
from support import checks, oracle
from support.nodes import Table
from support.strategies import rows_of

DIM, RANK, SPARES = 9, 2, 1
KIND = Subspaces(RANK, oversample=SPARES)
SCHEMA = Schema.anonymous(DIM)


def readings(i: int) -> np.ndarray:
    """60 rows of one client: near-copies of three channels, far from zero."""
    rng = np.random.default_rng(i)
    rows = rng.standard_normal((60, 3)) @ rng.standard_normal((3, DIM))
    return rows + 1e-4 * rng.standard_normal((60, DIM)) + 1e3 * rng.random(DIM)


def whole_of(rows: np.ndarray, schema: Schema = SCHEMA) -> WholeScatter:
    """All of the rows' scatter, as it arrives."""
    return WholeScatter.of(Subspace.of(rows, schema, rank=schema.dim)).rounded()


def three_levels() -> Table:
    table = Table(KIND, SCHEMA)
    table.root("r")
    for a in range(2):
        table.aggregator(f"a{a}")
        for c in range(2):
            table.client(f"c{a}{c}", under=f"a{a}", report_every_s=100)
    for a in range(2):
        for c in range(2):
            table.step(f"c{a}{c}", Reading(readings(2 * a + c)))
            table.step(f"c{a}{c}", Flush())
    table.passes(1000)
    return table


def test_the_root_knows_all_of_the_scatter_and_its_model_the_leading_directions():
    """Three kept directions of nine would lose six at each level; here none is lost."""
    table = three_levels()
    truth = oracle.twin(np.vstack([readings(i) for i in range(4)]))

    for label in ("c00", "a0"):
        assert isinstance(table.reports(label)[-1].summary, WholeScatter)
    checks.whole_never_overstates(table.hosts["r"].ledger.summary(), truth, blocks=16)
    model = table.hosts["r"].model.summary
    assert isinstance(model, Subspace)
    assert RANK + SPARES == model.rank
    np.testing.assert_allclose(model.sigma**2, truth.eigenvalues[:3], rtol=1e-6)
    np.testing.assert_allclose(model.channel_energies, np.diag(truth.scatter), rtol=1e-9)


def test_the_model_has_the_noise_of_each_channel():
    """Fitted to the scatter of all levels, and every node's scores have distances."""
    table = three_levels()
    (found,) = table.hosts["r"].model.factors
    table.step("c00", Reading(readings(0)))
    table.step("c00", Flush())

    assert found.loadings.shape == (DIM, DIM // 2)
    assert table.reports("c00")[-1].scores.distance.n >= 60


def test_a_child_of_an_earlier_version_is_merged_with_the_others():
    """It sends directions without energies of channels: bounds say what is missing."""
    blocks = [readings(i) for i in range(3)]
    old = replace(Subspace.of(blocks[0], SCHEMA, rank=2), channel_energies=None)
    parts = [old, *map(whole_of, blocks[1:])]
    tree = KIND.tree(SCHEMA)
    for i, part in enumerate(parts):
        tree[str(i)] = part

    truth = oracle.twin(np.vstack(blocks))
    assert np.float32 == tree.root().held.dtype  # as it will be sent
    for found in (tree.root(), KIND.merged(SCHEMA, parts, own=True)):
        assert isinstance(found, WholeScatter)
        assert found.channel_energies is None
        assert found.energy == pytest.approx(truth.energy, rel=1e-11)
        off = np.linalg.eigvalsh(truth.scatter - found.scatter)
        assert off[0] >= -1e-6 * truth.energy
        assert off[-1] <= found.spectral_bound + 1e-11 * truth.energy
        assert found.spectral_bound >= old.spectral_bound


def test_a_part_that_comes_alone_goes_up_as_it_came():
    """An aggregator with one child adds no rounding."""
    part = whole_of(readings(0))
    tree = KIND.tree(SCHEMA)
    tree["only"] = part

    assert KIND.merged(SCHEMA, [part], own=True) is part
    assert tree.root() is part


def test_many_restarts_of_a_node_are_rounded_as_one():
    """What earlier incarnations reported is added up unrounded; only their sum is rounded."""
    pool = Pool(SCHEMA, KIND, 0.0)
    lives = [whole_of(rows_of("decaying", 60, DIM, seed=i)) for i in range(100)]
    sealed = Sealed(lives[0], None, Counts(60), 0.0)
    for life in lives[1:]:
        sealed = pool.fold(sealed, Sealed(life, None, Counts(60), 0.0), own=True)
    pool.put("n", [], {SCHEMA.fingerprint: sealed})

    one = max(life.spectral_bound / life.energy for life in lives)
    assert sealed.summary.spectral_bound <= one * sealed.summary.energy
    root = pool.summary()
    assert np.float32 == root.held.dtype
    assert root.spectral_bound <= 3 * one * root.energy


def test_what_takes_summaries_decomposes_none_without_need(monkeypatch):
    """Merging, fading, bounding and packing need no directions."""
    monkeypatch.setattr(WholeScatter, "directions", None)
    parts = {f"n{i}": whole_of(readings(i)) for i in range(6)}
    tree = KIND.tree(SCHEMA)
    for name, part in parts.items():
        tree[name] = KIND.faded(part, 0.5)
    bounds = ChildBounds(SCHEMA, InfluenceRule())
    bounds.measure({name: ChildSummary(part, client=True) for name, part in parts.items()})

    assert {} == bounds.bounds(lambda _: 1e6, 0.0)
    assert 180 == tree.root().weight
    assert KIND.packed(KIND.merged(SCHEMA, list(parts.values()), own=True))


def test_a_screening_sees_no_more_directions_than_of_others(monkeypatch):
    """Scatters or their leading directions: the same outliers, and the same factors."""
    blocks = {f"n{i}": rows_of("decaying", 80, DIM, seed=i) for i in range(8)}
    blocks["n7"] = 100 * blocks["n7"][:, ::-1]
    whole = {name: whole_of(block) for name, block in blocks.items()}
    cut = {name: KIND.directions(part) for name, part in whole.items()}

    seen: list[int] = []

    def spied(parts, **settings):
        seen.extend(part.rank for part in parts.values())
        return screen(parts, **settings)

    monkeypatch.setattr(summaries, "screen", spied)
    one, other = (KIND.screen(SCHEMA, parts, unit=1.0) for parts in (whole, cut))
    assert {RANK + SPARES} == set(seen)
    assert one.outliers.keys() == other.outliers.keys() == {"n7"}
    assert one.factors == other.factors


def test_a_scatter_fits_where_its_directions_would():
    """In proportion to what a group keeps; never in another schema, or in a kernel group."""
    wide = Schema.anonymous(4 * MOST_TIMES * (RANK + SPARES))
    limit = Schema.anonymous(wide.dim - 1)

    assert KIND.fits(SCHEMA, whole_of(readings(0)))
    assert not KIND.fits(Schema.anonymous(DIM + 1), whole_of(readings(0)))
    assert KIND.fits(limit, whole_of(np.eye(limit.dim), limit))
    assert not KIND.fits(wide, whole_of(np.eye(wide.dim), wide))


def test_in_a_wider_group_a_scatter_merges_as_its_directions():
    """A client with other settings sends one: the group merges at its own rank."""
    schema = Schema.anonymous(14)
    parts = [whole_of(rows_of("decaying", 60, 14, seed=i), schema) for i in range(3)]
    tree = KIND.tree(schema)
    for i, part in enumerate(parts):
        tree[str(i)] = part

    truth = oracle.twin(np.vstack([rows_of("decaying", 60, 14, seed=i) for i in range(3)]))
    for found in (tree.root(), KIND.merged(schema, parts, own=True)):
        assert isinstance(found, Subspace)
        assert RANK + SPARES == found.rank
        np.testing.assert_allclose(found.sigma**2, truth.eigenvalues[:3], rtol=1e-5)
