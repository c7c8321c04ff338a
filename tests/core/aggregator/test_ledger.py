"""Ledger: what a report may change, in whatever order it comes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import Schema, Subspace
from submerge.aggregator.rows import ledger as ledger_module
from submerge.aggregator.rows import pool
from submerge.aggregator.rows.ledger import CLIENT_ROWS, CLOSED, Ledger
from submerge.aggregator.rows.refusals import RowVerdict
from submerge.protocol.machine import Keep, Now
from submerge.protocol.messages import Counts, Incarnation, Reason, Report
from submerge.protocol.report_bytes import digest
from submerge.protocol.score_trail import ScoreTrail
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces, Summaries
from submerge.stats.moments import Moments
from submerge_lab.simulator.samples import SampleSets
from support.alarmed import alarm
from support.alarmed import alarm_status as status_of
from support.nodes import EPOCH, GROUP, IDS, new_incarnation, report, samples, write
from support.strategies import rows_of

REAL = Schema.anonymous(6)
AT = Now(0.0, EPOCH)
NODES = ("c1", "c2", "c3")


def ledger_of(summaries: Summaries | None = None, schema: Schema = IDS, **chosen) -> Ledger:
    options = AggregatorSettings("a", None, **chosen)
    return Ledger(GROUP, schema, summaries or SampleSets(), options, created=EPOCH)


def after(reports: list[Report], summaries: Summaries, schema: Schema) -> tuple:
    """The rows, and the summary's bytes, after reports in this order."""
    ledger = ledger_of(summaries, schema)
    for each in reports:
        assert ledger.accept(each, AT).reason is Reason.ACK
    rows = {
        k: (row.report.stamp.seq, digest(row.report, summaries)) for k, row in ledger.rows.items()
    }
    summary = ledger.summary()
    return rows, None if summary is None else summaries.packed(summary)


# Two lives of each node, three reports of each life, that say ever more.
SETS = [
    report(node, new_incarnation(n), seq, range(10 * i + 5 * n, 10 * i + 5 * n + seq))
    for i, node in enumerate(NODES)
    for n in (0, 1)
    for seq in (1, 2, 3)
]
SPACES = [
    report(
        node,
        new_incarnation(n),
        seq,
        range(5 * seq),
        fingerprint=REAL.fingerprint,
        summary=Subspace.of(rows_of("decaying", 15, 6, seed=2 * i + n)[: 5 * seq], REAL, rank=3),
    )
    for i, node in enumerate(NODES)
    for n in (0, 1)
    for seq in (1, 2, 3)
]


def newest(reports: list[Report]) -> list[Report]:
    """The last word of each life."""
    by_life = {r.stamp[:3]: r for r in sorted(reports, key=lambda r: r.stamp.seq)}
    return list(by_life.values())


@given(st.lists(st.sampled_from(SETS), max_size=40))
def test_only_the_newest_of_each_life_counts(deliveries):
    """In any order, twice, or with older ones lost: as if only the newest had come."""
    assert after(newest(deliveries), SampleSets(), IDS) == after(deliveries, SampleSets(), IDS)


@given(st.lists(st.sampled_from(SPACES), max_size=30))
def test_real_subspaces_come_to_the_same_bytes(deliveries):
    """The model is a function of the rows, to the byte, though a merge truncates."""
    kind = Subspaces(2, oversample=1)

    assert after(newest(deliveries), kind, REAL) == after(deliveries, kind, REAL)


@given(st.lists(st.sampled_from(SETS), max_size=20), st.data())
def test_deliveries_commute(deliveries, data):
    """Any permutation of the same deliveries ends in the same rows."""
    shuffled = data.draw(st.permutations(deliveries))

    assert after(deliveries, SampleSets(), IDS) == after(shuffled, SampleSets(), IDS)


@given(st.lists(st.sampled_from(SETS), max_size=20))
def test_hearing_everything_again_changes_nothing(deliveries):
    """Idempotent: a second round of the same deliveries is no news."""
    once = after(deliveries, SampleSets(), IDS)

    assert once == after(deliveries + deliveries, SampleSets(), IDS)


@given(st.lists(st.sampled_from(SETS), max_size=30))
def test_rows_only_rise(deliveries):
    """No delivery ever takes a row back to an older number."""
    ledger, held = ledger_of(), dict.fromkeys((r.stamp[0:3:2] for r in SETS), 0)
    for each in deliveries:
        verdict = ledger.accept(each, AT)
        key = each.stamp.node, each.stamp.incarnation

        assert max(held[key], each.stamp.seq) == ledger.rows[key].report.stamp.seq
        assert verdict.newest == ledger.rows[key].report.stamp.seq
        held[key] = verdict.newest


