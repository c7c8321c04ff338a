"""Whole scatters and energies of channels on the wire: what is lost, and that none is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError, Schema, Subspace, merge
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import Report
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, columns, forms, triangles
from submerge_proto.wire import sizes as channel_energies
from submerge_proto.wire.sizes import LARGEST, saturated
from support.strategies import streams
from support.wild import wild, wild_whole
from support.wire import (
    OF_NARROW,
    a_report,
    reported,
    subspace_of,
    travelled,
    whole_of,
    with_energies,
)

SCHEMA = Schema(4)


def read(whole: WholeScatter) -> WholeScatter:
    """Return what a receiver has of it."""
    return triangles.unpacked(triangles.packed(whole), whole.schema)


def of_rows(X: np.ndarray) -> WholeScatter:
    """Return the whole scatter of rows, in float64."""
    centered = X - X.mean(axis=0)
    energies = np.square(centered).sum(axis=0)
    return WholeScatter(
        Schema.anonymous(X.shape[1]).fingerprint,
        centered.T @ centered,
        X.mean(axis=0),
        weight=float(len(X)),
        energy=float(energies.sum()),
        spectral_bound=0.0,
        channel_energies=energies,
    )


# -- whole scatters ------------------------------------------------------------------


@given(streams(max_dim=12))
def test_the_bound_covers_what_float32_changed(X):
    """Against dense matrices; and what arrives has no negative eigenvalue but by rounding."""
    before = of_rows(X)
    after = read(before)
    off = float(np.abs(np.linalg.eigvalsh(before.scatter - after.scatter)).max())
    rounding = 1e-12 * before.energy

    assert off <= after.spectral_bound + rounding or after.spectral_bound == after.energy
    assert np.linalg.eigvalsh(after.scatter).min() >= -rounding
    assert reported(before.channel_energies) == reported(after.channel_energies)
    assert after.spectral_bound <= 1e-5 * before.energy + 1e-290


@given(streams(max_dim=12))
def test_a_triangle_is_rounded_once(X):
    """Sent on, or kept and sent again: the same bytes and the same bound."""
    after = read(of_rows(X))

    assert triangles.packed(after) == triangles.packed(read(after))
    assert reported(after) == reported(read(after))


@given(streams(max_dim=12))
def test_nothing_is_lost_on_ones_own_disk(X):
    """In float64, as it was merged; or as it came."""
    for whole in (of_rows(X), read(of_rows(X))):
        message = triangles.packed(whole, exact=True)
        kept = triangles.unpacked(message, whole.schema, kept=True)
        assert reported(whole) == reported(kept)


def test_rows_stand_one_after_the_other():
    """The upper triangle of R, with R'R = scatter / energy: docs/wire.md says it for others."""
    R = np.array([[0.5, 0.25, 0.125], [0, 0.5, -0.25], [0, 0, 0.25]])
    whole = WholeScatter("ab" * 32, 4 * R.T @ R, np.zeros(3), 8.0, 4.0, 0.0)
    message = triangles.packed(whole)

    assert [0.5, 0.25, 0.125, 0.5, -0.25, 0.25] == np.frombuffer(message.columns, "<f4").tolist()
    np.testing.assert_allclose(whole.scatter, read(whole).scatter, rtol=1e-6)


@given(st.integers(0, 2**32))
def test_what_is_accepted_is_sent_on_as_it_is(seed):
    """Or else a row in a store would differ from the row in memory."""
    whole = wild_whole(np.random.default_rng(seed), SCHEMA, 2.0**53)

    assert triangles.saturated_whole(whole) is whole
    assert reported(whole) == reported(read(whole))


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_a_sum_of_the_wildest_is_never_refused(seed, n):
    """Too much weight, or squares too large: one factor, and the triangle stays as it is."""
    rng = np.random.default_rng(seed)
    parts = [wild_whole(rng, SCHEMA, 2.0**53) for _ in range(n)]
    weight = sum(part.weight for part in parts)
    held = sum(part.scatter for part in parts)
    energies = [part.channel_energies for part in parts]
    total = WholeScatter(
        SCHEMA.fingerprint,
        np.asarray(held),
        parts[0].mean,
        weight=weight * float(rng.choice([1, 1e25])),
        energy=sum(part.energy for part in parts),
        spectral_bound=sum(part.spectral_bound for part in parts),
        channel_energies=None if any(e is None for e in energies) else np.sum(energies, axis=0),
    )
    sent = read(total)

    assert sent.weight < LARGEST
    assert (sent.channel_energies is None) == (total.channel_energies is None)


def test_a_triangle_of_a_sum_that_holds_more_than_its_energy_is_made_again():
    """Children may hold 1e-5 more than their energy, and float32 rounds what they come to."""
    whole = whole_of(subspace_of(4, [3.0, 2.0, 1.0], weight=100.0))
    over = replace(whole, held=whole.held * np.float32(1 + 5.5e-6))
    sent = read(over)
    bare = replace(over, channel_energies=None)

    assert over.energy * (1 + 1e-5) < np.trace(over.scatter)
    np.testing.assert_allclose(np.trace(over.scatter), sent.energy, rtol=1e-12)
    np.testing.assert_allclose(over.scatter, read(bare).scatter, atol=1e-6)


