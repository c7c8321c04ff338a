"""Decay: the weight of readings follows from their age, wherever they are summarised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge import Schema, Subspace, merge
from submerge.aggregator.rows.ledger import Ledger
from submerge.client.incarnation import FADE_STEPS
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.machine import Flush, Keep, Now, Reading
from submerge.protocol.messages import Counts
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from support.nodes import EPOCH, GROUP, Host, Table, new_incarnation, report, write
from support.strategies import rows_of

HALF = 600.0
SCHEMA = Schema(3, half_life=HALF)
KIND = Subspaces(2, oversample=1)
STEP = 2 ** (1 / FADE_STEPS) - 1
"""Rows learnt within one step share its age: 1.1 % of a row's weight at most, whatever its age."""

# Fading multiplies by the root of a factor, merging decomposes again: a few dozen roundings.
ROUNDING = {"rtol": 1e-9}


def row(i: int) -> np.ndarray:
    return rows_of("noise", 1, 3, seed=i)


def weight_at_root(table: Table) -> float:
    """What the root's rows weigh now."""
    summary = table.hosts["r"].ledger.summary(EPOCH + table.time)
    return 0.0 if summary is None else summary.weight


def weighing(ages: list[float]) -> float:
    """The weight of readings of these ages, in seconds."""
    return sum(2.0 ** (-age / HALF) for age in ages)


def two_levels() -> Table:
    table = Table(KIND, SCHEMA)
    table.root("r", report_every_s=60), table.aggregator("a", report_every_s=60)
    return table


# -- through levels ---------------------------------------------------------------


def test_a_reading_counts_for_half_after_its_half_life():
    """Client, aggregator, root: ages add up, and do not restart at each level."""
    table = two_levels()
    table.client("c", report_every_s=100)
    read = []
    for i in range(40):
        table.step("c", Reading(row(i)))
        read.append(table.time)
        table.passes(50)
    expected = weighing([table.time - at for at in read if at <= _told_until(table)])

    np.testing.assert_allclose(weight_at_root(table), expected, rtol=STEP)
    # Not one of them counts for more than it should.
    assert weight_at_root(table) <= expected * (1 + 1e-9)


def _told_until(table: Table) -> float:
    """When the newest report was made of which the root knows."""
    learnt = table.hosts["r"].ledger.counts().learnt
    return 50.0 * (learnt - 1)


@given(st.lists(st.tuples(st.sampled_from("cd"), st.floats(0, 3 * HALF)), min_size=1, max_size=12))
def test_weights_are_hand_computed_sums(readings):
    """Two clients of two levels that read when they like: sums of 2^(-age / half-life)."""
    table = two_levels()
    for name in "cd":
        table.client(name, report_every_s=100)
    at = []
    for i, (name, pause) in enumerate(readings):
        table.passes(pause)
        table.step(name, Reading(row(i)))
        at.append(table.time)
    for name in "cda":
        table.step(name, Flush())
        table.run()
    table.passes(500)

    expected = weighing([table.time - when for when in at])
    np.testing.assert_allclose(weight_at_root(table), expected, rtol=STEP)


def test_a_silent_client_fades_like_the_others():
    """Its last row ages in place, without any message."""
    table = two_levels()
    for name in "cd":
        table.client(name, report_every_s=100)
        table.step(name, Reading(np.vstack([row(i) for i in range(8)])))
    table.passes(300)
    table.dies("c")
    table.passes(3 * HALF)

    np.testing.assert_allclose(weight_at_root(table), 16 * 2 ** -(table.time / HALF), **ROUNDING)


def test_a_month_of_silence_is_still_a_number():
    """2^-4320 of a reading breaks nothing, and newcomers count whole."""
    table = two_levels()
    table.client("c", report_every_s=100)
    table.step("c", Reading(np.vstack([row(i) for i in range(8)])))
    table.passes(300)
    table.time += 30 * 86400
    table.client("d", report_every_s=100)
    table.step("d", Reading(np.vstack([row(i) for i in range(8)])))
    start = table.time
    table.passes(400)

    np.testing.assert_allclose(
        weight_at_root(table), 8 * 2 ** -((table.time - start) / HALF), **ROUNDING
    )


