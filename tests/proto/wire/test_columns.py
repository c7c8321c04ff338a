"""Columns on the wire: where they may be coarse, what that costs, and what a report weighs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError, Schema, Subspace, merge
from submerge.aggregator.rollup import BINS
from submerge.pca.factor import Factors
from submerge.protocol.alarm_status import AlarmStatus
from submerge.protocol.messages import (
    Census,
    Counts,
    Incarnation,
    Model,
    Report,
    ScoreSketches,
    Stamp,
)
from submerge.protocol.score_trail import LAST_MINUTE, MINUTES, NO_TRAIL, ScoreTrail
from submerge.protocol.summaries import KernelSummary
from submerge.stats.block_maxima import WINDOW_S, BlockMaxima
from submerge.stats.moments import KEPT, LEAST_WIDTH, Moments, Reservoir
from submerge.stats.quantile_sketch import COARSE, FINE, QuantileSketch, empty
from submerge.stats.score_limits import Limits
from submerge_client.config.sizes import Linear, size_of_model, size_of_report
from submerge_proto.wire import codec, columns
from support.alarm_statuses import most_peaks, most_vigil
from support.oracle import angle, scatter_of
from support.strategies import streams
from support.wire import reported, subspace_of, whole_of

SCHEMA = Schema.anonymous(64)


def received(subspace: Subspace, *, coarse: bool = True) -> Subspace:
    """Return what arrives of a subspace."""
    return columns.unpacked(columns.packed(subspace, coarse=coarse), subspace.schema)


def error(before: Subspace, after: Subspace) -> float:
    """||U S^2 U' - V S^2 V'||_2, in dense matrices."""
    return float(np.linalg.norm(scatter_of(before) - scatter_of(after), 2))


def as_f32(subspace: Subspace) -> Subspace:
    """Return a subspace as those on the way see it."""
    return replace(subspace, basis=np.asarray(subspace.basis, np.float32))


# -- which columns ------------------------------------------------------------------


@given(streams(max_dim=16), st.integers(1, 16))
def test_columns_are_coarse_only_up_to_eight_times_the_smallest(X, rank):
    """Those before are float32: the rounding of a large one would drown the small ones."""
    subspace = Subspace.of(X, Schema.anonymous(X.shape[1]), rank=rank)
    message = columns.packed(subspace, coarse=True)
    n_coarse = len(message.scales) // 4

    if subspace.rank:
        assert np.count_nonzero(subspace.sigma <= 8 * subspace.sigma[-1]) == n_coarse
    assert len(message.columns) == 4 * subspace.dim * (subspace.rank - n_coarse)
    assert len(message.coarse) == subspace.dim * n_coarse
    assert not columns.packed(subspace).scales


def test_a_peer_that_rounds_more_is_refused():
    """A coarse column of nine times the smallest sigma."""
    message = columns.packed(subspace_of(64, [7.9, 1.0]), coarse=True)
    assert 8 == len(message.scales)
    columns.unpacked(message, SCHEMA.fingerprint)
    message.sigma = np.array([8.1, 1.0]).tobytes()
    message.energy = 100.0

    with pytest.raises(PeerError, match="up to 8 times"):
        columns.unpacked(message, SCHEMA.fingerprint)


@pytest.mark.parametrize("off", [0.04, 0.06])
def test_coarse_columns_may_be_off_by_more(off):
    """5e-2 where float32 ones have 1e-3: what 127 steps leave of a right angle."""
    message = columns.packed(subspace_of(64, [1.0, 1.0]), coarse=True)
    rows = np.frombuffer(message.coarse, "i1").reshape(2, 64).astype(float)
    scales = np.frombuffer(message.scales, "<f4")
    tilted = rows * scales[:, None]
    tilted[0] += off * tilted[1]
    message.scales = (np.abs(tilted).max(axis=1) / 127).astype("<f4").tobytes()
    scales = np.frombuffer(message.scales, "<f4")
    message.coarse = np.rint(tilted / scales[:, None]).astype("i1").tobytes()

    if off > columns.OFF_COARSE:
        with pytest.raises(PeerError, match="orthonormal"):
            columns.unpacked(message, SCHEMA.fingerprint)
    else:
        basis = columns.unpacked(message, SCHEMA.fingerprint).basis.astype(float)
        np.testing.assert_allclose(np.eye(2), basis.T @ basis, atol=3e-7)


def test_columns_that_127_steps_cannot_tell_go_as_float32():
    """One large number and 800 small ones, each of a step and a half: no right angle survives."""
    step = 0.9**0.5 / 127
    column = np.r_[0.9**0.5, np.full(807, 1.49 * step)]
    column /= np.linalg.norm(column)
    spiky = Subspace(
        Schema.anonymous(808).fingerprint,
        column[:, None].astype(np.float32),
        np.ones(1),
        np.zeros(808),
        weight=5.0,
        energy=2.0,
        spectral_bound=0.0,
    )

    assert reported(spiky) == reported(received(spiky))


# -- what it costs --------------------------------------------------------------------


@given(streams(max_dim=16), st.integers(1, 16))
def test_the_bound_covers_what_rounding_did(X, rank):
    """The sender says by how much the receiver is off; the bound was right before, and stays so."""
    before = as_f32(Subspace.of(X, Schema.anonymous(X.shape[1]), rank=rank))
    after = received(before)
    added = after.spectral_bound - before.spectral_bound
    # Of float64, in a dense matrix; and the bound is never above the energy.
    rounding = 1e-12 * before.energy

    assert error(before, after) <= added + rounding or after.spectral_bound == after.energy
    assert error(before, after) <= after.energy + rounding
    assert added <= 2 * error(before, after) + rounding
    assert reported(before.sigma) == reported(after.sigma)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_covers_eight_that_were_merged(seed):
    """Each of another node, rounded on its way: what the parent merges is within the sum."""
    rng = np.random.default_rng(seed)
    schema = Schema.anonymous(64)
    decay = 0.85 ** np.arange(64)
    parts = [
        as_f32(Subspace.of(rng.standard_normal((200, 64)) * decay, schema, rank=13))
        for _ in range(8)
    ]
    seen = [received(part) for part in parts]
    # At full rank: whatever separates the two is rounding, and not what a merge discards.
    exact, rounded = (merge(*each, rank=64) for each in (parts, seen))
    added = rounded.spectral_bound - exact.spectral_bound

    assert error(exact, rounded) <= added + 1e-6 * exact.sigma[0] ** 2  # float32 columns
    assert 0 < added < 0.02 * exact.sigma[0] ** 2


def test_coarse_columns_hardly_turn_a_merge():
    """Eight nodes at rank 10, spares merged with them: the space turns by a third of a degree."""
    rng = np.random.default_rng(0)
    schema = Schema.anonymous(64)
    decay = np.r_[2.0 * 0.9 ** np.arange(10), 0.2 * 0.95 ** np.arange(54)]
    parts = [
        as_f32(Subspace.of(rng.standard_normal((400, 64)) * decay, schema, rank=15))
        for _ in range(8)
    ]
    exact = merge(*parts, rank=15).basis[:, :10]
    rounded = merge(*map(received, parts), rank=15).basis[:, :10]

    assert angle(exact.astype(float), rounded.astype(float)) < 1 / 3


# -- sizes ----------------------------------------------------------------------------


def sketch_of(n: int) -> QuantileSketch:
    """So many scores in as many buckets as there can be, each as far from the next as can be."""
    return QuantileSketch(0, tuple((-7200 + 960 * i, n // COARSE.bins) for i in range(COARSE.bins)))


def a_day() -> Report:
    """What a client of 64 channels says at rank 8, with 5 spares, after a day of seconds."""
    seen = QuantileSketch(0, tuple((i, 128) for i in range(30, 46)))
    return Report(
        Stamp("press-3", "presses", Incarnation(1_700_000_000_000, 2**62), 288),
        final=False,
        pinned=Incarnation(1_700_000_000_000, 2**62),
        fence=b"",
        fingerprint=SCHEMA.fingerprint,
        summary=subspace_of(64, np.linspace(200, 100, 13), weight=86_400.0, energies=True),
        moments=None,
        counts=Counts(86_400, 17, 0),
        as_of=1_700_086_400.0,
        synced=True,
        version=1_700_086_000_000,
        lifetime=600_000,
        scores=ScoreSketches(seen, seen, distance=seen),
        software="submerge 0.1.0",
        trail=ScoreTrail(28_334_773, bytes(MINUTES)),
    )


def test_what_alarms_add_to_a_report():
    """The figure of docs/wire.md: of 30 days, three octaves wide; nothing has gone wrong."""
    maxima = QuantileSketch.of(np.geomspace(1, 8, 720), FINE)
    alarm_status = AlarmStatus(
        AlarmStatus.at("armed"), (), 0, 2_592_000.0, 4.2857, desired=1_700_000_000_000
    )
    day = a_day()
    nothing = empty(FINE)
    of_hours = BlockMaxima(nothing, nothing, nothing, 720, maxima, maxima, maxima)
    scores = day.scores._replace(maxima=of_hours)

    added = len(codec.encode(replace(day, scores=scores, alarm_status=alarm_status))) - len(
        codec.encode(day)
    )
    assert 635 == added


@pytest.mark.parametrize(("coarse", "size"), [(False, 4844), (True, 2402)])
def test_what_a_report_weighs(coarse, size):
    """The figures of docs/wire.md: 64 channels, 13 columns, names of 7 letters, scores."""
    assert size == len(codec.encode(a_day(), coarse=coarse))


def test_what_a_report_of_a_narrow_group_weighs():
    """The figure of docs/wire.md: 54 channels at 15 directions; int8 makes it no smaller."""
    whole = whole_of(subspace_of(54, np.linspace(200, 100, 15), weight=86_400.0), rest=1.0)
    day = replace(a_day(), summary=whole)

    assert 7192 == len(codec.encode(day)) == len(codec.encode(day, coarse=True))


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize(("dim", "k"), [(1, 1), (3, 2), (51, 13), (59, 15)])
def test_no_report_of_a_narrow_group_is_larger_than_was_reckoned(dim, k, above):
    """2 dim (dim + 1) + 16 dim in place of columns and sigma."""
    columns_alone = largest(dim, k, 64, above=above)
    message = replace(columns_alone, summary=whole_of(columns_alone.summary, rest=1.0))
    size = len(codec.encode(message))

    assert size <= size_of_report(dim, k, merged=above)
    assert size <= 2 * dim * (dim + 1) + 16 * dim + (39_800 if above else 9130)


def sample(width: int) -> Reservoir | None:
    """As much as goes with moments of so many channels."""
    if width < LEAST_WIDTH:
        return None
    return Reservoir(2**63 + np.arange(KEPT, dtype=np.uint64), np.ones((KEPT, 4), np.float32))


def largest(dim: int, k: int, letters: int, *, above: bool, linear: Linear | None = None) -> Report:
    """The largest report that a node makes; `above`: an aggregator's. Without columns: moments.

    `linear`: a kernel group's; only there a sample goes with moments.
    """
    most, readings = Incarnation(2**62, 2**64 - 1), 2**53
    # Of two windows; of as many as are believed.
    sketch = sketch_of(readings if above else 2048)
    maxima = most_peaks(
        readings if above else int(2 * WINDOW_S), linear=linear is not None, above=above
    )
    summary: Any = subspace_of(dim, np.ones(k), weight=1.0, energies=True) if k else None
    if linear is not None and k:
        beside = subspace_of(linear.width, np.ones(linear.k), weight=1.0, energies=True)
        summary = KernelSummary(summary, beside)
    width = dim if linear is None else linear.width
    drawn = None if linear is None else sample(width)
    return Report(
        Stamp("n" * letters, "g" * letters, most, 2**62),
        final=True,
        pinned=most,
        fence=b"f" * 16 if above else b"",
        fingerprint="ab" * 32,
        summary=summary,
        moments=None if k else Moments(readings, np.ones(width), np.ones(width), drawn),
        counts=Counts(readings, readings, readings),
        as_of=1.1,
        synced=True,
        version=2**63 - 1,
        lifetime=2**62,
        census=Census(2**40, (2**40,) * BINS) if above else None,
        scores=ScoreSketches(sketch, sketch, None if linear is None else sketch, maxima, sketch),
        software="submerge 10.10.10rc1",
        alarm_status=most_vigil("n" * letters, above=above),
        trail=NO_TRAIL if above else ScoreTrail(LAST_MINUTE, bytes(MINUTES)),
    )


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize(
    ("dim", "k"), [(1, 1), (3, 2), (64, 13), (300_000, 2), (64, 0), (250_000, 0)]
)
@pytest.mark.parametrize(
    ("letters", "above", "beside"),
    [(24, False, 8690), (64, False, 9130), (24, True, 37_160), (64, True, 39_800)],
)
def test_no_report_is_larger_than_the_formula(letters, above, beside, dim, k, coarse):
    """4 dim k + 16 dim + 8 k, and what docs/wire.md says beside: every number at its largest.

    Moments, which go while there are no columns, are as much as two of them.
    """
    data = codec.encode(largest(dim, k, letters, above=above), coarse=coarse)

    assert len(data) <= 4 * dim * max(k, 2) + 8 * (2 * dim + k) + beside


KERNEL_SIZES = [
    (2, 1, Linear(1, 1)),
    (512, 21, Linear(48, 21)),
    (65_536, 15, Linear(1000, 20)),
    (256, 8, Linear(60_000, 3)),
    (64, 0, Linear(8, 8)),
    (64, 0, Linear(60_000, 1)),
]


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize(("dim", "k", "linear"), KERNEL_SIZES)
@pytest.mark.parametrize(
    ("letters", "above", "beside"),
    [(24, False, 9610), (64, False, 10_050), (24, True, 38_810), (64, True, 41_450)],
)
def test_no_report_of_a_kernel_group_is_larger_than_the_formula(
    letters, above, beside, dim, k, linear, coarse
):
    """As much again for the readings; or their moments, and a sample of 64."""
    message = largest(dim, k, letters, above=above, linear=linear)
    data = codec.encode(message, coarse=coarse)
    both = sum(4 * d * n + 8 * (2 * d + n) for d, n in ((dim, k), linear))

    assert len(data) <= (both if k else 16 * linear.width + 1536) + beside


@pytest.mark.parametrize(("dim", "k", "linear"), KERNEL_SIZES)
@pytest.mark.parametrize("above", [False, True])
def test_a_kernel_groups_node_reckons_with_more_than_it_sends(dim, k, linear, above):
    """What is judged at the start is never exceeded later: with columns, and before there are."""
    data = codec.encode(largest(dim, k, 64, above=above, linear=linear))

    assert len(data) <= size_of_report(dim, k, merged=above, linear=linear)


@pytest.mark.parametrize(("coarse", "size"), [(False, 56_824), (True, 21_715)])
def test_what_a_report_of_a_kernel_group_weighs(coarse, size):
    """The figures of docs/wire.md: 512 features of 48 channels, 21 columns of each, scores."""
    sigma, day = np.linspace(200, 100, 21), a_day()
    both = KernelSummary(
        *(subspace_of(dim, sigma, weight=86_400.0, energies=True) for dim in (512, 48))
    )
    scores = ScoreSketches(day.scores.spe, day.scores.t2, day.scores.spe, distance=day.scores.spe)

    assert size == len(codec.encode(replace(day, summary=both, scores=scores), coarse=coarse))


@pytest.mark.parametrize(("dim", "k", "linear"), [each for each in KERNEL_SIZES if each[1]])
def test_no_model_of_a_kernel_group_is_larger_than_the_formula(dim, k, linear):
    """Beside its schema's text; `check_size` reckons with more."""
    most, readings, values = 2**62, 2**53, (1.1, 2.2, 3.3)
    text = b"a form to come" + bytes(70_000)
    model = Model(
        "g" * 64,
        2**63 - 1,
        text,
        "ab" * 32,
        largest(dim, k, 64, above=False, linear=linear).summary,
        Limits((0.95, 0.99, 0.999), values, values, most, values, values),
        Counts(readings, readings, readings),
        most,
        values,
        created=1.1,
        expires=1.1,
        maxima=most_peaks(readings, linear=True, above=True),
        factors=tuple(Factors(np.full(of, 0.5)) for of in (dim, linear.width)),
        rank=1024,
        block_s=2.0**24,
        widened=1.5,
    )
    both = sum(4 * d * n + 8 * (2 * d + n) for d, n in ((dim, k), linear))

    both += 4 * (dim + linear.width)
    assert len(codec.encode(model)) <= both + 9330 + len(text)
    assert len(codec.encode(model)) <= size_of_model(dim, k, len(text), linear=linear)


