"""Figures of Federated PCA: laws of what they measure, on small streams."""

from __future__ import annotations

import numpy as np
import pytest

from contest.trial import tails
from papers.federated import gaps, merge_error, methods, spectrum, streams, synth, time_order
from papers.federated.follow import absolute_mse, follow, offline, optimum, over_optimum
from papers.frame import Figure
from submerge import Schema
from submerge_lab.replay.stacked import stacked


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Synth(4): from start rank 10 the paper's rule goes down."""
    return streams.synth(4.0, n=500, dim=30, seed=3)


def test_errors_over_time_are_those_of_the_rows_themselves(rows):
    """||Y - U U' Y||^2 / t with the subspace of that moment, block after block."""
    found = follow(methods.sapca(10, 50), rows, 50)
    again = methods.sapca(10, 50)
    for t, error in zip(found.rows, found.errors, strict=True):
        again.partial_fit(rows[t - 50 : t].copy())
        U = again.basis()

        assert np.isclose(np.sum((rows[:t] - rows[:t] @ U @ U.T) ** 2) / t, error, rtol=1e-9)


def test_no_method_is_below_the_optimum_of_its_rank(rows):
    """Neither at any moment nor at the end, where it is the ratio of the table."""
    tail = tails(rows)
    for name, found in methods.compared(5, rows, 50, forgetting=1.0).items():
        least = [optimum(rows, 50, rank)[i] for i, rank in enumerate(found.ranks)]

        assert np.all(np.array(found.errors) >= np.array(least) * (1 - 1e-9)), name
        assert over_optimum(found, tail) >= 1 - 1e-9, name


def test_an_adaptive_rank_lies_between_its_bounds(rows):
    """SPCA lo has the least rank and misses most, SPCA hi the largest and misses least."""
    found = methods.bounded(10, rows, 50)
    low, own, high = (np.array(found[name].errors) for name in ("SPCA lo", "SAPCA", "SPCA hi"))

    assert found["SPCA lo"].ranks[-1] == min(found["SAPCA"].ranks) < 10
    assert found["SPCA hi"].ranks[-1] == 10
    assert np.all(low >= high)
    assert np.all((own <= low * 1.01) & (own >= high * 0.99))


def test_submerge_is_offline_pca_on_few_columns(rows):
    """Exact at each moment, so that its subspace is the offline one."""
    found = follow(methods.submerge(5), rows, 50)

    assert np.allclose(optimum(rows, 50, 5), found.errors, rtol=1e-9)
    assert absolute_mse(found.basis, offline(rows)) < 1e-16


def test_the_error_of_u_does_not_know_signs_but_knows_order():
    """As the scripts have it: signs are free, another order of the same directions is not."""
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((9, 3)))[0]

    assert absolute_mse(U * [1, -1, 1], U) == 0.0
    assert absolute_mse(U[:, ::-1], U) > 1e-3
    assert absolute_mse(U[:, :2], U) == 0.0


def test_permutations_are_used():
    """Each is another order of the same rows, and none is the first order."""
    rows = np.arange(60.0)[:, None]
    orders = [tuple(part[:, 0]) for part in time_order.permuted(rows, 5)]

    assert len({tuple(rows[:, 0]), *orders}) == 6
    assert all(sorted(order) == list(rows[:, 0]) for order in orders)


def test_order_moves_frequent_directions_and_not_submerge(rows):
    """In the authors' script their error after a permutation is exactly zero."""
    own = time_order.errors(rows, 5, most=2)[time_order.OWN]

    assert own[methods.OURS].max() < 1e-16
    assert own["FD"].min() > 1e-9
    assert own["SPCA"].min() > 1e-12


def test_spare_directions_make_a_merge_better():
    """Algorithm 2 corrected is Algorithm 4, and so is ours with none spare."""
    rows = {
        row[0]: row for row in merge_error.measured(streams.synth(2.0, n=200, dim=40, seed=0), 8)
    }
    spare, none, two = (
        rows[name] for name in (merge_error.SPARE, merge_error.NONE, merge_error.TWO)
    )

    assert none[3] < 1e-6 > two[3]
    assert np.isclose(none[2], two[2], rtol=1e-6)
    assert spare[2] < none[2]