@given(st.lists(st.sampled_from(SETS), max_size=30))
def test_a_restart_says_the_same(deliveries):
    """What was kept comes to the same summary as what was held."""
    ledger, disk = ledger_of(), {}
    for each in deliveries:
        ledger.accept(each, AT)
        disk.update(ledger.changes)
        ledger.changes.clear()
    again = ledger_of()
    again.load(disk, AT)

    assert ledger.summary() == again.summary()
    assert ledger.counts() == again.counts()


# -- refusals -----------------------------------------------------------------------


def holding(*reports: Report) -> Ledger:
    ledger = ledger_of()
    for each in reports:
        ledger.accept(each, AT)
    ledger.changes.clear()
    return ledger


def sealing() -> Ledger:
    return holding(report(seq=2, final=True))


def fenced() -> Ledger:
    ledger = holding()
    ledger.admit("b", new_incarnation(1), b"mine" * 4, ())
    ledger.changes.clear()
    return ledger


REFUSALS = {
    Reason.STALE: (sealing, report(seq=3)),
    Reason.SCHEMA: (holding, report(fingerprint=REAL.fingerprint)),
    Reason.FENCED: (fenced, report("b", fence=b"hers" * 4)),
    Reason.SHRUNK: (lambda: holding(report(ids=range(9))), report(seq=2, ids=range(8))),
    Reason.EQUIVOCATION: (lambda: holding(report()), report(ids=range(4))),
}


@pytest.mark.parametrize("reason", REFUSALS, ids=lambda reason: reason.name)
def test_what_is_refused_changes_nothing(reason):
    """Rows, records and summary are as they were."""
    make, message = REFUSALS[reason]
    ledger = make()
    rows, summary = dict(ledger.rows), ledger.summary()

    assert reason is ledger.accept(message, AT).reason
    assert {} == ledger.changes
    assert rows == ledger.rows
    assert summary == ledger.summary()


def test_an_older_report_is_taken_and_changes_nothing():
    """A late one is no error: its answer says what is held."""
    ledger = holding(report(seq=5))

    assert RowVerdict(Reason.ACK, 5) == ledger.accept(report(seq=4, ids=range(2)), AT)
    assert {} == ledger.changes


def test_two_reports_with_one_number_leave_the_first():
    """EQUIVOCATION is a cloned client's mark; whoever came first is believed."""
    ledger = holding(report(ids=range(3)))
    ledger.accept(report(ids=range(9)), AT)

    assert samples(range(3)) == ledger.summary()


def test_an_aggregator_may_say_less():
    """A node forgotten below it makes its row shrink."""
    ledger = fenced()
    ledger.accept(report("b", fence=b"mine" * 4, ids=range(9)), AT)

    assert Reason.ACK is ledger.accept(report("b", seq=2, fence=b"mine" * 4), AT).reason
    assert samples(range(3)) == ledger.summary()


def test_what_is_of_old_schemas_is_dropped_alone():
    """Live rows and sealed ones; of nobody else, and nothing that is in the model."""
    ledger = holding(report(final=True), report("c", new_incarnation(2)), report("d"))
    ledger.change_schema(REAL)
    new = report("c", new_incarnation(3), fingerprint=REAL.fingerprint, summary=samples([7]))
    assert Reason.ACK is ledger.accept(new, AT).reason
    ledger.changes.clear()
    ledger.drop_old("c", AT)

    assert {("c", new_incarnation(3)), ("d", new_incarnation(1))} == set(ledger.rows)
    assert {} == dict(ledger.sealed)
    assert {
        ("row", GROUP, "c", str(new_incarnation(2).created_ms), "2"),
        ("member", GROUP, "c"),
    } == {key for key in ledger.changes if key[0] != "sealed"}
    assert ledger.changes["sealed", GROUP, "c", IDS.fingerprint] is None
    assert samples([7]) == ledger.summary()


# -- sealing -------------------------------------------------------------------------