@pytest.mark.parametrize("n", [3, 30])
def test_a_triangle_keeps_the_smallest_channel(n):
    """Units of 1e9 beside units of 1e-6, one that is constant, and fewer rows than channels."""
    sizes = np.array([1e9, 1e-6, 1.0, 0.0, 300.0])
    X = np.random.default_rng(n).normal(size=(n, 5)) * sizes
    whole = WholeScatter.of_rows(X, SCHEMA.fingerprint)
    size = np.sqrt(np.maximum(np.diag(whole.scatter), 1e-30))
    off = (read(whole.rounded()).scatter - whole.scatter) / size / size[:, None]

    assert np.abs(off).max() < 1e-5


def test_an_earlier_version_refuses_a_whole_scatter():
    """It knows no field 12: columns without sigma have the wrong length, whatever is in them.

    So a report that reaches such a parent all the same is no summary without directions to it.
    """
    message = forms.report(OF_NARROW["report"])
    message.subspace.ClearField("whole")
    message.subspace.ClearField("channel_energies")

    with pytest.raises(PeerError, match="expected 0 columns of 6 numbers, got 84 bytes") as caught:
        codec.decode("report", message.SerializeToString())
    assert "shape" == caught.value.kind


def test_whole_scatters_are_never_coarse():
    """`columns = "i8"` has no effect on them."""
    report = OF_NARROW["report"]

    assert codec.encode(report) == codec.encode(report, coarse=True)


def test_a_whole_scatter_that_has_faded_to_nothing_is_left_out():
    """As a subspace is; on one's own disk it stays."""
    faded = whole_of(subspace_of(6, [5.0, 4.0], weight=100.0)).faded(2.0**-700)
    report = a_report(summary=faded)

    assert None is travelled(report).summary


def test_decoding_computes_no_directions():
    """An aggregator reads thousands a second; they are found when somebody asks for them."""
    report = travelled(OF_NARROW["report"])

    assert isinstance(report, Report)
    assert isinstance(report.summary, WholeScatter)
    assert "parts" not in vars(report.summary)


# -- energies of channels --------------------------------------------------------------


@given(streams(max_dim=12), st.integers(1, 12), st.booleans())
def test_exact_energies_are_never_refused_nor_changed(X, rank, coarse):
    """Of any rows, at any rank, in float32 columns or int8: they arrive to the last bit."""
    seen = Subspace.of(X, Schema.anonymous(X.shape[1]), rank=rank)
    seen = replace(seen, channel_energies=np.square(X - seen.mean).sum(axis=0))
    after = columns.unpacked(columns.packed(seen, coarse=coarse), seen.schema)

    assert reported(seen.channel_energies) == reported(after.channel_energies)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("small", [0.0, 1e-12, 1e-7, 1e-4])
def test_a_channel_that_hardly_moves_keeps_its_energy(dtype, small):
    """Beside one of deviation 1: columns computed in float32 hold 1e-14 of it too much."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6)) * np.array([1, 1, 1, small, small, 0])
    X = (X - X.mean(axis=0)).astype(dtype)
    _, sigma, rows = np.linalg.svd(X, full_matrices=False)
    rows = np.linalg.qr((rows[:4] + 1e-8 * rng.standard_normal((4, 6))).T)[0].T
    energies = np.square(X, dtype=np.float64).sum(axis=0)
    seen = replace(
        subspace_of(6, sigma[:4].astype(float), weight=500.0, lost=0.0),
        basis=rows.T.astype(np.float32),
        energy=float(energies.sum()),
        spectral_bound=float(sigma[4] ** 2),
        channel_energies=energies,
    )

    assert saturated(seen).channel_energies is energies


@given(st.integers(0, 2**32), st.integers(2, 4), st.booleans())
def test_merged_energies_of_the_wildest_are_never_refused(seed, n, coarse):
    """Three levels: what comes of extremes is within bounds, or is mended before it is sent."""
    rng = np.random.default_rng(seed)
    parts = [wild(rng, SCHEMA, 2.0**53) for _ in range(n)]
    parts = [p if p.channel_energies is not None else with_energies(p) for p in parts]
    for _ in range(3):
        merged = merge(*parts, rank=3)
        energies = [part.channel_energies for part in parts]
        if merged.channel_energies is None and all(each is not None for each in energies):
            merged = replace(merged, channel_energies=np.sum(energies, axis=0))
        above = columns.unpacked(columns.packed(merged, coarse=coarse), SCHEMA.fingerprint)
        parts = [above, *parts[1:]]


def test_energies_that_do_not_agree_are_mended_or_left_out():
    """Raised to what directions hold, then scaled to the energy; else there are none."""
    held, energy = np.array([3.0, 1.0, 0.0]), 8.0
    consistent = channel_energies.consistent

    low = np.array([2.99995, 1.0, 4.00003])
    np.testing.assert_array_equal([3.0, 1.0, 4.00003], consistent(low, held, energy, 0.0))
    assert consistent(low, held, energy, 0.001) is low  # a bound covers what is missing
    np.testing.assert_allclose(
        [4.0, 2.0, 2.0], consistent(np.array([8.0, 4.0, 4.0]), held, energy, 0.0)
    )
    assert consistent(np.array([1.0, 3.0, 4.0]), held, energy, 0.0) is None
    assert consistent(np.array([4.0, 4.0, np.nan]), held, energy, 0.0) is None
    assert consistent(None, held, energy, 0.0) is None


def test_a_report_without_energies_is_the_same_bytes_as_before():
    """None is an empty field, and an empty field is no byte."""
    bare = a_report(summary=subspace_of(6, [5.0, 4.0, 3.0], weight=100.0))
    message = pb.ReportRequest.FromString(codec.encode(bare))

    assert [1, 2, 5, 6, 7, 8, 9] == [field.number for field, _ in message.subspace.ListFields()]
    assert None is travelled(bare).summary.channel_energies