def test_printed_singular_values_are_near_the_power_law():
    """Those above the rank that theirs ended with: to 4 %, as random rows are."""
    for alpha, printed in spectrum.PRINTED.items():
        true = np.arange(1, 11) ** (-alpha / 2)
        kept = 8 if alpha == 4.0 else 10
        assert np.allclose(printed[:kept], true[:kept], rtol=0.04)


def test_a_mote_set_is_read_where_it_is_and_the_room_stands_in_where_not(tmp_path):
    """Whole blocks without their mean; the title says which rows they are."""
    rows = np.random.default_rng(0).random((123, 4)) + 2
    np.savetxt(tmp_path / "q8calibVolt.dat", rows, delimiter="\t")
    real = streams.motes("Volt", folder=tmp_path)
    other = streams.motes("Humidity", folder=tmp_path, quick=True)

    assert np.allclose(rows[:100] - rows[:100].mean(axis=0), real.rows)
    assert ("Volt", True) == (real.title, real.is_real)
    assert ("Humidity: the generated room instead", False) == (other.title, other.is_real)
    assert (1000, 48) == other.rows.shape
    assert np.isfinite(other.rows).all()
    assert "Volt: the paper's own rows; Humidity: the generated room" in streams.described(
        [real, other]
    )


def test_a_method_at_full_rank_has_no_error_over_the_optimum():
    """Nothing is missed by either; a point is left out, not drawn at infinity."""
    X = streams.synth(0.0, n=60, dim=5, seed=0)
    found = follow(methods.spca(5, 20), X, 20)

    assert over_optimum(found, tails(X)) is None


def test_the_variances_of_synth_are_those_of_the_papers_text():
    """Eigenvalues i^-alpha (4.1, C.1), where the authors' scripts have singular values i^-alpha."""
    X = streams.synth(1.0, n=20_000, dim=5, seed=0)

    found = np.linalg.eigvalsh(X.T @ X / len(X))[::-1]
    assert np.allclose(found, 1 / np.arange(1, 6), rtol=0.05)


def test_spirit_takes_all_directions_for_components_where_rows_are_small():
    """Figure 1 b: the script divides rows by sqrt(n - 1): SPIRIT climbs where it does."""
    X = streams.synth(2.0, n=600, dim=40, seed=0)
    plain = synth.followed(X)[synth.spirit(1.0)]

    assert max(plain.ranks) < 15
    assert 40 == max(synth.scaled(X).ranks)


def test_a_log_that_stands_in_is_read_as_the_log_is(tmp_path):
    """An epoch a row, four quantities a mote; a silent mote, and one left out, are gaps."""
    rows = np.round(np.random.default_rng(0).random((5, 216)) * 90, 2)
    rows[3, 4:8] = np.nan
    gaps.written(tmp_path / "data.txt", rows, np.random.default_rng(1), 0.3)
    found = stacked([tmp_path / "data.txt"], quantity="all").rows

    left_out = np.isnan(found) & ~np.isnan(rows)
    assert rows.shape == found.shape
    assert np.isnan(found[3, 4:8]).all()
    assert 0.2 < left_out.mean() < 0.4
    assert np.allclose(found[~np.isnan(found)], rows[~np.isnan(found)])


def test_what_filling_explains_is_one_without_error():
    """Channels that are one cause: each follows from the others, and the mean explains nothing."""
    rows = np.random.default_rng(0).standard_normal((200, 1)) @ np.ones((1, 20)) + 3.0
    seen = np.where(np.random.default_rng(1).random(rows.shape) < 0.1, np.nan, rows)
    schema = Schema.anonymous(20)
    summary = gaps.one_engine(schema, seen)

    assert np.all(gaps.explained(schema, summary, seen, rows) > 0.999)


@pytest.mark.slow
def test_a_figure_has_ours_and_theirs_in_each_panel():
    """Permuted rows: each panel has a rival beside ours, and as many values as alphas."""
    made = time_order.figure(quick=True)

    assert isinstance(made, Figure)
    for panel in made.panels:
        assert {"ours", "theirs"} == {curve.whose for curve in panel.curves}
        assert all(len(curve.x) == len(curve.y) for curve in panel.curves)
