"""MergeTree: the same fleet, the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import (
    SAPCA,
    MergeTree,
    Schema,
    SchemaMismatch,
    Subspace,
    UsageError,
    merge,
    spe,
)
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.summaries import WholeTree
from support import checks, oracle
from support.data import shared
from support.strategies import rows_of

SCHEMA = Schema.anonymous(10)
PARTS = {
    f"node-{i}": Subspace.of(rows_of("decaying", 15, 10, seed=i), SCHEMA, rank=5) for i in range(40)
}


def bytes_of(subspace: Subspace) -> bytes:
    return subspace.basis.tobytes() + subspace.sigma.tobytes() + subspace.mean.tobytes()


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(PARTS)[:12]), st.booleans()), min_size=40, max_size=80
    ),
    st.sampled_from([2, 4, 16]),
)
def test_history_leaves_no_trace(steps, fan_in):
    """Children put in, replaced and taken out in any order: only the last set counts."""
    lived, fresh = (MergeTree(rank=5, fan_in=fan_in) for _ in range(2))
    there: dict[str, Subspace] = {}
    for key, put in steps:
        if put:
            # Not yet the last word for this key: replaced below.
            lived[key] = PARTS["node-0"]
            lived[key] = there[key] = PARTS[key]
            lived.root()
        elif key in there:
            del lived[key], there[key]
    for key in sorted(there):
        fresh[key] = there[key]

    assert set(there) == set(lived)
    assert len(there) == len(lived)
    if there:
        assert bytes_of(fresh.root()) == bytes_of(lived.root())


@pytest.mark.parametrize("fan_in", [2, 4, 16])
def test_the_root_is_the_merge_of_all(fan_in):
    """Every law of a merge holds for the root, and nothing is counted twice."""
    tree = MergeTree(rank=5, fan_in=fan_in)
    for key, part in PARTS.items():
        tree[key] = part

    pooled = np.vstack([rows_of("decaying", 15, 10, seed=i) for i in range(40)])
    checks.never_overstates(tree.root(), oracle.twin(pooled), blocks=80)


@pytest.mark.parametrize(("how", "rank"), [("merge", 1), ("summed", 5)])
def test_only_what_changed_is_merged_again(monkeypatch, how, rank):
    """An update costs the path to the root, a second look nothing."""
    import submerge.pca.tree

    tree = MergeTree(rank=rank, fan_in=4)
    for key, part in PARTS.items():
        tree[key] = part
    tree.root()
    merges, real = [], getattr(submerge.pca.tree, how)
    monkeypatch.setattr(
        submerge.pca.tree, how, lambda *of, **kind: merges.append(how) or real(*of, **kind)
    )

    tree.root()
    assert merges == []
    tree["node-3"] = PARTS["node-4"]
    tree.root()
    assert 1 <= len(merges) <= 6
    assert len(merges) < 40 / 3


def test_own_means_stay_out_at_every_level():
    """center="own" holds for the whole tree."""
    schema = Schema.anonymous(4, center="own")
    blocks = [rows_of("noise", 12, 4, seed=i) + 50 * i for i in range(20)]
    tree = MergeTree(rank=4, fan_in=2, center="own")
    for i, block in enumerate(blocks):
        tree[str(i)] = Subspace.of(block, schema, rank=4)

    np.testing.assert_allclose(
        oracle.scatter_of(tree.root()), oracle.pooled_within(blocks), atol=1e-9
    )


@pytest.mark.parametrize("deal", ["turn", "runs"])
def test_leaves_of_light_give_the_same_bytes_in_any_order(deal):
    """Eight streamed leaves of real data: the root does not know who came first."""
    X = np.loadtxt(shared("motes/light.dat.gz"))
    parts = [X[i::8] for i in range(8)] if deal == "turn" else np.array_split(X, 8)
    leaves = [SAPCA(10, exact="never").partial_fit(part).subspace for part in parts]
    roots = set()
    for seed in range(12):
        tree = MergeTree(rank=15, fan_in=4)
        for i in np.random.default_rng(seed).permutation(8):
            tree[f"leaf-{i}"] = leaves[i]
        roots.add(bytes_of(tree.root()))

    assert len(roots) == 1


def test_the_whole_root_is_computed_again_only_after_a_change():
    """The same object until a child is added, replaced or removed, and then another."""
    tree = MergeTree(rank=5)
    tree["a"] = PARTS["node-1"]
    tree["b"] = PARTS["node-2"]
    roots = [tree.root_whole()]
    assert roots[0] is tree.root_whole()
    for change in (
        lambda: tree.__setitem__("c", PARTS["node-3"]),
        lambda: tree.__setitem__("c", PARTS["node-4"]),
        lambda: tree.__delitem__("c"),
    ):
        change()
        roots.append(tree.root_whole())
        assert roots[-1] is tree.root_whole()

    assert 4 == len({id(root) for root in roots})
    assert [w.weight for w in (roots[0], roots[3])] == [PARTS["node-1"].weight * 2] * 2


def test_the_root_of_a_narrow_group_is_rounded_once():
    """The merge that a group reports is the same object until a child changes."""
    tree = WholeTree(5, "fleet")
    for key in ("a", "b"):
        tree[key] = WholeScatter.of(PARTS["node-1"])
    first = tree.root()
    assert first is tree.root()

    tree["b"] = WholeScatter.of(PARTS["node-2"])
    assert first is not tree.root()


def test_what_a_tree_refuses():
    """Other schemas, other fan-ins, an empty root, a key that is not there."""
    tree = MergeTree(rank=2)
    with pytest.raises(UsageError, match="without children"):
        tree.root()
    tree["a"] = PARTS["node-1"]
    with pytest.raises(SchemaMismatch):
        tree["b"] = Subspace.empty(Schema.anonymous(3))
    assert "b" not in tree
    assert tree["a"] is PARTS["node-1"]
    with pytest.raises(KeyError):
        del tree["b"]
    for fan_in, message in [(0, "at least 2"), (4.5, "whole number"), (3, "power of two")]:
        with pytest.raises(UsageError, match=message):
            MergeTree(rank=2, fan_in=fan_in)
    for key in (7, "\ud800", ""):
        with pytest.raises(UsageError, match="printable text"):
            tree[key] = PARTS["node-1"]


def test_a_single_childs_spare_directions_score_as_in_a_merge():
    """What was merged has no spare directions, however many children there are."""
    X = np.random.default_rng(3).normal(size=(300, 5))
    tree, only = MergeTree(rank=4), SAPCA(rank=2).partial_fit(X).subspace
    tree["a"] = only
    assert np.array_equal(spe(X, merge(only, rank=4)), spe(X, tree.root()))
