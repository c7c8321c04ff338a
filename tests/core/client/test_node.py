"""ClientNode: its lives, its finals, its reports, and the models that it scores with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema, ShapeError, Subspace
from submerge.client.node import MONITOR
from submerge.client.pending_finals import CHECKPOINT, PAST
from submerge.pca.score import hotelling, spe
from submerge.protocol.machine import Flush, Keep, Linked, Reading, Received, Scored, Send, Tick
from submerge.protocol.messages import (
    BELIEVED,
    HIGHEST,
    Answer,
    Counts,
    Hello,
    Join,
    Model,
    Reason,
    Report,
)
from submerge.protocol.report_bytes import payload
from submerge.protocol.session import TWIN_S
from submerge.protocol.summaries import Subspaces
from submerge.schema import Scaling
from submerge_lab.simulator.samples import SampleSets
from support.nodes import (
    EPOCH,
    GROUP,
    IDS,
    ME,
    OTHER,
    Host,
    Table,
    answer,
    joined,
    kept,
    new_incarnation,
    samples,
    sent,
    write,
)

MONTH = 30 * 86400.0
PATIENCE = 10.0
"""A hello is followed by a join within this time, and no second try comes within it."""

CLOSE_LIFE = (Reason.STALE, Reason.SHRUNK, Reason.EQUIVOCATION)
REAL = Schema.anonymous(3)


def alone(table: Table | None = None, **settings) -> tuple[Table, Host]:
    """A client whose parent the test plays."""
    table = table or Table()
    return table, table.client("c", under="a", **settings)


def asks(table: Table) -> Join:
    """The client's newest join."""
    return table.messages("c", Join)[-1]


def said(table: Table) -> Report:
    """The client's newest report."""
    return table.reports("c")[-1]


def pinned(top: bool = False, **settings) -> tuple[Table, Host]:
    """A client that has joined."""
    table, host = alone(**settings)
    table.tell("c", joined(asks(table), top=top))
    return table, host


def reported(readings: int = 3, **settings) -> tuple[Table, Host]:
    """A client that has joined, and whose report of some readings waits for its answer."""
    table, host = pinned(**settings)
    table.reads("c", readings)
    table.step("c", Flush())
    table.run()
    return table, host


def rejoined(table: Table, **fields) -> None:
    """Have the client ask again to join, and answer it."""
    table.tell("c", Hello("a", ME, False, boot=len(table.said)))
    table.passes(PATIENCE)
    table.tell("c", joined(asks(table), **fields))
    table.run()


# -- joining ---------------------------------------------------------------------


def test_it_joins_before_it_reports():
    """No report before the join is answered, however long that takes."""
    table, _ = alone()
    table.reads("c", 500)
    table.step("c", Flush())
    table.passes(3000)

    assert {Join} == {type(letter.message) for letter in table.said}
    assert len(table.said) > 3


def test_a_report_is_pinned_to_the_parent_it_joined():
    """Never empty, and the parent's, not the client's own."""
    table, host = reported()

    assert ME == said(table).pinned
    assert host.node.current.incarnation == said(table).stamp.incarnation


def test_only_the_answer_to_a_pending_join_is_taken():
    """A late one names a parent that may be dead."""
    table, host = pinned()
    table.tell("c", joined(asks(table), pinned=OTHER))

    assert ME == host.node.current.pin.incarnation


def test_an_answer_to_another_lifes_join_is_not_taken():
    """The process before this one asked; this one has a name of its own."""
    table, host = alone()
    before = asks(table)
    table.restarts("c")
    table.tell("c", joined(before))

    assert host.node.current.pin is None


def test_not_now_is_asked_again():
    """UNAVAILABLE names no parent: the back-off goes on."""
    table, host = alone()
    table.tell("c", joined(asks(table), Reason.UNAVAILABLE, pinned=None))
    table.passes(60)

    assert host.node.current.pin is None
    assert len(table.messages("c", Join)) > 1


def test_a_refused_schema_is_noted_with_its_lines():
    """Whoever reads the log sees what differs, line by line."""
    table, host = alone()
    lines = ("missing channel: x1",)
    table.tell("c", joined(asks(table), Reason.SCHEMA, lines=lines))

    assert [lines] == [n.facts["lines"] for n in host.notes if n.what == "join refused"]


def test_a_parents_new_boot_is_joined_again():
    """It may have lost what it held; the same boot said twice is no news."""
    table, host = pinned()
    before = len(table.messages("c", Join))
    table.tell("c", Hello("a", ME, False, boot=1))
    table.passes(PATIENCE)
    table.tell("c", joined(asks(table)))
    table.tell("c", Hello("a", ME, False, boot=1))
    table.passes(PATIENCE)

    assert before + 1 == len(table.messages("c", Join))
    assert ME == host.node.current.pin.incarnation