@pytest.mark.parametrize(("dim", "k"), [(1, 1), (64, 13), (60_000, 10)])
def test_no_model_is_larger_than_the_formula(dim, k):
    """Beside its schema's text: a group of 64 letters, and every number at its largest."""
    most, readings = 2**62, 2**53
    schema, values = Schema.anonymous(dim), (1.1, 2.2, 3.3)
    model = Model(
        "g" * 64,
        2**63 - 1,
        schema.canonical,
        schema.fingerprint,
        subspace_of(dim, np.ones(k), weight=1.0, energies=True),
        Limits((0.95, 0.99, 0.999), values, values, most, distance=values),
        Counts(readings, readings, readings),
        most,
        values,
        created=1.1,
        expires=1.1,
        maxima=most_peaks(readings, linear=False, above=True),
        factors=(Factors(np.full(dim, 0.5)),),
        rank=1024,
        block_s=2.0**24,
        widened=1.5,
    )

    most_bytes = 4 * dim * (k + 1) + 8 * (2 * dim + k) + 7800 + len(schema.canonical)
    assert len(codec.encode(model)) <= most_bytes


@pytest.mark.parametrize(("dim", "k"), [(1, 1), (64, 13), (5000, 15), (64, 0)])
def test_a_client_reckons_with_more_than_it_sends(dim, k):
    """What is judged at the start is never exceeded later."""
    assert len(codec.encode(largest(dim, k, 64, above=False))) <= size_of_report(dim, k)