def test_the_largest_readings_can_fade_wherever_they_are():
    """50 rows of nearly 1e12: learnt, checkpointed, reported and halved, without a wrong float."""
    table = two_levels()
    host = table.client("c", report_every_s=100)
    rows = 0.99e12 * np.sign(rows_of("noise", 50, 3, seed=1))
    for part in np.split(rows, 5):
        table.step("c", Reading(part))
        table.passes(HALF)
    table.step("c", Flush())
    table.run()
    table.restarts("c")
    table.passes(5 * HALF)
    summary = table.hosts["r"].ledger.summary(EPOCH + table.time)

    assert Counts(50) == table.hosts["r"].ledger.counts()
    assert Counts() == host.node.current.counts
    # Ten rows of each of five ages, a half-life apart.
    np.testing.assert_allclose(
        summary.weight, weighing([table.time - HALF * i for i in range(5)] * 10), rtol=STEP
    )
    assert np.isfinite(summary.energy)
    assert np.isfinite(summary.parts[0].sigma.astype(np.float32)).all()


def test_readings_too_large_to_fade_are_withheld():
    """Their squares can be written, but not summed, faded and merged: they are not learnt."""
    table = two_levels()
    host = table.client("c", report_every_s=100)
    for _ in range(5):
        table.step("c", Reading(np.full((10, 3), 0.99e140)))
        table.passes(HALF)

    assert Counts(withheld=50) == host.node.current.counts
    assert Counts(withheld=50) == table.hosts["r"].ledger.counts()


# -- one ledger --------------------------------------------------------------------


def ledger_of(schema: Schema = SCHEMA, **settings) -> Ledger:
    chosen = AggregatorSettings("a", None, **settings)
    return Ledger(GROUP, schema, KIND, chosen, created=EPOCH)


def reported(i: int, as_of: float, seq: int = 1, **fields) -> tuple:
    summary = Subspace.of(rows_of("decaying", 20, 3, seed=i), SCHEMA, rank=3)
    reported = {"summary": summary, "fingerprint": SCHEMA.fingerprint, "as_of": as_of, **fields}
    return report(f"c{i}", new_incarnation(i), seq, range(20), **reported)


def shape(summary: WholeScatter) -> tuple[np.ndarray, np.ndarray]:
    """Basis and proportions of the variances, which do not depend on the weight."""
    (found,) = summary.parts
    return found.basis @ found.basis.T, found.sigma**2 / found.weight


@given(st.floats(-HALF, 30 * HALF), st.floats(-HALF, 30 * HALF))
def test_what_rows_weigh_against_each_other_does_not_depend_on_when_it_is_asked(first, second):
    """Only the whole grows lighter: a merge that was made stays good."""
    ledger = ledger_of()
    for i in range(4):
        ledger.accept(reported(i, EPOCH - 400.0 * i), Now(0, EPOCH))
    one, two = ledger.summary(EPOCH + first), ledger.summary(EPOCH + second)

    for expected, got in zip(shape(one), shape(two), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(one.mean, two.mean)


@given(st.floats(33 * HALF, 90 * HALF))
def test_moving_the_reference_time_changes_no_relative_weight(later):
    """It moves when it is 32 half-lives away; shape, mean and the weight as of now stay."""
    ledger = ledger_of()
    for i in range(4):
        ledger.accept(reported(i, EPOCH - 400.0 * i), Now(0, EPOCH))
    wall = EPOCH + later
    before = ledger.summary(wall)
    ledger.tidy(Now(later, wall))
    after = ledger.summary(wall)

    assert ledger.changes["reference", GROUP] == wall
    np.testing.assert_allclose(after.weight, before.weight, **ROUNDING)
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-9)
    for expected, got in zip(shape(before), shape(after), strict=True):
        # Each time the scatter was rounded to float32 once.
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9)


def test_the_reference_time_stays_while_it_is_near():
    """31 half-lives are near enough: no row is merged again."""
    ledger = ledger_of()
    ledger.accept(reported(0, EPOCH), Now(0, EPOCH))
    ledger.changes.clear()
    ledger.tidy(Now(31 * HALF, EPOCH + 31 * HALF))

    assert ("reference", GROUP) not in ledger.changes


def test_the_reference_time_survives_a_restart():
    """Else the same rows would come to other bytes."""
    ledger, disk = ledger_of(), {}
    for i in range(4):
        ledger.accept(reported(i, EPOCH - 400.0 * i), Now(0, EPOCH))
    ledger.tidy(Now(40 * HALF, EPOCH + 40 * HALF))
    disk.update(ledger.changes)
    again = ledger_of()
    again.load(disk, Now(0, EPOCH))

    assert KIND.packed(ledger.summary()) == KIND.packed(again.summary())