def test_clients_come_back_one_by_one():
    """A parent that is back says so to all at once: each joins at a random moment, and soon."""
    table = Table()
    for i in range(50):
        table.client(f"c{i}")
        table.tell(f"c{i}", joined(table.messages(f"c{i}", Join)[-1]))
        table.tell(f"c{i}", Hello("a", ME, False, boot=1))
    assert 50 == len(table.said)
    table.passes(PATIENCE / 2)
    early = len(table.said) - 50
    table.passes(PATIENCE / 2)

    assert 10 < early < 40
    assert 100 == len(table.said)


def test_a_hello_hurries_a_join_that_was_backing_off():
    """It need not wait minutes for a parent that is there."""
    table, _ = alone()
    table.passes(3000)
    before = len(table.messages("c", Join))
    table.tell("c", Hello("a", ME, False, boot=1))
    table.passes(PATIENCE)

    assert before + 1 == len(table.messages("c", Join))


def test_a_first_hello_does_not_undo_the_join_that_it_came_with():
    """A link that opens brings hello and answer at once: the answer is not unasked for that."""
    table, _ = alone()
    join = table.messages("c", Join)[-1]
    table.tell("c", Hello("a", ME, False, boot=1))
    table.tell("c", joined(join))

    assert table.hosts["c"].node.current.pin is not None


def test_a_hello_after_not_now_hurries_the_next_join():
    """A parent that could not say its name yet has one now."""
    table, _ = alone()
    table.tell("c", joined(table.messages("c", Join)[-1], reason=Reason.UNAVAILABLE))
    before = len(table.messages("c", Join))
    table.tell("c", Hello("a", ME, False, boot=1))
    table.passes(PATIENCE)

    assert before + 1 == len(table.messages("c", Join))


def test_an_end_does_not_wait_for_the_pace_of_joins():
    """Readings that wait for a join go at once: the fleet may have settled its schema just now."""
    table, _ = reported(5)
    table.tell("c", answer(said(table), Reason.SCHEMA))  # it ends already: this join hurries
    table.tell("c", joined(asks(table)))
    table.tell("c", answer(said(table), Reason.SCHEMA))
    before = len(table.messages("c", Join))
    table.passes(PATIENCE / 2)
    assert before == len(table.messages("c", Join)), "two sides that cannot agree keep their pace"
    table.step("c", Flush())
    table.run()

    assert before + 1 == len(table.messages("c", Join))


def test_a_refusal_after_its_end_is_answered_with_a_join_at_once():
    """Once: the next join keeps its pace."""
    table, _ = pinned()
    table.reads("c", 5)
    table.step("c", Flush())
    before = len(table.messages("c", Join))
    table.tell("c", answer(said(table), Reason.SCHEMA))
    table.run()

    assert before + 1 == len(table.messages("c", Join))


def test_the_last_checkpoint_knows_what_was_confirmed():
    """An orderly end: should the parent be replaced, nothing is declared lost that it had."""
    table, host = reported(5)
    table.step("c", Flush())
    table.tell("c", answer(said(table)))
    kept = host.disk[CHECKPOINT]

    assert 0 == kept.undelivered


# -- lives -----------------------------------------------------------------------


def test_each_start_is_a_new_life_from_zero():
    """Nothing is resumed, though the card holds everything."""
    table, host = reported(5)
    table.passes(600)
    before = host.node.current.incarnation
    table.restarts("c")

    assert before != host.node.current.incarnation
    assert Counts() == host.node.current.counts


@pytest.mark.parametrize("reason", CLOSE_LIFE, ids=lambda reason: reason.name)
def test_an_answer_that_closes_a_life_begins_another(reason):
    """From zero, created above the floor; what was not confirmed is declared lost."""
    table, host = reported(3)
    before, floor = host.node.current.incarnation, new_incarnation(0).created_ms + 10**9
    table.tell("c", answer(said(table), reason, floor=floor))

    assert before != host.node.current.incarnation
    assert floor + 1 == host.node.current.incarnation.created_ms
    assert Counts(lost=3) == host.node.current.counts
    assert host.node.current.pin is None


def test_each_loss_is_logged_once():
    """Three lives that never joined: each line has its own readings, and the sum is declared."""
    table, host = alone()
    for readings in (5, 3, 2):
        table.reads("c", readings)
        table.passes(600)
        table.restarts("c")
    lost = [note.facts["readings"] for note in host.notes if note.what == "lost"]

    assert [5, 3, 2] == lost
    assert Counts(lost=10) == host.node.current.counts


def test_what_was_confirmed_is_not_declared_lost():
    """The parent holds the first three: only what came after is gone."""
    table, host = reported(3)
    table.tell("c", answer(said(table)))
    table.reads("c", 2)
    table.tell("c", answer(said(table), Reason.STALE))

    assert Counts(lost=2) == host.node.current.counts


