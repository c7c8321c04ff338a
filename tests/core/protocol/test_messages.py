"""Messages: what a report says, what it weighs; and when things are tried again."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema, UsageError
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.alarm_status import AlarmStatus
from submerge.protocol.machine import Flush, Reading
from submerge.protocol.messages import (
    Census,
    Counts,
    EarlierSums,
    Incarnation,
    Pin,
    Report,
    ScoreSketches,
    Stamp,
    Told,
    binds,
)
from submerge.protocol.report_bytes import digest, payload, scores_bytes, size
from submerge.protocol.retry import Retry
from submerge.protocol.score_trail import ScoreTrail
from submerge.protocol.summaries import Method, Subspaces
from submerge.stats.moments import Moments
from submerge.stats.quantile_sketch import QuantileSketch, varint
from submerge_lab.simulator.samples import SampleSets
from support.nodes import EPOCH, ME, OTHER, Table, new_incarnation, report, samples

SETS = SampleSets()
SKETCH = QuantileSketch.of([0.5, 1.0, 2.0])

# What a report can say differently, and stay the same report.
OUTSIDE = {
    "final": True,
    "pinned": OTHER,
    "fence": b"f" * 16,
    "software": "submerge 9",
    "certified_until": 2e9,
    "trail": ScoreTrail(28_333_333, b"\x01\x80"),
    "told": Told(3, 0.5),
    "method": Method("SAPCA, alpha 0.01, beta 0.1", 7),
}
INSIDE = {
    "stamp": Stamp("d", "room", new_incarnation(1), 1),
    "fingerprint": "ab" * 32,
    "summary": samples(range(4)),
    "moments": Moments.of(np.ones((2, 1))),
    "counts": Counts(3, 1),
    "as_of": EPOCH + 1,
    "synced": False,
    "version": 1,
    "lifetime": 4,
    "census": Census(1, (1,)),
    "scores": ScoreSketches(SKETCH, SKETCH),
    "alarm_status": AlarmStatus((1, 0, 0, 0, 0)),
    "earlier": EarlierSums("cd" * 32, samples(range(2)), Counts(2)),
    "left": 1,
}


def test_every_field_of_a_report_is_spoken_for():
    """A new field is either said, and digested, or not: nobody forgets to decide."""
    assert {field.name for field in fields(Report)} == OUTSIDE.keys() | INSIDE.keys()


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_the_way_of_a_report_changes_is_not_what_it_says(name):
    """Rebound to another root, or said again as final, it is the same report."""
    message = report()
    other = replace(message, **{name: OUTSIDE[name]})

    assert payload(message, SETS) == payload(other, SETS)
    assert digest(message, SETS) == digest(other, SETS)


@pytest.mark.parametrize("name", INSIDE)
def test_all_else_is(name):
    """Two reports that differ in it are two reports."""
    message = report()
    other = replace(message, **{name: INSIDE[name]})

    assert digest(message, SETS) != digest(other, SETS)


@pytest.mark.parametrize(
    "stamp",
    [
        Stamp("c", "hall", new_incarnation(1), 1),
        Stamp("c", "room", new_incarnation(2, nonce=1), 1),
        Stamp("c", "room", new_incarnation(1, nonce=2), 1),
        Stamp("c", "room", new_incarnation(1), 2),
    ],
)
def test_every_part_of_a_name_is_said(stamp):
    """Group, creation time, random bits and number."""
    assert digest(report(), SETS) != digest(replace(report(), stamp=stamp), SETS)


@given(st.lists(st.integers(0, 2**64), min_size=1, max_size=5))
def test_numbers_of_any_size_are_told_apart(numbers):
    """Seven bits a byte, the lowest first: what is read back is what was written."""
    data, back = b"".join(map(varint, numbers)), []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            back.append(number)
            number = shift = 0

    assert numbers == back


# -- size ---------------------------------------------------------------------------


def real_report(dim: int, rank: int, name: str, *, years: int = 0) -> tuple[Report, Subspaces]:
    """A client's report after a day of readings, with scores.

    years : so long it has read ten times a second: counters at their largest
    """
    kind = Subspaces(rank, oversample=5)
    schema = Schema.anonymous(dim)
    table = Table(kind, schema)
    table.root("r")
    table.client(name, under="r", group="room")
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, dim)) * 0.9 ** np.arange(dim)
    for i in range(3):
        table.step(name, Reading(X[200 * i : 200 * i + 200]))
        table.step(name, Flush())
        table.passes(200)
    said = table.reports(name)[-1]
    assert said.scores is not None
    total = years * 365 * 86400 * 10
    counts = Counts(600 + total, total, total)
    stamp = said.stamp._replace(group=name)
    return replace(said, stamp=stamp, counts=counts, lifetime=600 + 2 * total), kind


@pytest.mark.parametrize("years", [0, 10])
@pytest.mark.parametrize(("dim", "rank"), [(3, 1), (48, 10), (200, 20)])
def test_a_report_keeps_to_its_formula(dim, rank, years):
    """4 d k + 8 (2 d + k) + 256 bytes, and at most 200 for the scores; names of 24 characters.

    In a narrow group the triangle takes 2 d (d + 1) in place of 4 d k + 8 k.
    """
    message, kind = real_report(dim, rank, "pump-station-07.unit-113", years=years)
    assert 24 == len(message.stamp.node) == len(message.stamp.group)
    k, scores = rank + 5, len(scores_bytes(message))
    narrow = dim * (dim + 1) <= 4 * k * dim
    held = 2 * dim * (dim + 1) if narrow else 4 * dim * k + 8 * k

    assert narrow == isinstance(message.summary, WholeScatter)
    assert scores <= 200
    assert size(message, kind) - scores <= held + 16 * dim + 256


# -- counts and pins ------------------------------------------------------------------


@given(st.lists(st.builds(Counts, *[st.integers(0, 2**40)] * 3), max_size=6))
def test_counts_add_up(parts):
    """Learnt, withheld and lost, each; what was generated is their sum."""
    total = sum(parts, Counts())
    total += Counts(moved=3)  # which are generated elsewhere

    assert sum(part.generated for part in parts) == total.generated
    assert sum(part.lost for part in parts) == total.lost
    assert 3 == total.moved


def test_what_was_moved_is_said():
    """Of two reports that differ in nothing else, too."""
    assert digest(report(), SETS) != digest(replace(report(), counts=Counts(3, moved=1)), SETS)


@pytest.mark.parametrize(
    ("old", "new", "may"),
    [
        (None, Pin("r", ME, False), True),
        (Pin("r", ME, False), Pin("r", ME, False), True),
        (Pin("r", ME, True), Pin("r", OTHER, True), True),
        (Pin("r", ME, True), Pin("r", OTHER, False), False),
        (Pin("r", ME, False), Pin("r", OTHER, True), False),
        (Pin("r", ME, False), Pin("r", OTHER, False), False),
    ],
)
def test_whom_a_life_may_speak_to(old, new, may):
    """One parent for ever; only from a root to the root in its place."""
    assert may == binds(old, new)


# -- trying again ---------------------------------------------------------------------


@given(st.floats(0.1, 60), st.floats(1, 1000), st.integers(0, 2**16))
def test_no_wait_exceeds_the_cap(patience, cap, seed):
    """However often it was tried; and no try comes before the answer may."""
    retry, rng = Retry(patience, cap), np.random.default_rng(seed)
    retry.now()
    for i in range(60):
        retry.tried(0.0, rng)

        assert min(patience, cap) <= retry.at <= cap
        assert i + 1 == retry.tries


def test_waits_are_spread_over_their_whole_range():
    """Full jitter: after a power cut no two of a thousand clients come in step."""
    waits = []
    for seed in range(2000):
        retry, rng = Retry(10, 300), np.random.default_rng(seed)
        retry.now()
        for _ in range(4):
            retry.tried(0.0, rng)
        waits.append(retry.at)
    shares = np.histogram(waits, bins=8, range=(10, 10 + 80))[0] / len(waits)

    # The fourth ceiling is 80 s: an eighth of 2000 in each 10 s, give or take 5 deviations.
    np.testing.assert_allclose(shares, 1 / 8, atol=5 * np.sqrt(1 / 8 * 7 / 8 / 2000))


def test_ceilings_double():
    """10 s to answer, then up to 10, 20, 40 more, until the cap."""
    longest = np.zeros(8)
    for seed in range(500):
        retry, rng = Retry(10, 300), np.random.default_rng(seed)
        for i in range(8):
            retry.tried(0.0, rng)
            longest[i] = max(longest[i], retry.at)

    np.testing.assert_allclose(longest, [20, 30, 50, 90, 170, 300, 300, 300], rtol=0.03)


def test_a_year_of_tries_is_as_good_as_one():
    """The exponent does not grow for ever."""
    retry, rng = Retry(10, 300), np.random.default_rng(0)
    retry.tries = 10**6
    retry.tried(0.0, rng)

    assert retry.at <= 300


def test_stopped_means_nothing_is_due():
    """Until it is told to try again: then at once, from the first ceiling on."""
    retry, rng = Retry(10, 300), np.random.default_rng(0)
    retry.tried(0.0, rng)
    retry.stop()
    assert np.inf == retry.at
    retry.now()

    assert (0, True) == (retry.tries, retry.at < -1e300)


@given(
    st.integers(0, 2**16),
    st.sampled_from([-np.inf, 100.0, 103.0, 400.0, np.inf]),
    st.integers(0, 9),
)
def test_soon_is_within_the_patience_and_never_later(seed, due, made):
    """A try that was due earlier stays due; one that was backing off is hurried, and is a first."""
    retry = Retry(10.0, 300.0)
    retry.tries, retry.at = made, due
    retry.soon(100.0, np.random.default_rng(seed))

    assert min(due, 100.0) <= retry.at <= min(due, 110.0)
    assert 0 == retry.tries


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**64 - 1))
def test_an_incarnation_is_read_as_it_is_written(created_ms, nonce):
    incarnation = Incarnation(created_ms, nonce)

    assert incarnation == Incarnation.parse(str(incarnation))


@pytest.mark.parametrize(
    "text", ["", "1-2", "18bcfe56800", f"{new_incarnation(1)}0", f" {new_incarnation(1)}", "x-" * 9]
)
def test_what_is_no_incarnation_is_bad_input(text):
    with pytest.raises(UsageError, match="an incarnation is like"):
        Incarnation.parse(text)