def test_a_final_on_an_older_number_seals_the_newer_row():
    """What came after the checkpoint stays counted: the process is gone, its reports are not."""
    ledger = holding(report(seq=7, ids=range(7)))

    verdict = ledger.accept(report(seq=4, ids=range(4), final=True), AT)

    assert RowVerdict(Reason.ACK, 7) == verdict
    assert {} == ledger.rows
    assert samples(range(7)) == ledger.summary()
    assert ledger.member("c").closed_seq(new_incarnation(1)) == 7


def test_a_final_that_comes_twice_is_taken_twice():
    """Its first answer was lost; what it says is folded in already."""
    ledger = holding(report(seq=4, final=True))

    assert Reason.ACK is ledger.accept(report(seq=4, final=True), AT).reason
    assert {} == ledger.changes
    assert Counts(3) == ledger.counts()


@pytest.mark.parametrize("restarts", [False, True])
def test_alarms_are_the_nodes_whichever_of_its_rows_is_left(restarts):
    """A final is sealed away: an older row does not open again what has ended since.

    Seed 19 of `all-1` found it.
    """
    opened = alarm("c", 7)
    ledger, ended = ledger_of(), replace(opened, ended=EPOCH + 60)
    first = report("c", new_incarnation(1), alarm_status=status_of(opened))
    second = report(
        "c", new_incarnation(2), ids=[9], as_of=EPOCH + 60, alarm_status=status_of(ended)
    )
    ledger.accept(first, AT)
    ledger.accept(second, Now(60.0, EPOCH + 60))
    if restarts:
        again = ledger_of()
        again.load(ledger.changes, Now(0.0, EPOCH + 90))
        ledger = again
    ledger.accept(replace(second, final=True), Now(95.0, EPOCH + 95))

    (left,) = ledger.rows.values()
    assert (ended,) == left.report.alarms
    assert left.came_as(first, SampleSets())
    assert left is ledger.changes[ledger._key("c", new_incarnation(1))]


@pytest.mark.parametrize("more", [0, 1])
def test_a_late_final_says_nothing_of_alarms_to_a_newer_row(more):
    """The running incarnation knows better, also if the final has news of its own."""
    ledger, old = ledger_of(), alarm("c", 7)
    late = report("c", new_incarnation(1), alarm_status=status_of(old))
    ledger.accept(late, AT)
    ledger.accept(
        report("c", new_incarnation(2), ids=[9], alarm_status=status_of()), Now(60.0, EPOCH + 60)
    )
    stamp = late.stamp._replace(seq=late.stamp.seq + more)
    ledger.accept(replace(late, final=True, stamp=stamp), Now(90.0, EPOCH + 90))

    (left,) = ledger.rows.values()
    assert () == left.report.alarms


def test_a_report_whose_row_has_newer_alarms_may_come_again():
    """The row was changed here, and not by its sender: that is no equivocation."""
    ledger, opened = ledger_of(), alarm("c", 7)
    first = report("c", new_incarnation(1), alarm_status=status_of(opened))
    ended = status_of(replace(opened, ended=EPOCH + 60))
    second = report("c", new_incarnation(2), ids=[9], alarm_status=ended, final=True)
    ledger.accept(first, AT)
    ledger.accept(second, Now(60.0, EPOCH + 60))
    (left,) = ledger.rows.values()
    assert ended == left.report.alarm_status

    assert RowVerdict(Reason.ACK, 1) == ledger.accept(first, Now(61.0, EPOCH + 61))


@pytest.mark.parametrize("seq", [1, 3, 4])
def test_a_late_report_of_a_closed_life_is_no_news(seq):
    """What it says is folded in: STALE would have its sender declare it lost."""
    ledger = holding(report(seq=4, final=True))

    assert RowVerdict(Reason.ACK, 4) == ledger.accept(report(seq=seq, ids=range(2)), AT)
    assert {} == ledger.changes
    assert {} == ledger.rows
    assert Counts(3) == ledger.counts()


def test_a_final_above_what_was_sealed_is_refused():
    """What is folded in cannot be replaced: the sender has to declare the rest lost."""
    ledger = holding(report(seq=4, final=True))

    assert Reason.STALE is ledger.accept(report(seq=5, ids=range(9), final=True), AT).reason