def test_a_stale_join_begins_another_life():
    """The floor that the answer names is passed."""
    table, host = alone()
    table.tell("c", joined(asks(table), Reason.STALE, floor=new_incarnation(0).created_ms + 5000))

    assert new_incarnation(0).created_ms + 5001 == host.node.current.incarnation.created_ms


def test_another_incarnation_of_the_parent_is_another_life():
    """An incarnation belongs to one parent for ever."""
    table, host = reported()
    before = host.node.current.incarnation
    rejoined(table, pinned=OTHER)

    assert before != host.node.current.incarnation
    assert ["the parent's store is another one"] == host.why("lost")


def test_another_schema_is_another_life():
    """SCHEMA makes it join again; what comes down is what it learns under from then on."""
    table, host = reported(3)
    scaled = replace(IDS, scaling=Scaling((0.0,), (2.0,)))
    table.tell("c", answer(said(table), Reason.SCHEMA))
    table.passes(PATIENCE)
    table.tell("c", joined(asks(table), schema=scaled.canonical))

    assert scaled.fingerprint == host.node.current.fingerprint
    assert Counts(lost=3) == host.node.current.counts


@pytest.mark.parametrize("top", [True, False])
def test_only_from_root_to_root_a_life_goes_on(top):
    """The one exception: the root lost its database; no two roots are ever merged."""
    table, host = reported(top=top)
    before = host.node.current.incarnation
    rejoined(table, pinned=OTHER, top=True)

    assert top == (before == host.node.current.incarnation)


def test_a_report_that_waits_goes_over_to_the_new_root():
    """The same report, under the new pin."""
    table, _ = reported(top=True)
    first = said(table)
    rejoined(table, pinned=OTHER, top=True)

    assert (first.stamp, OTHER) == (said(table).stamp, said(table).pinned)


@given(
    st.sampled_from([reason for reason in Reason if reason is not Reason.WRONG_PARENT]),
    st.integers(0, 20),
    st.integers(0, 2**60),
)
def test_an_answer_for_another_life_changes_nothing(reason, newest, floor):
    """What was meant for an earlier process, or for nobody, is nothing to this one."""
    table, host = reported()
    before, due = host.node.current.incarnation, host.node.wakes_at
    stamp = said(table).stamp._replace(incarnation=new_incarnation(77))
    table.tell("c", Answer(stamp, reason, b"", OTHER, True, newest, OTHER, newest, floor))

    assert (before, 0, 0, due) == (
        host.node.current.incarnation,
        host.node.current.delivered,
        host.node.current.durable,
        host.node.wakes_at,
    )


def test_a_wrong_parent_makes_it_ask_again():
    """The life goes on until the answer to the join says that it cannot."""
    table, host = reported()
    before = host.node.current.incarnation
    joins = len(table.messages("c", Join))
    table.tell("c", answer(said(table), Reason.WRONG_PARENT, pinned=OTHER))
    table.passes(PATIENCE)

    assert before == host.node.current.incarnation
    assert joins + 1 == len(table.messages("c", Join))


def test_a_parent_that_knows_more_of_a_life_ends_it():
    """Somebody else has spoken under this name: no two may."""
    table, host = reported()
    before = host.node.current.incarnation
    rejoined(table, seq=99)

    assert before != host.node.current.incarnation
    assert ["the parent holds later reports than this node has sent"] == host.why("lost")


def test_rows_withheld_before_the_first_join_are_declared():
    """The schema that comes down begins a life: what the one before saw is not forgotten."""
    table, host = alone()
    table.step("c", Reading(np.full((5, 1), np.nan)))
    scaled = replace(IDS, scaling=Scaling((0.0,), (2.0,)))
    table.tell("c", joined(asks(table), schema=scaled.canonical))

    assert scaled.fingerprint == host.node.current.fingerprint
    assert 5 == host.node.current.counts.generated
    assert 5 == host.node.lifetime


# -- copies ----------------------------------------------------------------------


def contradicted(table: Table, reason: Reason) -> Host:
    """Have the client join, report what it has learnt, and be told that it is not alone."""
    table.tell("c", joined(asks(table), schema=REAL.canonical))
    table.step("c", Reading(ROWS))
    table.step("c", Flush())
    table.run()
    table.tell("c", answer(said(table), reason))
    return table.hosts["c"]


def suspicions(host: Host) -> int:
    return len([note for note in host.notes if note.what == "copy suspected"])


@pytest.mark.parametrize("first", [Reason.EQUIVOCATION, Reason.SHRUNK])
@pytest.mark.parametrize("second", [Reason.EQUIVOCATION, Reason.SHRUNK])
def test_contradicted_twice_it_keeps_silent_for_an_hour(first, second):
    """Two copies with the same random numbers would end each other's lives for ever."""
    table, _ = scoring()
    before = contradicted(table, first).node.current.incarnation
    host = contradicted(table, second)
    assert before != host.node.current.incarnation
    assert 1 == suspicions(host)
    many = len(table.said)
    table.passes(TWIN_S - 1)
    assert many == len(table.said)
    table.passes(2)

    assert [Join] == [type(letter.message) for letter in table.said[many:]]


