"""Readings by number: the same at every call, and counted as often as they were taken."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.protocol.summaries import Subspaces
from submerge.schema import Schema
from submerge.stats.quantile_sketch import SketchTally, buckets_of
from submerge_lab.simulator.feeds import BANK
from submerge_lab.simulator.large.bank_scores import ScoredRows, sketch_of_windows
from submerge_lab.simulator.large.rows import NumberedRows, mixed
from submerge_lab.simulator.large.sample import apart_by
from submerge_lab.simulator.large.spans import SpanSummaries

ROWS = NumberedRows(30, 2, 3, np.random.default_rng(0))


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 50))
def test_a_reading_does_not_depend_on_those_that_are_asked_for_with_it(stream, first, n):
    """Any part of a stream is that part of it."""
    whole = ROWS.picks(stream, first, first + n)

    assert whole[-1:].tolist() == ROWS.picks(stream, first + n - 1, first + n).tolist()
    assert ((whole >= 0) & (whole < BANK)).all()


def test_rows_are_picked_by_the_hash_of_one_number():
    """The vectorised hash is the plain one."""
    start, golden = ROWS._start(7), 0x9E3779B97F4A7C15
    plain = [mixed((start + k * golden - golden) & (2**64 - 1)) % BANK for k in range(40)]

    assert plain == ROWS.picks(7, 0, 40).tolist()


def test_rows_are_counted_as_often_as_they_were_taken():
    """`count` is a loop over all readings."""
    rows = NumberedRows(4, 2, 1, np.random.default_rng(1))
    for stream, n in ((1, 5), (2, 700), (1, 30)):
        rows.take(stream, n)
    rows.count()

    picked = np.concatenate([rows.picks(1, 0, 35), rows.picks(2, 0, 700)])
    assert 735 == rows.generated
    assert np.bincount(picked, minlength=BANK).tolist() == rows._learnt.tolist()


@settings(max_examples=20)
@given(st.lists(st.integers(1, 900), min_size=1, max_size=6), st.integers(0, 100))
def test_sketches_of_buckets_are_those_of_a_tally(sizes, seed):
    """However many scores come at once, windows and sketches are those of `SketchTally`."""
    rng, tally, scored = np.random.default_rng(seed), SketchTally(), ScoredRows()
    for n in sizes:
        scores = np.exp(3 * rng.standard_normal(n))
        tally.add(scores)
        buckets = buckets_of(scores).astype(np.int16)
        scored.add([(n, (buckets, buckets, None))], np.arange(n))

    assert scored.sketches is not None
    assert (tally.sketch, None) == (scored.sketches.spe, scored.sketches.distance)


def test_a_sketch_of_no_scores_is_empty():
    """Before the first model there is nothing to report."""
    assert 0 == sketch_of_windows(np.empty(0, dtype=np.int16), 1024).n
    assert ScoredRows().sketches is None


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 120), st.integers(0, 50))
def test_what_is_decomposed_at_once_is_what_an_engine_learns(n, stream):
    """Fewer rows than channels or more: the same weight, mean, scatter and bound, to rounding."""
    summaries, schema = SpanSummaries(ROWS, 2, 3), Schema(30)
    engine = Subspaces(2, oversample=3).learner(schema)
    span = summaries.learner(schema)
    numbers = np.column_stack((np.full(n, stream), np.arange(n)))
    engine.learn(ROWS.rows(stream, 0, n), ROWS.rows(stream, 0, n))
    span.learn(numbers, numbers)
    expected, got = engine.summary().parts[0], summaries.made(span.summary()).parts[0]

    assert apart_by(expected, got) < 1e-6
    assert (expected.weight, expected.rank, n) == (got.weight, got.rank, span.summary().weight)
    assert np.isclose(expected.energy, got.energy, rtol=1e-9, atol=1e-9)
    assert np.isclose(expected.spectral_bound, got.spectral_bound, rtol=1e-6, atol=1e-6)