@pytest.mark.parametrize("fence", [b"1" * 16, b"2" * 16], ids=["the same", "a copy's"])
def test_a_report_of_a_closed_store_is_stale_whatever_its_number(fence):
    """Another process of that store may have reported under it, and this one's would be lost.

    Seed 19 of `fences` found it: the root acknowledged what it had never taken.
    """
    ledger = ledger_of()
    ledger.admit("b", new_incarnation(1), b"1" * 16, ())
    ledger.accept(report("b", new_incarnation(1), seq=1, ids=[1], fence=b"1" * 16), AT)
    ledger.seal("b", new_incarnation(1))
    late = report("b", new_incarnation(1), seq=1, ids=[1, 2], fence=fence)

    assert RowVerdict(Reason.STALE, 1) == ledger.accept(late, AT)
    assert samples([1]) == ledger.summary()


def test_silence_alone_seals_nobody():
    """A row is folded away only when another of its node was heard after it."""
    ledger = holding(
        report("c", new_incarnation(1)), report("d", new_incarnation(1), ids=range(10, 12))
    )
    ledger.tidy(Now(10 * 3600, EPOCH + 10 * 3600))

    assert 2 == len(ledger.rows)


def test_the_silent_one_of_two_is_sealed():
    """After `seal_after_s` in which its node spoke under another name, and not before.

    A client that was away for days comes back with its last life's final to send: it must not
    be too late (seed 74 of swarm-1 found it).
    """
    ledger = holding(report("c", new_incarnation(1)))
    ledger.accept(report("c", new_incarnation(2), ids=range(10, 12)), Now(100, EPOCH + 100))
    ledger.tidy(Now(3700, EPOCH + 3700))
    assert 2 == len(ledger.rows)
    ledger.tidy(Now(3701, EPOCH + 3701))

    assert [("c", new_incarnation(2))] == list(ledger.rows)
    assert samples([0, 1, 2, 10, 11]) == ledger.summary()
    assert Reason.STALE is ledger.accept(report("c", new_incarnation(1), seq=2), AT).reason


def test_the_seventh_life_of_a_client_folds_the_longest_silent():
    """Six live rows at most, and nothing is lost by that."""
    ledger = ledger_of()
    for n in range(CLIENT_ROWS + 1):
        ledger.accept(report("c", new_incarnation(n), ids=[n]), Now(n, EPOCH + n))

    assert {("c", new_incarnation(n)) for n in range(1, CLIENT_ROWS + 1)} == set(ledger.rows)
    assert samples(range(CLIENT_ROWS + 1)) == ledger.summary()


def test_the_fifth_life_of_an_aggregator_folds_the_longest_silent():
    """Four live rows at most; only silence counts, not age."""
    ledger = ledger_of()
    for n in range(5):
        ledger.admit("b", new_incarnation(n), bytes([n]) * 16, ())
    for n in (0, 1, 2, 3):
        ledger.accept(
            report("b", new_incarnation(n), ids=[n], fence=bytes([n]) * 16), Now(n, EPOCH)
        )
    ledger.accept(
        report("b", new_incarnation(0), seq=2, ids=[0, 9], fence=bytes(16)), Now(8, EPOCH)
    )
    ledger.accept(report("b", new_incarnation(4), ids=[4], fence=bytes([4]) * 16), Now(9, EPOCH))

    assert {("b", new_incarnation(n)) for n in (0, 2, 3, 4)} == set(ledger.rows)
    assert samples([0, 1, 2, 3, 4, 9]) == ledger.summary()


def test_the_smallest_of_65_closed_names_falls_off_and_the_floor_rises():
    """What is created below the floor cannot be told from what is over."""
    ledger = ledger_of()
    for n in range(1, CLOSED + 1):
        ledger.accept(report("c", new_incarnation(n), ids=[n], final=True), AT)
    assert 0 == ledger.member("c").floor
    ledger.accept(report("c", new_incarnation(CLOSED + 1), ids=[CLOSED + 1], final=True), AT)

    member = ledger.member("c")
    assert CLOSED == len(member.closed)
    assert new_incarnation(1).created_ms + 1 == member.floor
    assert Reason.STALE is ledger.accept(report("c", new_incarnation(0)), AT).reason
    assert Counts(CLOSED + 1) == ledger.counts()


def test_what_falls_off_is_the_oldest_name_but_for_the_one_just_closed():
    """Whose last message may come again, and has to be known then."""
    ledger = ledger_of()
    for n in reversed(range(1, CLOSED + 2)):
        ledger.accept(report("c", new_incarnation(n), ids=[n], final=True), AT)

    assert new_incarnation(2).created_ms + 1 == ledger.member("c").floor
    assert {new_incarnation(n) for n in range(1, CLOSED + 2) if n != 2} == set(
        ledger.member("c").closed
    )
    again = ledger.accept(report("c", new_incarnation(1), ids=[1], final=True), AT)
    assert Reason.ACK is again.reason