def test_what_a_sensor_holds_goes_with_its_rows():
    """As far as the scores, and what is stuck."""
    table, _ = scoring(model(7))
    held = np.arange(ROWS.size).reshape(ROWS.shape) % 2 == 0
    (scored,) = (each for each in table.step("c", Reading(ROWS, held)) if isinstance(each, Scored))

    assert held.tolist() == scored.block.held.tolist()


def test_a_silent_client_goes_on_scoring_and_learning():
    """Silence is about what it says, not about what it watches."""
    table, _ = scoring(model(7))
    contradicted(table, Reason.EQUIVOCATION)
    host = contradicted(table, Reason.EQUIVOCATION)
    many, lost = len(table.said), host.node.current.counts.lost
    effects = table.step("c", Reading(ROWS))
    table.step("c", Flush())

    assert [7] == [effect.version for effect in effects if isinstance(effect, Scored)]
    assert Counts(len(ROWS), lost=lost) == host.node.current.counts
    assert len(ROWS) == host.disk[CHECKPOINT].report.counts.learnt
    assert many == len(table.said)


@pytest.mark.parametrize(
    "event",
    [Linked(), Flush(), Received(Hello("a", ME, False, boot=1))],
    ids=["linked", "flush", "hello"],
)
def test_nothing_breaks_its_silence(event):
    """A link that opens, a parent that says hello, someone who asks: it is the same copy."""
    table, _ = scoring()
    contradicted(table, Reason.EQUIVOCATION)
    contradicted(table, Reason.EQUIVOCATION)
    many = len(table.said)
    table.step("c", event)
    table.passes(TWIN_S - 1)
    assert many == len(table.said)
    table.passes(2)

    assert many < len(table.said)


def test_contradicted_once_it_goes_on():
    """It may be chance: it asks to join under its new name at once."""
    table, _ = scoring()
    many = len(table.messages("c", Join))
    host = contradicted(table, Reason.EQUIVOCATION)

    assert many + 1 == len(table.messages("c", Join))
    assert 0 == suspicions(host)


def test_contradictions_far_apart_are_no_pattern():
    """An hour later the first one is forgotten."""
    table, _ = scoring()
    contradicted(table, Reason.EQUIVOCATION)
    table.passes(TWIN_S + 1)
    many = len(table.messages("c", Join))
    host = contradicted(table, Reason.EQUIVOCATION)

    assert many + 1 == len(table.messages("c", Join))
    assert 0 == suspicions(host)


# -- finals ----------------------------------------------------------------------


def test_the_checkpoint_goes_out_again_as_final():
    """Under the name and the pin of the life that wrote it, before anything is joined."""
    table, host = reported(5)
    before, seq = host.node.current.incarnation, said(table).stamp.seq
    table.restarts("c")
    final = said(table)

    assert (before, ME, True) == (final.stamp.incarnation, final.pinned, final.final)
    assert final.stamp.seq > seq
    assert samples(range(5)) == final.summary


def test_a_final_is_said_until_it_is_taken():
    """And never again after that, also not by the next process."""
    table, _ = reported(5)
    table.restarts("c")
    table.passes(2000)
    many = len(table.reports("c"))
    table.tell("c", answer(said(table)))
    table.passes(2000)
    table.restarts("c")
    table.passes(2000)

    assert many > 5
    assert many == len(table.reports("c"))


def test_a_checkpoint_from_before_the_join_is_never_sent():
    """It could bind to a second parent: it is declared lost instead."""
    table, host = alone()
    table.reads("c", 7)
    table.passes(600)
    assert CHECKPOINT in host.disk
    table.restarts("c")
    table.tell("c", joined(asks(table)))
    table.passes(600)

    assert [] == [r for r in table.reports("c") if r.final]
    assert Counts(lost=7) == host.node.current.counts


def test_what_is_reported_right_after_a_late_join_is_not_declared_lost():
    """A checkpoint from before the join is replaced before the first report goes out."""
    table, host = alone()
    table.reads("c", 7)
    table.passes(600)
    assert host.disk[CHECKPOINT].pin is None
    effects = host.node.step(Received(joined(asks(table))), table.now("c"))
    kinds = [type(each) for each in effects]
    assert kinds.index(Keep) < len(kinds) - 1 - kinds[::-1].index(Send)

    for each in effects:
        if isinstance(each, Keep):
            write(host.disk, each)  # and then it is killed
    table.restarts("c")
    table.tell("c", joined(asks(table)))
    table.passes(600)

    assert [7] == [r.counts.learnt for r in table.reports("c") if r.final][-1:]
    assert Counts() == host.node.current.counts


