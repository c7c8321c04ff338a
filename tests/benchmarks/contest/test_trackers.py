"""The methods of the literature do what their papers say, so that the comparison is fair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contest.contender import Submerge
from contest.line_up import line_up
from contest.streams import spectrum, synth
from contest.trackers.frequent_directions import FrequentDirections
from contest.trackers.grouse import Grouse
from contest.trackers.moses import Moses
from contest.trackers.power_method import PowerMethod
from contest.trackers.spirit import Spirit
from contest.trial import learnt, residual, tails
from support import oracle

LOW_RANK = synth(400, 12, alpha=0.0, seed=3)[:, :3] @ synth(20, 12, alpha=0.0, seed=4)[:3]


@pytest.mark.parametrize("name", line_up(3))
def test_a_method_finds_a_subspace_that_holds_all_rows(name):
    """Rows of rank 3 leave nothing but what a method's own noise leaves; bases are orthonormal."""
    basis = learnt(line_up(3)[name](), np.tile(LOW_RANK, (5, 1)), 20)
    missed = residual(LOW_RANK, basis) / tails(LOW_RANK)[0]

    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-9)
    assert missed < 0.01  # one in a hundred of the energy; exact methods leave 1e-28


@given(st.integers(0, 2**31), st.integers(2, 6))
def test_frequent_directions_keep_their_bound(seed, size):
    """0 <= ||Yx||^2 - ||Bx||^2 <= ||Y - Y_k||^2 / (l - k) for all unit x (Ghashami et al.)."""
    rows = np.random.default_rng(seed).standard_normal((60, 8)) * np.arange(1, 9)
    sketch = FrequentDirections(8, size)
    learnt(sketch, rows.copy(), 7)
    sketch.basis()
    kept = sketch._buffer[: sketch._rows]
    error = np.linalg.eigvalsh(rows.T @ rows - kept.T @ kept)
    missed = tails(rows)

    assert error[0] >= -1e-9 * missed[0]
    assert error[-1] <= min(missed[k] / (size - k) for k in range(size)) * (1 + 1e-9)
    # Robust Frequent Directions add half of what was shrunk: the error is then halved.
    assert sketch.alpha <= min(missed[k] / (size - k) for k in range(size)) / 2 * (1 + 1e-9)


def test_moses_is_the_papers_block_update():
    """MOSES and the centre paper's SPCA without forgetting are one method."""
    rows = spectrum(1.0, n=500, dim=20).rows
    expected, _ = oracle.spca(rows, rank=4, block=50)

    got = learnt(Moses(4, block=50), rows.copy(), 30)

    assert oracle.angle(expected, got) < 1e-6


def test_a_step_of_the_power_method_is_a_step_of_the_power_method():
    """With all rows in one block, the basis is that of C Q for the first Q."""
    rows = spectrum(1.0, n=300, dim=10).rows
    first = np.linalg.qr(np.random.default_rng(0).standard_normal((10, 3)))[0]
    expected = np.linalg.qr(rows.T @ (rows @ first))[0]

    got = learnt(PowerMethod(3, block=300), rows.copy(), 50)

    assert oracle.angle(expected, got) < 1e-6


def test_a_step_of_grouse_moves_the_basis_onto_the_row_if_it_is_greedy():
    """After a greedy step the row lies in the subspace."""
    method = Grouse(3, step=None)
    row = np.random.default_rng(1).standard_normal((1, 9))
    method.partial_fit(row.copy())

    assert residual(row, method.basis()) < 1e-20


def test_grouse_leaves_steps_of_a_quarter_turn_out():
    """With a step that is always too long, the first basis stays."""
    method = Grouse(3, step=1e12)
    rows = np.random.default_rng(1).standard_normal((40, 9))
    first = np.linalg.qr(np.random.default_rng(0).standard_normal((9, 3)))[0]
    method.partial_fit(rows)

    assert oracle.angle(first, method.basis()) < 1e-6


def test_spirit_takes_as_many_hidden_variables_as_hold_the_energy():
    """Of rows with three strong directions it ends with three, from one."""
    rng = np.random.default_rng(5)
    rows = LOW_RANK + 0.01 * rng.standard_normal(LOW_RANK.shape)

    assert (12, 3) == learnt(Spirit(1, forgetting=1.0), np.tile(rows, (5, 1)), 20).shape


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 3.0])
def test_ours_is_at_the_optimum_where_its_memory_holds_the_scatter(alpha):
    """With 48 columns the error over the optimum is 1."""
    rows = spectrum(alpha, n=1000, dim=48).rows
    basis = learnt(Submerge(10), rows.copy(), 50)

    assert residual(rows, basis) <= tails(rows)[10] * (1 + 1e-9)