def test_a_live_row_below_the_new_floor_is_sealed_first():
    """Its readings stay; its process will be told that it is stale."""
    ledger = ledger_of()
    ledger.accept(report("c", new_incarnation(0), ids=[0]), AT)
    for n in range(1, CLOSED + 2):
        ledger.accept(report("c", new_incarnation(n), ids=[n], final=True), AT)

    assert {} == ledger.rows
    assert new_incarnation(2).created_ms + 1 == ledger.member("c").floor
    assert Counts(CLOSED + 2) == ledger.counts()
    assert (
        Reason.STALE
        is ledger.accept(report("c", new_incarnation(0), seq=2, ids=[0, 99]), AT).reason
    )


def full(*live: int) -> Ledger:
    """A ledger whose list of closed names is full: created 100 to 163; and live rows."""
    ledger = ledger_of()
    for n in range(100, 100 + CLOSED):
        ledger.accept(report("c", new_incarnation(n), ids=[n], final=True), AT)
    for at, n in enumerate(live):
        ledger.accept(report("c", new_incarnation(n), ids=[n]), Now(at, EPOCH + at))
    return ledger


def test_room_for_a_final_may_put_the_floor_above_it():
    """Sealing another row for it seals its own as well: that is all a final asks for."""
    ledger = full(*range(200, 200 + CLIENT_ROWS))
    verdict = ledger.accept(
        report("c", new_incarnation(5), ids=[5], final=True), Now(99, EPOCH + 99)
    )

    assert RowVerdict(Reason.ACK, 1, news=True) == verdict
    assert {("c", new_incarnation(n)) for n in range(201, 200 + CLIENT_ROWS)} == set(ledger.rows)
    assert samples([5, *range(100, 100 + CLOSED), *range(200, 206)]) == ledger.summary()
    assert Counts(1 + CLOSED + CLIENT_ROWS) == ledger.counts()


def test_a_silent_row_may_take_a_later_one_of_the_same_walk_along():
    """The floor rises above it while its node's rows are looked through."""
    ledger = full(200, 5, 6, 300)
    ledger.tidy(Now(9999, EPOCH + 9999))

    assert [("c", new_incarnation(300))] == list(ledger.rows)
    assert samples([5, 6, *range(100, 100 + CLOSED), 200, 300]) == ledger.summary()
    assert Counts(CLOSED + 4) == ledger.counts()


@given(st.integers(0, 2**16), st.integers(1, 150), st.sampled_from([1, 30, 2**20]))
@settings(max_examples=40)
def test_a_floor_never_falls_and_the_books_stay_small(seed, n, spread):
    """Whatever clock names its lives, a node's records are bounded and nothing counts twice."""
    rng, sets = np.random.default_rng(seed), SampleSets()
    ledger, floor = ledger_of(sets), 0
    for i in range(n):
        now = Now(i, EPOCH + i)
        message = report("c", Incarnation(int(rng.integers(spread)), i), ids=[i])
        ledger.accept(message, now)
        if rng.random() < 0.8:
            ledger.accept(replace(message, final=True), now)
        member = ledger.member("c")

        assert floor <= member.floor
        assert len(member.closed) <= CLOSED
        assert len(ledger.rows) <= CLIENT_ROWS
        assert all(member.floor <= incarnation.created_ms for _, incarnation in ledger.rows)
        floor = member.floor
    assert 0 == sets.doubled


# -- forgetting ----------------------------------------------------------------------


@given(st.lists(st.sampled_from(SPACES), max_size=30), st.sampled_from(NODES))
def test_a_forgotten_node_leaves_no_trace(deliveries, gone):
    """The summary's bytes are those of a ledger that never heard of it."""
    kind = Subspaces(2, oversample=1)
    ledger, without = ledger_of(kind, REAL), ledger_of(kind, REAL)
    for i, each in enumerate(deliveries):
        each = replace(each, final=i % 3 == 0)
        ledger.accept(each, AT)
        if each.stamp.node != gone:
            without.accept(each, AT)
    ledger.forget(gone, AT)

    left, never = ledger.summary(), without.summary()
    assert (never is None) == (left is None)
    if never is not None:
        assert kind.packed(never) == kind.packed(left)
    assert without.counts() == ledger.counts()