def test_at_most_four_finals_wait():
    """The oldest is pushed out, and declared lost by the life that is running."""
    table, host = pinned()
    for n in range(1, 7):
        table.reads("c", n)
        table.step("c", Flush())
        table.run()
        table.restarts("c")
        table.tell("c", joined(asks(table)))

    assert [3, 4, 5, 6] == [f.report.counts.learnt for f in host.disk[PAST].finals]
    # The fifth start gave up one reading, which the fifth life's own final declares.
    assert 2 == host.node.current.counts.lost
    assert [0, 0, 0, 1] == [f.report.counts.lost for f in host.disk[PAST].finals]


@pytest.mark.parametrize("reason", [Reason.STALE, Reason.SCHEMA, Reason.BANNED, Reason.SHRUNK])
def test_a_refused_final_is_declared_lost(reason):
    """What it said and nobody confirmed; the running life says so."""
    table, host = reported(5)
    table.restarts("c")
    table.tell("c", answer(said(table), reason))

    assert Counts(lost=5) == host.node.current.counts
    assert () == host.disk[PAST].finals


def test_a_refused_final_counts_what_was_confirmed_as_delivered():
    """Three of the five readings arrived in a report: two are lost."""
    table, host = reported(3)
    table.tell("c", answer(said(table)))
    table.reads("c", 2)
    table.step("c", Flush())
    table.restarts("c")
    table.tell("c", answer([r for r in table.reports("c") if r.final][-1], Reason.STALE))

    assert Counts(lost=2) == host.node.current.counts


@pytest.mark.parametrize("reason", [Reason.ACK, *CLOSE_LIFE], ids=lambda reason: reason.name)
def test_a_final_is_not_judged_by_an_earlier_reports_answer(reason):
    """It comes late, and speaks of less: neither taken nor lost, the final waits for its own."""
    table, host = reported(5)
    early = said(table)
    table.restarts("c")
    final = said(table)
    assert early.stamp.seq < final.stamp.seq
    table.tell("c", answer(early, reason, newest=final.stamp.seq))

    assert Counts() == host.node.current.counts
    assert [final.stamp] == [f.report.stamp for f in host.disk[PAST].finals]
    table.tell("c", answer(final))
    assert () == host.disk[PAST].finals


def test_a_lost_root_does_not_take_a_final():
    """Its answer comes late: the root in its place has not heard what the final says."""
    table, host = reported(5, top=True)
    table.restarts("c")
    first = said(table)
    table.tell("c", joined(asks(table), pinned=OTHER, top=True))
    table.run()
    table.tell("c", answer(first, pinned=ME))
    assert 1 == len(host.disk[PAST].finals)
    table.tell("c", answer(said(table), pinned=OTHER))

    assert () == host.disk[PAST].finals
    assert Counts() == host.node.current.counts


def test_a_final_of_a_root_goes_over_to_the_next_root():
    """Top to top: the same final, under the new pin."""
    table, _ = reported(5, top=True)
    table.restarts("c")
    table.tell("c", joined(asks(table), pinned=OTHER, top=True))
    table.run()

    assert (OTHER, True) == (said(table).pinned, said(table).final)


def test_a_final_for_another_parent_is_given_up():
    """Its parent's store is gone for good: nobody else may count it."""
    table, host = reported(5)
    table.restarts("c")
    table.tell("c", joined(asks(table), pinned=OTHER))

    assert Counts(lost=5) == host.node.current.counts


def test_a_failed_write_is_healed_by_the_next_checkpoint():
    """Each checkpoint keeps what earlier lives left as well: it takes the place of the last."""
    table, host = reported(5)
    card = dict(host.disk)
    table.restarts("c")
    host.disk.clear()
    host.disk.update(card)  # as if the write at the start had failed
    table.tell("c", joined(asks(table)))
    table.reads("c", 2)
    keeps = table.step("c", Flush())

    assert {CHECKPOINT, PAST, MONITOR} == set(kept(keeps))
    table.restarts("c")
    finals = [r.counts.learnt for r in table.reports("c")[-2:]]
    assert [5, 2] == finals


def test_a_life_that_ended_leaves_no_final():
    """Its readings were declared lost: its checkpoint must not bring them back as well."""
    table, host = reported(5)
    rejoined(table, pinned=OTHER)
    table.restarts("c")

    assert [] == [r for r in table.reports("c") if r.final]
    assert Counts(lost=5) == host.node.current.counts


def test_lifetime_goes_on_through_restarts():
    """What it ever saw, not what this life saw."""
    table, host = reported(5)
    table.restarts("c")
    table.reads("c", 2)

    assert 7 == host.node.lifetime


# -- reports ---------------------------------------------------------------------