@pytest.mark.parametrize(
    ("as_of", "synced", "age"),
    [
        (EPOCH - HALF, True, HALF),
        (EPOCH - HALF, False, 0.0),
        (EPOCH + 10, True, -10.0),
        (EPOCH + 1e6, True, -30.0),
        (0.0, True, 5 * HALF),
    ],
    ids=["believed", "not synced", "a little ahead", "far ahead", "from 1970"],
)
def test_a_clock_is_believed_within_reason(as_of, synced, age):
    """30 s ahead, `max_age_s` back; a time from an unsynced clock counts as the time of arrival."""
    ledger = ledger_of(max_age_s=5 * HALF)
    ledger.accept(reported(0, as_of, synced=synced), Now(0, EPOCH))

    np.testing.assert_allclose(ledger.summary(EPOCH).weight, 20 * 2 ** (-age / HALF), **ROUNDING)


def test_a_client_ages_its_readings_by_its_steady_clock():
    """A wall clock that jumps by years while it learns makes nothing younger or older."""
    weights = []
    for jump in (0.0, 1e8):
        table = Table(KIND, SCHEMA)
        table.root("r")
        host: Host = table.client("c", under="r", report_every_s=1e6)
        table.step("c", Reading(row(1)))
        table.time += HALF
        host.clock_error, host.synced = jump, not jump
        table.step("c", Reading(row(2)))
        table.step("c", Flush())
        table.run()
        weights.append(weight_at_root(table))

    np.testing.assert_allclose(weights, [1.5, 1.5], **ROUNDING)


def test_a_life_sealed_long_ago_weighs_what_its_rows_weighed():
    """Folding fades both to the later time: the sum is what it was."""
    ledger = ledger_of()
    for n in range(3):
        summary = Subspace.of(rows_of("noise", 10, 3, seed=n), SCHEMA, rank=3)
        ledger.accept(
            report(
                "c",
                new_incarnation(n),
                1,
                range(10),
                summary=summary,
                fingerprint=SCHEMA.fingerprint,
                as_of=EPOCH - HALF * n,
                final=True,
            ),
            Now(0, EPOCH),
        )

    assert {} == ledger.rows
    np.testing.assert_allclose(ledger.summary(EPOCH).weight, 10 + 5 + 2.5, **ROUNDING)


# -- restarts ----------------------------------------------------------------------------


def message(table: Table, label: str) -> bytes:
    """The summary of a root's rows in a model made now."""
    table.step(label, Flush())
    table.run()
    return KIND.packed(table.hosts[label].model.summary)


def test_the_first_row_under_a_clock_that_is_behind_has_its_weight():
    """With an unsynced clock the rows give the time, and the first row gives its own."""
    table = Table(KIND, SCHEMA)
    root = table.root("r")
    table.client("c", under="r")
    root.clock_error, root.synced = -1e8, False
    table.step("c", Reading(row(1)))
    table.step("c", Flush())
    table.run()

    message(table, "r")
    np.testing.assert_allclose(root.model.summary.weight, 1.0, **ROUNDING)


def test_a_restart_under_a_clock_that_is_behind_leaves_rows_their_weight():
    """The rows give the time only after they are loaded again."""
    table = Table(KIND, SCHEMA)
    root = table.root("r")
    table.client("c", under="r", report_every_s=100)
    root.clock_error, root.synced = -1e8, False
    for i in range(2):
        table.step("c", Reading(row(i)))
        table.passes(150)
    before = message(table, "r")
    table.restarts("r")

    assert before == message(table, "r")


@pytest.mark.parametrize("later", [0.0, 20.0, 3 * HALF])
def test_a_restart_reads_a_row_of_the_future_as_it_was_read(later):
    """Our clock was ahead when it came: it is read as of now, not as of when its node spoke."""
    table = Table(KIND, SCHEMA)
    root = table.root("r")
    for i, name in enumerate("cd"):
        table.client(name, under="r", report_every_s=100)
        table.step(name, Reading(np.vstack([row(2 * i), row(2 * i + 1)])))
    # As it has no clock to show, its report counts as of when it came.
    table.hosts["c"].synced, root.clock_error = False, 1e6
    table.passes(150)
    table.dies("c")
    root.clock_error = 0.0
    table.passes(1000 + later)
    before = message(table, "r")
    table.restarts("r")

    assert before == message(table, "r")