def test_forgetting_is_kept():
    """After a restart the node is still forgotten, and its life still over."""
    ledger, disk = ledger_of(), {}
    for each in (report(seq=3, final=True), report("c", new_incarnation(2), ids=[7])):
        ledger.accept(each, AT)
    ledger.forget("c", AT)
    write(disk, Keep(ledger.changes))
    again = ledger_of()
    again.load(disk, AT)

    assert again.summary() is None
    assert Counts() == again.counts()
    assert Reason.STALE is again.accept(report("c", new_incarnation(2), seq=2), AT).reason


def test_a_dropped_incarnation_takes_its_row_along():
    """An operator's word on a dead aggregator: the row goes, the others stay."""
    ledger = holding(report("c", new_incarnation(1)), report("c", new_incarnation(2), ids=[7]))
    ledger.drop("c", new_incarnation(1), AT)

    assert samples([7]) == ledger.summary()
    assert Reason.STALE is ledger.accept(report("c", new_incarnation(1), seq=2), AT).reason


def test_rows_of_an_older_schema_leave_the_model_and_stay_listed():
    """Nobody can merge them any more; an operator may look at them, and drop them."""
    ledger = holding(report())
    ledger.change_schema(replace(IDS, half_life=60.0))

    assert ledger.summary() is None
    assert Counts() == ledger.counts()
    assert 1 == len(ledger.rows)


# -- clocks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "synced", "believed"),
    [
        (EPOCH - 50, True, EPOCH - 50),
        (EPOCH - 50, False, EPOCH),
        (EPOCH + 29, True, EPOCH + 29),
        (EPOCH + 9e9, True, EPOCH + 30),
        (0.0, True, EPOCH - 30 * 86400),
    ],
)
def test_how_far_a_clock_is_believed(message, synced, believed):
    """30 s ahead and `max_age_s` back; one that nobody vouches for, not at all."""
    ledger = holding(report(as_of=message, synced=synced))

    assert believed == ledger.rows["c", new_incarnation(1)].as_of


def test_changes_write_what_the_ledger_holds():
    """A sealed row's record goes as the sealed one comes: one transaction holds both."""
    ledger, disk = ledger_of(), {}
    ledger.accept(report(), AT)
    disk.update(ledger.changes)
    ledger.changes.clear()
    ledger.accept(report(seq=2, ids=range(5), final=True), AT)

    assert ["member", "row", "sealed"] == sorted(key[0] for key in ledger.changes)
    assert [None] == [v for key, v in ledger.changes.items() if key[0] == "row"]


def test_moments_do_not_depend_on_the_order_of_reports():
    """Rounding included: the scaling that follows from them is hashed."""
    rows = rows_of("far from zero", 40, 1, seed=1)
    reported = [
        report(f"c{i}", ids=range(4), summary=None, moments=Moments.of(rows[4 * i : 4 * i + 4]))
        for i in range(10)
    ]
    results = set()
    for seed in range(8):
        ledger = ledger_of()
        for i in np.random.default_rng(seed).permutation(10):
            ledger.accept(reported[i], AT)
        results.add(ledger.moments().packed)

    assert 1 == len(results)


def test_no_digest_is_computed_before_a_number_comes_again(monkeypatch):
    """It takes as long as a merge, and is needed to tell an equal report from another one."""
    asked = list[Report]()

    def counting(report: Report, summaries: Summaries) -> bytes:
        asked.append(report)
        return digest(report, summaries)

    monkeypatch.setattr(pool, "digest", counting)
    monkeypatch.setattr(ledger_module, "digest", counting)
    ledger = ledger_of()
    for each in SETS[:3]:
        ledger.accept(each, AT)
    before = len(asked)
    verdict = ledger.accept(SETS[2], AT)

    assert (0, Reason.ACK) == (before, verdict.reason)
    assert [SETS[2]] * 2 == asked


@pytest.mark.parametrize("restarts", [False, True])
def test_a_report_that_comes_again_with_another_trail_is_the_same(restarts):
    """A client that sends its pending report again may know more of its minutes by then."""
    ledger = ledger_of()
    ledger.accept(report(trail=ScoreTrail(28_333_333, b"\1\2")), AT)
    if restarts:
        again = ledger_of()
        again.load(ledger.changes, AT)
        ledger = again
    again_said = report(trail=ScoreTrail(28_333_334, b"\1\2\200"))

    assert RowVerdict(Reason.ACK, 1) == ledger.accept(again_said, AT)