@pytest.mark.slow
def test_a_month_offline_leaves_one_report():
    """The newest takes the place of the one before; tries are never further apart than the cap."""
    table, host = pinned()
    table.reads("c", 3)
    table.passes(1000)
    tries, cap = [], host.node.settings.cap_s
    while table.time < MONTH:
        table.time = max(table.time, host.node.wakes_at)
        if sent(table.step("c", Tick()), Join | Report):
            tries.append(table.time)
        table.run()
    table.reads("c", 1)
    before = len(table.reports("c"))
    table.step("c", Linked())
    table.tell("c", joined(asks(table)))
    table.tell("c", answer(said(table)))
    table.passes(1000)

    assert max(np.diff(tries)) <= cap
    assert len(tries) > MONTH / cap
    assert [4] == [r.counts.learnt for r in table.reports("c")[before:]]


def test_reboots_while_offline_leave_four_finals():
    """However often: four finals, and every reading is in one of them or declared lost."""
    table, host = pinned()
    total = 0
    for n in range(40):
        table.reads("c", n + 1)
        total += n + 1
        table.step("c", Flush())
        table.restarts("c")
        if n % 7:
            table.tell("c", joined(asks(table)))
    finals = host.disk[PAST].finals

    assert 4 == len(finals)
    reported = sum(f.report.counts.generated for f in finals)
    assert total == reported + host.node.current.counts.lost


def test_a_newer_report_takes_the_place_of_the_one_that_waits():
    """A retry says what is known by then."""
    table, _ = reported(3)
    first = said(table)
    table.reads("c", 2)
    table.passes(15)

    assert 5 == said(table).counts.learnt
    assert said(table).stamp.seq > first.stamp.seq


def test_a_retry_without_news_is_the_same_report():
    """The parent acknowledges it twice; nothing is equivocal."""
    table, _ = reported(3)
    first = said(table)
    table.passes(15)

    assert len(table.reports("c")) > 1
    assert {payload(first, SampleSets())} == {payload(r, SampleSets()) for r in table.reports("c")}


def test_three_unanswered_reports_are_followed_by_a_join():
    """On a shared broker nobody answers for a dead store: whoever is there answers a join."""
    table, _ = reported(3)
    table.passes(600)
    kinds = [type(letter.message) for letter in table.said]

    assert [Join, Report, Report, Report, Join] == kinds[:5]


def test_an_acknowledged_report_is_said_again_after_ten_intervals():
    """The parent may have been restored from a backup without noticing."""
    table, host = reported(3)
    table.tell("c", answer(said(table)))
    every = host.node.settings.report_every_s
    table.passes(10 * every - 1)
    assert 1 == len(table.reports("c"))
    table.passes(2)

    assert 2 == len(table.reports("c"))
    assert samples(range(3)) == said(table).summary


def test_a_parent_that_lost_a_report_hears_it_again():
    """The answer to the join says what the parent holds: less than it once did."""
    table, host = reported(3)
    table.tell("c", answer(said(table)))
    rejoined(table, seq=0)

    assert 2 == len(table.reports("c"))
    assert 0 == host.node.current.delivered


def test_intervals_vary_by_a_fifth():
    """Reports of a thousand clients spread out by themselves."""
    table, host = pinned()
    at = []
    for _ in range(60):
        table.reads("c", 1)
        table.time = max(table.time, host.node.wakes_at)
        while not sent(table.step("c", Tick()), Report):
            table.time = max(table.time + 1e-3, host.node.wakes_at)
        at.append(table.time)
        table.run()
        table.tell("c", answer(said(table)))
    waits = np.diff(at)

    assert 240 <= waits.min() < 260
    assert 340 < waits.max() <= 360.01


def test_few_rows_say_little_but_noise():
    """Nothing is reported before `min_rows`, unless someone asks."""
    table, _ = pinned(min_rows=100)
    table.reads("c", 99)
    table.passes(3000)
    assert [] == table.reports("c")
    table.step("c", Flush())

    assert 99 == said(table).counts.learnt


def test_the_log_says_for_how_many_rows_a_first_report_waits():
    """Once for each join; not where the first row is enough, nor after the first report."""
    table, host = alone(min_rows=80)
    table.reads("c", 30)
    table.tell("c", joined(asks(table)))
    _, quick = pinned()

    assert ["waiting for a first report: 30 of 80 rows"] == [note.what for note in host.notes]
    assert [] == quick.notes
    table.reads("c", 50)
    table.step("c", Flush())
    rejoined(table)
    assert 1 == len(host.notes)


def test_a_flush_reports_and_keeps():
    """The process is about to end: what it knows is on its way, and on the card."""
    table, _ = pinned()
    table.reads("c", 3)
    effects = table.step("c", Flush())

    assert samples(range(3)) == sent(effects, Report)[0].summary
    assert samples(range(3)) == kept(effects)[CHECKPOINT].report.summary