def test_a_row_of_the_future_is_read_as_of_now_whenever_it_is_asked():
    """Also between two reports of a node, without any change to its rows."""
    ledger = ledger_of()
    ledger.accept(reported(0, EPOCH + 1e6), Now(0, EPOCH + 1e6))
    weights = [ledger.seen(Now(t, EPOCH + t)).weight for t in (0.0, 100.0, 40 * HALF, 1e6 + HALF)]

    # 30 s ahead of a clock that is vouched for; in the end the row's time has come, and gone.
    ahead = 20 * 2 ** (30 / HALF)
    np.testing.assert_allclose(weights, [ahead, ahead, ahead, 10], **ROUNDING)


JUMPS = st.sampled_from([-1e8, -3600.0, -20.0, 0.0, 20.0, 3600.0, 1e8])
HISTORY = st.lists(
    st.one_of(
        st.tuples(st.just("time"), st.floats(0, 40 * HALF)),
        st.tuples(st.just("clock"), JUMPS, st.booleans()),
        st.tuples(st.just("report"), st.integers(0, 2), JUMPS, st.booleans(), st.booleans()),
        st.tuples(st.just("restart")),
    ),
    max_size=25,
)


@given(HISTORY)
@example([("clock", -1e8, False), ("report", 0, 0.0, True, False), ("restart",)])
@example([("clock", 1e8, True), ("report", 0, 1e8, True, False), ("clock", 0.0, True)])
def test_what_is_seen_follows_from_rows_and_the_time_alone(history):
    """Whatever clocks did, and wherever a process was restarted: to the byte."""
    running, restarted, disk = ledger_of(), ledger_of(), {}
    steady, jump, synced, seqs = 0.0, 0.0, True, [0, 0, 0]
    incarnations = [0, 10, 20]
    for event in [*history, ("restart",)]:
        now = Now(steady, EPOCH + steady + jump, synced)
        match event:
            case ("time", seconds):
                steady += seconds
                now = Now(steady, EPOCH + steady + jump, synced)
                running.tidy(now), restarted.tidy(now)
            case ("clock", jump, synced):
                pass
            case ("report", i, ahead, vouched, final):
                seqs[i] += 1
                news = reported(i, EPOCH + steady + ahead, seqs[i], synced=vouched, final=final)
                stamp = news.stamp._replace(incarnation=new_incarnation(incarnations[i]))
                news = replace(news, stamp=stamp)
                running.accept(news, now), restarted.accept(news, now)
                incarnations[i] += final
            case _:
                write(disk, Keep(restarted.changes))
                restarted = ledger_of()
                restarted.load(disk, now)
    now = Now(steady, EPOCH + steady + jump, synced)
    one, other = running.seen(now), restarted.seen(now)

    assert (one is None) == (other is None)
    if one is not None:
        assert KIND.packed(one) == KIND.packed(other)
        # Of the future, a row weighs what 30 s make of it at most.
        assert one.weight <= 20 * sum(seqs) * 2 ** (30 / HALF) * (1 + 1e-9)


# -- the law behind it ---------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 2**16)), min_size=1, max_size=5),
    st.floats(2.0**-40, 2.0**40),
)
def test_fading_commutes_with_merging(parts, factor):
    """Fade, then merge, or merge, then fade: the same summary, but for rounding."""
    spaces = [
        Subspace.of(rows_of("noise", n, 6, seed=s), Schema.anonymous(6), rank=6) for n, s in parts
    ]
    before = merge(*(space.faded(factor) for space in spaces), rank=6)
    after = merge(*spaces, rank=6).faded(factor)

    np.testing.assert_allclose(before.weight, after.weight, rtol=1e-12)
    np.testing.assert_allclose(before.energy, after.energy, rtol=1e-9)
    np.testing.assert_allclose(before.mean, after.mean, rtol=1e-9, atol=1e-12)
    # Squares: of a sigma that is rounding itself, its digits are free.
    scatters = [(s.basis * s.sigma**2) @ s.basis.T for s in (before, after)]
    np.testing.assert_allclose(*scatters, rtol=1e-9, atol=1e-9 * after.energy + 1e-300)


@given(st.floats(-100, 100), st.floats(-100, 100))
def test_fading_twice_is_fading_once(first, second):
    """Ages add up: through however many levels a reading has come."""
    space = Subspace.of(rows_of("noise", 9, 4, seed=1), Schema.anonymous(4), rank=4)
    twice, once = space.faded(2.0**first).faded(2.0**second), space.faded(2.0 ** (first + second))

    np.testing.assert_allclose(twice.weight, once.weight, rtol=1e-12)
    np.testing.assert_allclose(twice.sigma, once.sigma, rtol=1e-12)
