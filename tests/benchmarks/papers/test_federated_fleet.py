"""Figure 2 and Table 1 of Federated PCA, and the scaling laws: what their figures rest on."""

from __future__ import annotations

import numpy as np
import pytest

from papers import scaling_laws
from papers.federated import peak_memory as table_1
from papers.federated import scaling
from papers.federated.fleet import (
    OURS,
    OURS_AS_PAPER,
    PRINTED,
    WAYS,
    ScaledFleet,
    Stream,
    SynthPieces,
    Taken,
    run,
    taken,
)

SMALL = Stream(rows=1600, alpha=1.0, dim=60, piece=200)


def test_a_piece_depends_on_its_number_alone():
    """So no stream has to be kept; all pieces have one set of eigenvectors, and no mean."""
    made = SynthPieces(30, 1.0, 400)
    second = made.made(2)

    np.testing.assert_array_equal(SynthPieces(30, 1.0, 400).made(2), second)
    assert np.abs(made.made(1) - second).max() > 0.1
    np.testing.assert_allclose(second.mean(axis=0), 0.0, atol=1e-12)
    scatter = sum(made.made(i).T @ made.made(i) for i in range(20)) / 8000
    assert np.linalg.eigvalsh(scatter)[::-1][0] == pytest.approx(1.0, rel=0.1)


def test_every_way_learns_all_rows_and_ends_near_the_optimum():
    """Whatever the number of nodes; no root is below the optimum."""
    found = run(SMALL, WAYS, (1, 2, 8))

    assert {(name, n) for name in WAYS for n in (1, 2, 8)} == set(found)
    for (_, nodes), each in found.items():
        assert 1 - 1e-9 <= each.over < 1.05
        assert 0 < each.slowest <= each.ready <= each.learning + each.merging + 1e-9
        assert each.amortised(nodes) * nodes == pytest.approx(each.learning + each.merging)
        assert (each.merging > 0) == (nodes > 1)


def test_ours_at_the_papers_settings_is_the_paper_as_printed():
    """One node's basis is that of Algorithm 3, and so is what the merges make of four."""
    found = run(SMALL, {name: WAYS[name] for name in (OURS_AS_PAPER, PRINTED)}, (1, 4))

    for nodes in (1, 4):
        ours, theirs = (found[name, nodes].over for name in (OURS_AS_PAPER, PRINTED))
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_the_slowest_path_is_by_node_and_unevenness_by_pairs():
    """A slow moment that hits one node as much as the other is no unevenness."""
    one, two = (ScaledFleet(WAYS[OURS], 400, nodes) for nodes in (1, 2))
    for fleet in (one, two):
        for number in range(2):
            fleet.take(SynthPieces(40, 1.0, 200).made(number))
    one.pieces, two.pieces = [1.0, 2.0], [1.0, 2.2]
    found = taken(WAYS[OURS], two, one, lambda _: 1.0)

    assert found.learning == pytest.approx(3.2)
    assert found.slowest == 2.2
    assert found.uneven == pytest.approx(1.1)
    assert found.ready == pytest.approx(2.2 + found.merging)


def test_the_ideal_is_one_nodes_time_over_the_nodes():
    """A fleet whose learning takes a fifth longer is 1.2 over it."""
    both = {
        ("a", 1): Taken(10.0, 0.0, 0.0, 10.0, 1.0, 10.0, 1.0),
        ("a", 4): Taken(11.5, 0.0, 0.5, 3.0, 1.0, 3.5, 1.0),
    }

    assert scaling._over_ideal(both, "a", 4) == pytest.approx(1.2)


def test_traced_memory_counts_what_a_method_holds():
    """A method that keeps all rows holds them; its peak is no less."""

    class Keeper:
        def __init__(self):
            self.kept = []

        def partial_fit(self, block):
            self.kept.append(block.copy())

        def basis(self):
            return np.eye(20)[:, :2]

    used = table_1.traced(Keeper, np.zeros((500, 20)))

    assert 500 * 20 * 8 <= used.held < 500 * 20 * 8 + 8000
    assert used.held <= used.most.max()
    assert used.rank == 2


@pytest.mark.parametrize("name", table_1.METHODS)
def test_every_method_of_table_1_is_measured(name):
    """It learns rows of motes and has a basis."""
    rows = np.random.default_rng(0).standard_normal((200, 48))
    used = table_1.traced(lambda: table_1.METHODS[name].make(0), rows)

    assert 0 < used.rank <= 48
    assert 0 < used.most.max() < 1e6


def test_an_exponent_is_the_slope_in_logarithms():
    """Cells that were refused are left out; the upper half has its own; a short span has none."""
    x = [1.0, 4.0, 16.0, 64.0]

    assert scaling_laws.exponent(x, [3 * a**2 for a in x]) == pytest.approx(2.0)
    assert scaling_laws.exponent(x, [1.0, 1.0, 1.0, 64.0], upper=True) == pytest.approx(3.0)
    assert scaling_laws.exponent(x, [1.0, 4.0, 16.0, None]) == pytest.approx(1.0)
    assert scaling_laws.exponent(x, [1.0, None, None, None]) is None
    assert scaling_laws.exponent([4.0, 5.0, 6.0], [1.0, 2.0, 3.0]) is None


def test_a_cell_over_the_budget_is_refused_and_shown_so(monkeypatch):
    """Nothing of it is learnt."""
    monkeypatch.setattr(scaling_laws, "BUDGET", 1_000_000)
    monkeypatch.setattr(scaling_laws.measure, "synth", None)
    refused = scaling_laws.cell(4000, 10, 1)
    table = scaling_laws._grid({(4000, 10): refused}, (4000,), (10,))

    assert refused.us_a_row is None
    assert refused.expected > 1_000_000
    assert "refused" in table.markdown
    assert scaling_laws.tree(4096, 1).peak is None


def test_a_cell_and_a_tree_within_the_budget_are_measured():
    """What they take is near what was expected of them."""
    cell = scaling_laws.cell(200, 5, 1)
    tree = scaling_laws.tree(16, 2)

    assert cell.us_a_row > 0
    assert cell.peak <= cell.contract <= cell.expected
    assert 0.5 < tree.peak / tree.expected < 1.5
    assert tree.us_an_update > 0