def test_seq_rises_with_every_report_and_checkpoint():
    """No two things that a life says have one number."""
    table, host = pinned()
    seqs = []
    for _ in range(5):
        table.reads("c", 1)
        effects = table.step("c", Flush())
        seqs += [r.stamp.seq for r in sent(effects, Report)]
        seqs += [kept(effects)[CHECKPOINT].report.stamp.seq]

    assert seqs == sorted(set(seqs))
    assert 10 == len(seqs) == host.node.current.seq


def test_checkpoints_wait_for_news():
    """While a checkpoint would say the same, the card is spared."""
    table, host = pinned()
    table.reads("c", 1)
    table.passes(300)
    before = host.disk[CHECKPOINT].report.stamp.seq
    table.passes(2000)

    assert before == host.disk[CHECKPOINT].report.stamp.seq


def test_an_answer_of_a_parent_that_is_gone_is_not_taken():
    """The root that is there now has not said that it holds anything."""
    table, host = reported(3, top=True)
    rejoined(table, pinned=OTHER, top=True)
    table.tell("c", answer(said(table), pinned=ME, root=ME, durable=9))
    table.passes(15)

    assert (0, 0) == (host.node.current.delivered, host.node.current.durable)
    assert OTHER == said(table).pinned


def test_what_is_durable_does_not_fall():
    """An older answer may come later; only another root begins anew."""
    table, host = reported(3)
    first = said(table)
    table.reads("c", 1)
    table.step("c", Flush())
    second = said(table)
    seen = []
    for message, root in ((second, ME), (first, ME), (second, OTHER)):
        durable = message.stamp.seq if root == ME else 0
        table.tell("c", answer(message, root=root, durable=durable))
        seen.append(host.node.current.durable)

    assert [second.stamp.seq, second.stamp.seq, 0] == seen


# -- readings --------------------------------------------------------------------


def test_a_row_with_a_gap_is_withheld_and_counted():
    """The rest of its block is learnt; NaN, infinity and numbers too large to square are not."""
    table, host = pinned()
    rows = np.array([[1.0], [np.nan], [2.0], [np.inf], [1e200]])
    table.step("c", Reading(rows))

    assert Counts(learnt=2, withheld=3) == host.node.current.counts
    assert samples([1, 2]) == host.node.current.summary(table.now("c"))
    assert 5 == host.node.lifetime


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_what_is_too_large_after_scaling_is_withheld(scale):
    """A peer would refuse the sum of their squares: 1e12 is judged in units of the spread."""
    schema = Schema(1, scaling=Scaling((5.0,), (scale,)))
    table = Table(Subspaces(1, oversample=1), schema)
    _, host = alone(table)
    edge = 1e12 * scale
    rows = np.array([[0.99 * edge], [-0.99 * edge], [1.01 * edge], [-1.01 * edge], [5.0]])
    table.step("c", Reading(rows))

    assert Counts(learnt=3, withheld=2) == host.node.current.counts


@pytest.mark.parametrize("shape", [(3, 2), (3, 0), (3,), (1, 1, 1)])
def test_readings_of_another_shape_are_refused(shape):
    """Nothing changes: no count, no number, nothing on its way."""
    table, host = pinned()
    before = host.node.current.counts, host.node.current.seq, host.node.wakes_at
    with pytest.raises(ShapeError, match=r"\(n, 1\)"):
        table.step("c", Reading(np.zeros(shape)))

    assert before == (host.node.current.counts, host.node.current.seq, host.node.wakes_at)


# -- models ----------------------------------------------------------------------


def model(version: int = 1, schema: Schema = REAL, **fields) -> Model:
    rows = np.random.default_rng(9).standard_normal((50, schema.width)) * (5, 1, 0.1)
    reported = {
        "group": GROUP,
        "version": version,
        "schema": schema.canonical,
        "fingerprint": schema.fingerprint,
        "summary": Subspace.of(rows, schema, rank=2),
        "limits": None,
        "counts": Counts(50),
        "nodes": 1,
        "staleness": (1.0, 1.0, 1.0),
        "created": EPOCH,
        "expires": EPOCH + 600,
    }
    return Model(**{**reported, **fields})


def scoring(*models: Model, **settings) -> tuple[Table, Host]:
    """A client of real rows that has joined, and received models."""
    table = Table(Subspaces(2, oversample=1), REAL)
    _, host = alone(table, **settings)
    table.tell("c", joined(asks(table), schema=REAL.canonical))
    for each in models:
        table.tell("c", each)
    return table, host


ROWS = np.random.default_rng(3).standard_normal((40, 3)) * (5, 1, 0.1) + 2


