"""What decode lets through breaks nothing later: not a merge, not a ledger, not a client.

Numbers here are the wildest that are believed: at the bounds, next to zero, far apart, and
directions that differ by less than rounding. Warnings are errors in these tests.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge import PeerError, Schema, Subspace, merge
from submerge.protocol.machine import Reading, SetQuarantine
from submerge.protocol.messages import (
    Answer,
    Counts,
    Join,
    Joined,
    Model,
    Reason,
    Report,
    Stamp,
)
from submerge.protocol.summaries import Subspaces
from submerge.stats.moments import Moments
from submerge.stats.quantile_sketch import QuantileSketch
from submerge.stats.score_limits import Limits
from submerge_proto.wire import codec, columns, forms
from submerge_proto.wire.sizes import LEAST
from support.nodes import EPOCH, GROUP, Table, new_incarnation
from support.wild import schema_of, wild, wild_peaks, wild_report, wild_summary
from support.wild_factors import wild_factors
from support.wire import READINGS, a_report, travelled
from support.wired import WiredTable

seeds = st.integers(0, 2**32)


def check(subspace: Subspace) -> None:
    """It is a subspace: finite, descending, orthonormal."""
    for array in (subspace.basis, subspace.sigma, subspace.mean):
        assert np.isfinite(array).all()
    assert np.isfinite([subspace.weight, subspace.energy, subspace.spectral_bound]).all()
    assert (np.diff(subspace.sigma) <= 0).all()
    gram = subspace.basis.T.astype(float) @ subspace.basis.astype(float)
    np.testing.assert_allclose(np.eye(subspace.rank), gram, atol=1e-4)


@given(seeds, st.integers(1, 6), st.sampled_from(["fleet", "own"]))
@example(58474, 3, "own")  # squares without their last digits
def test_what_is_believed_can_be_merged_and_said_again(seed, parts, center):
    """Faded or not, in any number: the parent of the parent takes what comes of it."""
    rng = np.random.default_rng(seed)
    schema = Schema.anonymous(int(rng.integers(1, 9)))
    children = [wild(rng, schema, float(rng.choice([1e3, 2.0**53]))) for _ in range(parts)]
    once = merge(*children, rank=int(rng.integers(1, 10)), center=center)
    check(once)
    again = columns.unpacked(columns.packed(once), schema.fingerprint)
    check(again)
    columns.unpacked(columns.packed(once, coarse=True), schema.fingerprint)
    faded = [part.faded(2.0 ** rng.uniform(-200, 200)) for part in (again, *children)]

    check(merge(*faded, rank=4, center=center))
    kept = columns.packed(faded[0], exact=True)
    check(columns.unpacked(kept, schema.fingerprint, kept=True))


@given(seeds, st.integers(1, 6), st.booleans())
@example(509, 4, False)  # an energy at the very edge of what is forgiven
def test_two_that_are_believed_can_be_merged_and_said_again(seed, parts, quarantined):
    """Their weights stay alike: what comes of them is taken above."""
    rng = np.random.default_rng(seed)
    schema = schema_of(True, int(rng.integers(1, 9)), center="own" if quarantined else "fleet")
    kind, most = Subspaces(3), float(rng.choice([1e3, 2.0**53]))
    children = [wild_summary(rng, schema, most) for _ in range(parts)]
    faded = [kind.faded(child, 2.0 ** rng.uniform(-50, 50)) for child in children]
    for family in (children, faded):
        once = kind.merged(schema, family, own=False)
        if once.weight >= LEAST:
            fields = {"fence": b"f" * 16, "fingerprint": schema.fingerprint}
            again = travelled(a_report(summary=once, moments=None, **fields)).summary
            check(again.features)
            check(again.linear)


@given(seeds, st.booleans())
def test_a_model_that_is_believed_can_be_scored_with(seed, kernel):
    """Scores are numbers, and gaps can be filled, whatever the rows."""
    rng = np.random.default_rng(seed)
    schema = schema_of(kernel, int(rng.integers(1, 9)))
    kind = Subspaces(3)
    model = kind.directions(wild_summary(rng, schema, 1e15))
    if isinstance(model, Subspace):
        model = columns.unpacked(columns.packed(model), schema.fingerprint)
    rows = rng.standard_normal((3, schema.width)) * rng.choice([0, 1e-12, 1, 1e12])
    factors = wild_factors(rng, model)
    scorer = kind.scorer(model, schema.width, factors)
    spe, t2, linear, distance, *_ = scorer.statistics(rows, schema.features.lift(rows))
    assert (distance is not None) == bool(factors)
    if distance is not None:
        assert (distance >= 0).all()
        QuantileSketch.of(distance)
    QuantileSketch.of(spe), QuantileSketch.of(t2)
    assert kernel == (linear is not None and len(QuantileSketch.of(linear).bins) > 0)
    rows[:, 0] = np.nan

    assert not np.isnan(kind.filled(rows, model)).any()
    assert not np.isnan(scorer.filled(rows)).any()
    *shares, farther = scorer.left(~np.isnan(rows[0]))
    assert all(0 <= share <= 1 for share in shares)
    assert farther is None or (np.isfinite(farther) & (farther >= 1)).all()


# -- nodes ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("half_life", [None, 3600.0, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_no_report_that_is_believed_breaks_an_aggregator(seed, half_life, kernel):
    """Nor makes it say upward, or keep, what is not believed there: its records are read back."""
    rng = np.random.default_rng(seed)
    center = "own" if rng.random() < 0.5 else "fleet"
    schema = schema_of(kernel, int(rng.integers(1, 7)), half_life=half_life, center=center)
    table = WiredTable(Subspaces(2, oversample=1), schema)
    table.root("r")
    table.aggregator("a", under="r")
    table.passes(60)
    taken = 0
    for i in range(50):
        label, node = str(rng.choice(["a", "a", "r"])), str(rng.choice(["x", "y", "z", "below"]))
        me, incarnation = table.hosts[label].node.incarnation, new_incarnation(int(rng.integers(8)))
        fence = b"f" * 16 if node == "below" else b""
        stamp = Stamp(node, GROUP, incarnation, int(rng.choice([1, 2, i + 1, 2**62])))
        if fence:
            table.tell(label, Join(stamp, fence, (), b""))
        report = wild_report(rng, schema, stamp, pinned=me, fence=fence)
        answers = [m for m in table.tell(label, report) if isinstance(m, Answer)]
        taken += sum(travelled(answer).reason is Reason.ACK for answer in answers)
        table.passes(float(rng.choice([0, 30, 400, 4000])))
        if rng.random() < 0.1:
            table.restarts(label)
        if rng.random() < 0.05:
            table.step(label, SetQuarantine(GROUP, node, bool(rng.random() < 0.5)))
    table.passes(2000)

    assert taken > 15
    assert [] == table.hosts["a"].why("report refused")
    assert table.hosts["a"].node.incarnation in {name for _, name in table.hosts["r"].ledger.rows}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_no_model_that_is_believed_breaks_a_client(seed, kernel):
    """It scores, fills gaps and learns on, or passes the model over."""
    rng = np.random.default_rng(seed)
    schema = schema_of(kernel, int(rng.integers(2, 7)))
    table = WiredTable(Subspaces(2, oversample=1), schema)
    table.root("r")
    table.client("c", under="r", fills_gaps=True)
    table.passes(60)
    for i in range(20):
        summary = wild_summary(rng, schema, 1e15) if rng.random() < 0.8 else None
        if summary is not None:
            summary = table.summaries.directions(summary)
        values = tuple(float(v) for v in rng.choice([0, 5e-324, 1, 2.0**900], 2))
        model = Model(
            GROUP,
            int(rng.choice([1, 10**15 + i, 2**63 - 1 - 20 + i])),
            schema.canonical,
            schema.fingerprint,
            summary,
            Limits((0.9, 1.0), values, values, 2**62, values if kernel else ())
            if rng.random() < 0.5
            else None,
            Counts(READINGS, 0, READINGS),
            2**62,
            (0.0, -1.0, 1e308),
            created=float(rng.choice([EPOCH, -1e308])),
            expires=float(rng.choice([EPOCH * 2, -1e308, 1e308])),
            maxima=wild_peaks(rng),
        )
        table.tell("c", model)
        rows = rng.standard_normal((5, schema.width)) * 10.0 ** rng.integers(-12, 12)
        rows[0, 0] = np.nan
        table.step("c", Reading(rows))
        table.passes(200)
        if rng.random() < 0.2:
            table.restarts("c")

    assert table.hosts["r"].ledger.counts().learnt > 0


# -- texts ------------------------------------------------------------------------------


def test_a_schema_of_many_names_is_not_spelt_out():
    """A hundred bytes stand for a million million channels: nobody lists what is extra."""
    bomb = Schema.anonymous(10**12).canonical
    for message in (
        Join(Stamp("c", GROUP, new_incarnation(1), 0), b"", (), bomb),
        Joined(
            Stamp("c", GROUP, new_incarnation(1), 0),
            Reason.ACK,
            b"",
            new_incarnation(2),
            True,
            0,
            bomb,
        ),
    ):
        tracemalloc.start()
        with pytest.raises(PeerError, match="dimensions"):
            travelled(message)
        assert tracemalloc.get_traced_memory()[1] < 64_000
        tracemalloc.stop()


texts = st.sampled_from([b"null", b"[" * 5000, b'{"form":1}', b"1" * 5000])


@given(st.binary(min_size=1, max_size=80) | texts)
def test_any_text_for_a_schema_is_answered(text):
    """With a line that says what is wrong."""
    table = Table()
    table.root("r")
    (answer,) = table.tell(
        "r", travelled(Join(Stamp("c", GROUP, new_incarnation(1), 0), b"", (), text))
    )

    assert Reason.SCHEMA is answer.reason
    assert travelled(answer).lines


def test_another_version_is_answered_in_our_own():
    """The refusal of a message that could not be read is itself one that can be."""
    report = forms.report(travelled(Report(Stamp("c", GROUP, new_incarnation(1), 1), **_NOTHING)))
    report.header.version = 2
    with pytest.raises(codec.MessageRefused) as caught:
        codec.decode("report", report.SerializeToString())
    answer = Answer(caught.value.stamp, caught.value.reason)

    assert answer == travelled(answer)


_NOTHING: dict[str, Any] = {
    "final": False,
    "pinned": new_incarnation(0),
    "fence": b"",
    "fingerprint": Schema.anonymous(1).fingerprint,
    "summary": None,
    "moments": None,
    "counts": Counts(),
    "as_of": EPOCH,
    "synced": True,
    "version": 0,
    "lifetime": 0,
}


# -- known, and not of the wire's making ----------------------------------------------


def test_moments_of_another_width_are_refused():
    """They say that they are of our schema; only its ledger knows how many channels that has."""
    table = Table(Subspaces(2), Schema.anonymous(3))
    table.root("r")
    me, fields = table.hosts["r"].node.incarnation, {**_NOTHING, "counts": Counts(5)}
    fields["fingerprint"] = table.schema.fingerprint
    for node, width in (("x", 2), ("y", 3)):
        stamp, moments = (
            Stamp(node, GROUP, new_incarnation(1), 1),
            Moments(5, np.ones(width), np.ones(width)),
        )
        report = Report(stamp, **{**fields, "pinned": me, "moments": moments})
        table.tell("r", travelled(report))
    table.passes(600)


def test_an_aggregator_that_does_not_know_the_time_gives_no_weight_to_the_future():
    """It started in 1970, its children know the time: 50 readings weigh 50, not 2^200 of that."""
    table = WiredTable(Subspaces(2), Schema(3, half_life=86_400.0))
    table.root("r")
    site = table.aggregator("a", under="r", start=False)
    site.clock_error, site.synced = -EPOCH, False
    table.starts("a")
    table.client("c", under="a")
    table.step("c", Reading(np.random.default_rng(0).standard_normal((50, 3))))
    table.passes(1200)

    assert table.hosts["r"].ledger.summary().weight <= 50 * (1 + 1e-9)


def test_many_channels_too_many_are_one_difference():
    """Two schemas of nameless channels differ in how many there are: in one line, that is."""
    table = Table()
    table.root("r")
    join = Join(
        Stamp("c", GROUP, new_incarnation(1), 0), b"", (), Schema.anonymous(20_000).canonical
    )
    (answer,) = table.tell("r", travelled(join))

    assert 1 == len(answer.lines)


def test_a_client_adopts_no_schema_of_other_channels():
    """A parent may settle the scaling; how many channels there are, the sensors do."""
    table = Table(Subspaces(2), Schema.anonymous(6))
    table.client("c", under="r")
    table.passes(5)
    (join,) = table.messages("c", Join)
    stamp, text = join.stamp._replace(seq=0), Schema.anonymous(5).canonical
    table.tell("c", travelled(Joined(stamp, Reason.ACK, b"", new_incarnation(0), True, 0, text)))

    table.step("c", Reading(np.ones((3, 6))))