def test_a_model_never_flows_into_a_report():
    """With and without a model, a report says the same, but for version, scores and alarms."""
    reported = []
    for models in ([], [model(7)]):
        table, _ = scoring(*models)
        for i in range(8):
            table.step("c", Reading(ROWS[5 * i : 5 * i + 5]))
        table.step("c", Flush())
        reported.append(said(table))
    without, with_model = reported

    assert (0, 7) == (without.version, with_model.version)
    assert without.scores is None
    stamp = without.stamp
    assert stamp[:2] + stamp[3:] == with_model.stamp[:2] + with_model.stamp[3:]
    waits = without.alarm_status
    same = replace(with_model, version=0, scores=None, stamp=stamp, alarm_status=waits)
    assert payload(without, Subspaces(2)) == payload(same, Subspaces(2))


def test_readings_are_scored_before_they_are_learnt():
    """By the model, which had not seen them; every row of the block by the same."""
    table, _ = scoring(model(7))
    effects = table.step("c", Reading(ROWS))
    (scored,) = [effect for effect in effects if isinstance(effect, Scored)]
    shown = model(7).summary.truncated(2)

    assert 7 == scored.version
    np.testing.assert_array_equal(spe(ROWS, shown), scored.scores.spe)
    np.testing.assert_array_equal(hotelling(ROWS, shown), scored.scores.t2)


@pytest.mark.parametrize(("age", "expired"), [(0, False), (600, False), (601, True)])
def test_a_model_that_has_expired_says_so(age, expired):
    """It still scores: whoever reads the scores decides what they are worth."""
    table, _ = scoring(model(7))
    table.time = float(age)
    effects = table.step("c", Reading(ROWS))

    assert [expired] == [effect.expired for effect in effects if isinstance(effect, Scored)]


def test_what_is_withheld_is_not_scored():
    """A row with a gap has no distance from anything."""
    table, _ = scoring(model(7))
    effects = table.step("c", Reading(np.vstack([ROWS[:2], [np.nan, 0, 0]])))

    assert [(2,)] == [e.scores.spe.shape for e in effects if isinstance(e, Scored)]


@pytest.mark.parametrize("version", [3, 7])
def test_only_a_higher_version_is_taken(version):
    """A model that comes late, or twice, is not news."""
    table, host = scoring(model(7))
    effects = table.step("c", Tick())
    table.tell("c", model(version, created=0.0))

    assert [] == effects
    assert EPOCH == host.node.model.created


@pytest.mark.parametrize(
    ("version", "taken"),
    [(BELIEVED, True), (BELIEVED + 1, True), (HIGHEST, True), (HIGHEST + 1, False)],
)
def test_how_high_a_version_may_be(version, taken):
    """Above what is believed of a peer: a root that was told that much goes on above it."""
    _, host = scoring(model(7), model(version))

    assert (version if taken else 7) == host.node.model.version


def test_a_model_of_another_fingerprint_is_not_taken():
    """It asks to join instead: the fleet may have settled on a scaling."""
    table, host = scoring(model(7))
    other = replace(REAL, scaling=Scaling((0.0,) * 3, (1.0,) * 3))
    joins = len(table.messages("c", Join))
    table.tell("c", model(9, other))
    table.passes(PATIENCE)

    assert 7 == host.node.model.version
    assert joins + 1 == len(table.messages("c", Join))


def test_a_model_of_another_group_is_ignored():
    """Noted, and nothing else."""
    table, host = scoring()
    table.tell("c", model(9, group="hall"))

    assert host.node.model is None
    assert ["ignored"] == [note.what for note in host.notes]


def test_a_model_survives_a_restart():
    """It is scored with from the first reading on; a life's end does not touch it."""
    table, _ = scoring(model(7))
    table.restarts("c")
    effects = table.step("c", Reading(ROWS))

    assert [7] == [effect.version for effect in effects if isinstance(effect, Scored)]


def test_it_reports_early_when_what_it_shows_turns():
    """Not before `min_turned_rows`, and long before the interval is over."""
    rng = np.random.default_rng(0)
    table, host = scoring(report_every_s=1e6)
    table.step("c", Reading(rng.standard_normal((200, 3)) * (9, 3, 0.1)))
    table.step("c", Flush())
    table.tell("c", answer(said(table)))
    turned = rng.standard_normal((1000, 3)) * (0.1, 3, 90)
    reported = []
    for row in turned:
        table.time += 0.01
        reported += sent(table.step("c", Reading(row[None])), Report)

    assert [264] == [r.counts.learnt for r in reported]
    assert host.node.wakes_at < np.inf


def test_it_waits_while_nothing_turns():
    """More of the same is said at the usual time."""
    rng = np.random.default_rng(0)
    table, _ = scoring(report_every_s=1e6)
    table.step("c", Reading(rng.standard_normal((200, 3)) * (9, 3, 0.1)))
    table.step("c", Flush())
    table.tell("c", answer(said(table)))
    more = sent(table.step("c", Reading(rng.standard_normal((1000, 3)) * (9, 3, 0.1))), Report)

    assert [] == more
