"""A history that an operator gives a root counts as its rows would, once, until it is forgotten."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from submerge.aggregator.group import GroupPlan
from submerge.errors import UsageError
from submerge.features import RandomFourier
from submerge.history.fit import Fitted, fit
from submerge.history.recording import Recorded
from submerge.history.settings import FitSettings
from submerge.protocol.history import History
from submerge.protocol.machine import Flush, ForgetHistory, PushHistory, Reading
from submerge.protocol.settings import AlarmSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel, Schema
from submerge_aggregator.questions.histories import learnt
from support.nodes import EPOCH, GROUP, Host, Table

NAMES = tuple("abcdef")
MINUTE = 60.0
DAYS = 4
ROWS = DAYS * 1440
SUMMARIES = Subspaces(2, rank_max=4)
MIX = np.random.default_rng(5).normal(size=(2, len(NAMES)))


def rows(n: int, seed: int = 1) -> np.ndarray:
    """Rows of a machine without a fault."""
    rng = np.random.default_rng(seed)
    return 20 + rng.normal(size=(n, 2)) @ MIX + 0.3 * rng.normal(size=(n, len(NAMES)))


def recorded(n: int, *, seed: int, file: str, last: float) -> Recorded:
    times = last - MINUTE * np.arange(n - 1, -1, -1.0)
    return Recorded("old", rows(n, seed), times, file, 0)


def fitted(*parts: Recorded) -> Fitted:
    return fit(lambda: parts, NAMES, FitSettings(rank=2, rank_max=4))


def history_of(done: Fitted, **facts: float | str) -> History:
    return replace(History(done.model, done.scatter, done.sketches, done.chunks), **facts)


BEFORE = EPOCH - 86400.0
FIRST = recorded(ROWS, seed=1, file="march.csv", last=BEFORE - DAYS * 86400.0)
SECOND = recorded(ROWS, seed=2, file="april.csv", last=BEFORE)


@pytest.fixture(scope="module")
def march() -> Fitted:
    return fitted(FIRST)


@pytest.fixture(scope="module")
def both() -> Fitted:
    return fitted(FIRST, SECOND)


@pytest.fixture(scope="module")
def april() -> Fitted:
    return fitted(SECOND)


def fleet(schema: Schema, *, settles: bool = False, later: int = 0, **plan: object) -> Table:
    """A root, and a client whose alarms may come once a week; it begins some minutes later."""
    table = Table(SUMMARIES, schema)
    table.passes(later * MINUTE)
    plans = {GROUP: GroupPlan(SUMMARIES, schema, learns_scaling=settles, **plan)}
    table.root("r", plans=plans)
    return table


def with_client(table: Table, **settings: object) -> Table:
    alarms = AlarmSettings(period_s=MINUTE)
    table.client("c", under="r", alarms=alarms, **settings)
    return table


def reads(table: Table, block: np.ndarray) -> None:
    """Let the client read, and all report."""
    table.step("c", Reading(block))
    table.passes(MINUTE * len(block))
    table.step("c", Flush())
    table.run()


def pushed(table: Table, history: History, **more: bool) -> list[str]:
    """Push it; return what notes say."""
    before = len(table.hosts["r"].notes)
    table.step("r", PushHistory(GROUP, history, **more))
    table.run()
    return [note.what for note in table.hosts["r"].notes[before:]]


def objection(table: Table, history: History, **more: bool) -> str:
    """Return why the root does not take it."""
    host = table.hosts["r"]
    with pytest.raises(UsageError) as caught:
        host.node.check_history(PushHistory(GROUP, history, **more), table.now("r"))
    return str(caught.value)


def whole(host: Host, table: Table) -> tuple[bytes, ...]:
    """What follows from all that a root holds, without versions and times."""
    table.passes(10 * MINUTE)
    model = host.model
    assert model.summary is not None
    return (
        b"".join(part.basis.tobytes() + part.sigma.tobytes() for part in model.summary.parts),
        repr((model.counts, model.limits, model.rank, model.widened)).encode(),
        b"" if model.maxima is None else model.maxima.packed,
    )


def test_a_root_without_nodes_has_the_model_of_its_history(march):
    """Counts, limits by held-out rows, directions and rank."""
    table = fleet(march.folds.schema)
    assert ["history taken"] == pushed(table, history_of(march))
    table.passes(MINUTE)
    model = table.hosts["r"].model

    assert march.model.counts == model.counts
    assert repr(march.model.limits) == repr(model.limits)
    assert march.sketches.maxima.packed == model.maxima.packed
    np.testing.assert_allclose(
        model.summary.parts[0].sigma, march.model.summary.parts[0].sigma, rtol=1e-6
    )


def test_it_counts_once_whatever_is_pushed_again(march, april, both):
    """The same; a part of it; more than it, which takes its place; and what shares a part."""
    table = fleet(march.folds.schema)
    pushed(table, history_of(march))
    assert ["history refused"] == pushed(table, history_of(march))
    assert "nothing new" in objection(table, history_of(march))

    schema = march.folds.schema
    all_of_it = history_of(both)
    # The other fits have scalings of their own; what is counted is what matters here.
    all_of_it = replace(all_of_it, model=replace_schema(all_of_it, schema), summary=march.scatter)
    assert ["history taken"] == pushed(table, all_of_it)
    assert [all_of_it.name] == list(table.hosts["r"].node.histories(GROUP))
    assert "nothing new" in objection(table, history_of(march))

    some = replace(all_of_it, chunks=tuple(c for c in (*march.chunks, other_chunk(april))))
    assert "1 of its 2 chunks" in objection(table, some)
    assert "march.csv" in objection(table, some)


def test_of_one_fleet_the_latest_model_counts(march):
    """With what it was given itself; an earlier one, or the same, is nothing new."""
    table = fleet(march.folds.schema)
    early, late = (
        history_of(march, origin="f 1", model=replace(march.model, version=version))
        for version in (5, 6)
    )
    assert ["history taken"] == pushed(table, early)
    assert "nothing new" in objection(table, early)
    assert ["history taken"] == pushed(table, late)
    assert [late.name] == list(table.hosts["r"].node.histories(GROUP))
    assert f"history {late.name} is this model of that fleet, or later" in objection(table, early)
    other = replace(late, origin="g 1")
    assert "forget that one first" in objection(table, other)
    table.passes(MINUTE)
    assert march.model.counts.learnt == table.hosts["r"].model.counts.learnt


def test_rows_without_keys_are_refused(march):
    """They could count again and again."""
    table = fleet(march.folds.schema)

    assert "expected keys of its rows" in objection(table, history_of(march, chunks=()))


def test_a_fleet_that_holds_files_has_learnt_more_than_they_are(march):
    """That all of its chunks are here does not make it nothing new: the rest would be lost."""
    table = fleet(march.folds.schema)
    pushed(table, history_of(march))
    line = objection(table, history_of(march, origin="f 1"))

    assert "1 of its 2 chunks" in line
    assert "forget that one first" in line


def other_chunk(done: Fitted):
    """A chunk that no history holds."""
    return replace(done.chunks[0], key=bytes(32), file="may.csv")


def replace_schema(history: History, schema: Schema):
    return replace(history.model, schema=schema.canonical, fingerprint=schema.fingerprint)


def test_forgetting_it_leaves_the_bytes_of_a_fleet_that_never_had_it(march):
    """Killed and started again in between. And it may be pushed again."""
    schema = march.folds.schema
    with_it, without = (with_client(fleet(schema)) for _ in range(2))
    name = history_of(march).name
    for block in np.split(rows(600, seed=9), 6):
        reads(with_it, block)
        reads(without, block)
    pushed(with_it, history_of(march))
    with_it.restarts("r")
    without.restarts("r")
    with_it.run()
    held = whole(with_it.hosts["r"], with_it)
    assert [name] == list(with_it.hosts["r"].node.histories(GROUP))
    with_it.step("r", ForgetHistory(GROUP, name))
    for table in (with_it, without):
        table.passes(10 * MINUTE)
    assert held != whole(without.hosts["r"], without) == whole(with_it.hosts["r"], with_it)

    assert ["history taken"] == pushed(with_it, history_of(march))
    with_it.restarts("r")
    with_it.passes(10 * MINUTE)
    assert march.model.counts.learnt < with_it.hosts["r"].model.counts.learnt


def test_what_clients_read_beside_it_stays_theirs_when_it_is_forgotten(march):
    """Their limits come from scores by the model of that time; directions and counts do not."""
    schema = march.folds.schema
    with_it, without = (with_client(fleet(schema)) for _ in range(2))
    pushed(with_it, history_of(march))
    for block in np.split(rows(600, seed=9), 6):
        reads(with_it, block)
        reads(without, block)
    with_it.step("r", ForgetHistory(GROUP, history_of(march).name))
    for table in (with_it, without):
        table.passes(10 * MINUTE)
    ours, theirs = (table.hosts["r"].model for table in (with_it, without))

    assert theirs.counts == ours.counts
    assert theirs.summary.basis.tobytes() == ours.summary.basis.tobytes()
    assert theirs.summary.sigma.tobytes() == ours.summary.sigma.tobytes()


def test_another_schema_is_refused_line_by_line(march):
    """Names, and a scaling of its own."""
    renamed = replace(march.folds.schema, channels=(*map(Channel, NAMES[:-1]), Channel("g")))
    table = fleet(renamed)
    assert "missing channel: g; extra channel: f" in objection(table, history_of(march))

    scaling = march.folds.schema.scaling
    shifted = replace(march.folds.schema, scaling=replace(scaling, offset=(0.5,) * len(NAMES)))
    assert "scaling: expected the fleet's" in objection(fleet(shifted), history_of(march))


def test_it_settles_a_scaling_that_is_still_open(march):
    """As readings would have; a client that comes then has limits at once."""
    open_schema = replace(march.folds.schema, scaling=None)
    table = fleet(open_schema, settles=True)
    assert ["history taken"] == pushed(table, history_of(march))
    table.passes(MINUTE)

    assert march.folds.schema.fingerprint == table.hosts["r"].model.fingerprint
    table.restarts("r")
    assert march.folds.schema.fingerprint == table.hosts["r"].ledger.fingerprint


def test_one_without_a_scaling_is_refused_where_one_is_learnt(march):
    """It would be in the model only until the group has settled its own."""
    open_schema = replace(march.folds.schema, scaling=None)
    history = history_of(march)
    history = replace(history, model=replace_schema(history, open_schema))

    assert "learns a scaling" in objection(fleet(open_schema, settles=True), history)


def test_it_settles_nothing_that_the_group_does_not_learn(march):
    """A group whose gamma is open, and which is configured without a scaling, gets none."""
    unscaled = replace(march.folds.schema, scaling=None, features=RandomFourier(features=64))
    settled = replace(march.folds.schema, features=unscaled.features.settled_at(0.03))
    history = history_of(march)
    history = replace(history, model=replace_schema(history, settled))

    assert "another schema" in objection(fleet(unscaled), history)


def test_rows_of_a_node_that_reports_are_refused_unless_it_is_said(march):
    """If they are of a time when it was there, or of an unknown time."""
    table = with_client(fleet(march.folds.schema))
    reads(table, rows(60))
    late = replace(march.chunks[0], machine="c", last=EPOCH + 1)
    history = replace(history_of(march), chunks=(late,))
    assert "node c has reported here" in objection(table, history)
    assert ["history taken"] == pushed(table, history, anyway=True)

    table = with_client(fleet(march.folds.schema))
    reads(table, rows(60))
    timeless = replace(late, first=math.nan, last=math.nan)
    assert "node c has reported" in objection(table, replace(history, chunks=(timeless,)))
    early = replace(late, last=EPOCH - 1)
    assert ["history taken"] == pushed(table, replace(history, chunks=(early,)))


def test_a_fleets_own_model_and_a_place_below_the_root_are_refused(march):
    """Both would count readings twice."""
    table = fleet(march.folds.schema)
    own = f"{GROUP} {table.hosts['r'].node.incarnation}"
    assert "this very fleet" in objection(table, history_of(march, origin=own))
    table.aggregator("a")
    table.passes(MINUTE)
    with pytest.raises(UsageError, match="push this one there"):
        table.hosts["a"].node.check_history(PushHistory(GROUP, history_of(march)), table.now("a"))


def saved(table: Table) -> History:
    """The model of a fleet, as it is saved from the root."""
    host = table.hosts["r"]
    origin = f"{GROUP} {host.node.incarnation}"
    return History(host.model, host.ledger.summary(), None, (), origin)


def saved_elsewhere(table: Table) -> History:
    """The model of a fleet of its own, as `submerge model save` has it."""
    held = learnt(table.hosts["r"].node, table.now("r"), GROUP)
    return History(held.model, held.summary, held.sketches, held.chunks, held.origin)


def test_a_fleet_does_not_learn_its_own_rows_from_another_that_learnt_them(march):
    """There and back; and by two ways to a third."""
    one, other, third = (with_client(fleet(march.folds.schema, later=n)) for n in range(3))
    reads(one, rows(600))
    reads(other, rows(60))
    there = saved_elsewhere(one)
    assert ["history taken"] == pushed(other, there)
    other.passes(10 * MINUTE)
    back = saved_elsewhere(other)

    assert "held a model of this very fleet" in objection(one, back)
    assert ["history taken"] == pushed(third, back)
    assert "1 of its 1 chunks" in (line := objection(third, there))
    assert there.origin in line
    third.step("r", ForgetHistory(GROUP, back.name))
    assert ["history taken"] == pushed(third, there)
    assert "forget that one first" in objection(third, back)


def loses_its_root(table: Table) -> None:
    """A root with an empty store takes the place of the root."""
    table.dies("r")
    table.hosts["r"].disk.clear()
    table.passes(MINUTE)
    table.starts("r")


def test_a_fleets_own_model_is_refused_also_after_its_root_was_lost(march):
    """Its nodes have come over with all their rows, live ones and closed ones."""
    table = with_client(fleet(march.folds.schema))
    reads(table, rows(60))
    own = saved(table)
    assert "this very fleet" in objection(table, own)

    loses_its_root(table)
    reads(table, rows(30))
    assert 90 == table.hosts["r"].model.counts.learnt
    assert "node c is older than this model" in objection(table, own)
    table.restarts("c")
    reads(table, rows(10))
    assert "node c is older than this model" in objection(table, own)
    assert ["history taken"] == pushed(table, own, anyway=True)


def test_another_fleets_model_is_no_own_one(march):
    """Older than all nodes here, or of another group, or made while this root was there."""
    table = with_client(fleet(march.folds.schema))
    reads(table, rows(60))
    made = replace(saved(table), origin=f"{GROUP} elsewhere")
    assert ["history taken"] == pushed(table, made)

    loses_its_root(table)
    reads(table, rows(30))
    assert ["history taken"] == pushed(table, replace(made, origin="others elsewhere"))
    early = replace(made, model=replace(made.model, created=BEFORE))
    assert ["history taken"] == pushed(table, early)


def test_it_counts_for_no_more_rows_than_an_operator_says(march):
    """Its weight in the merge; its limits are those of all its rows."""
    table = fleet(march.folds.schema)
    pushed(table, history_of(march, most_rows=100.0))
    table.passes(MINUTE)

    assert 100 == pytest.approx(table.hosts["r"].ledger.summary().weight)
    assert repr(march.model.limits) == repr(table.hosts["r"].model.limits)


def test_a_new_client_has_limits_at_its_first_rows(march):
    """A fault that begins after its tenth row is an alarm within fifty."""
    table = with_client(fleet(march.folds.schema))
    pushed(table, history_of(march))
    table.passes(10 * MINUTE)
    normal, off = rows(10, seed=11), rows(50, seed=12)
    off[:, 2] += 8.0
    for row in np.concatenate((normal, off)):
        table.step("c", Reading(row[None, :]))
        table.passes(MINUTE)
    alarms = table.hosts["c"].node._ingest.alarms

    assert alarms
    assert alarms[0].began <= table.now("c").wall


def test_a_fleets_model_is_as_old_as_it_was_saved_whatever_files_it_holds(march):
    """A history of files in it is faded already; the rest would fade with it."""
    schema = replace(march.folds.schema, half_life=86400.0)
    fleets = replace_schema(history_of(march), schema)
    fleets = replace(fleets, created=EPOCH)
    summary = replace(march.scatter, schema=schema.fingerprint)
    table = fleet(schema)
    pushed(table, history_of(march, origin="f 1", model=fleets, summary=summary))

    assert march.chunks[0].last < EPOCH - DAYS * 86400.0
    assert ROWS == pytest.approx(table.hosts["r"].ledger.summary(EPOCH).weight, rel=1e-3)


def test_a_history_of_an_earlier_schema_makes_room_for_its_rows(march):
    """It counts for nothing; and should that schema come back, no row counts twice."""
    table = fleet(march.folds.schema)
    pushed(table, history_of(march))
    later = replace(march.folds.schema, center="own")
    other = replace(history_of(march), model=replace_schema(history_of(march), later))
    other = replace(other, summary=replace(march.scatter, schema=later.fingerprint))
    table.hosts["r"].node._groups[GROUP].learn_schema(later.canonical, 0.0)

    assert ["history taken"] == pushed(table, other)
    assert [later.fingerprint] == [
        each.model.fingerprint for each in table.hosts["r"].node.histories(GROUP).values()
    ]
    assert "nothing new" in objection(table, other)


@pytest.mark.parametrize("factor", [1e13, 1e150, 1e300])
def test_sums_of_no_rows_are_refused(march, factor):
    """A forged file: the root's model would be unreadable, and its nodes quarantined for it."""
    table = with_client(fleet(march.folds.schema))
    s = march.scatter
    far = replace(s, mean=s.mean + factor)
    wide = replace(s, held=s.scatter * factor, energy=s.energy * factor, channel_energies=None)

    assert "sums of larger ones" in objection(table, history_of(march, summary=far))
    if factor > 1e30:
        assert "sums of larger ones" in objection(table, history_of(march, summary=wide))


@pytest.mark.parametrize("rows", [0.5, 5e-324, math.nan])
def test_it_counts_for_a_row_at_least(march, rows):
    """Of less, nothing is left that could be merged."""
    table = fleet(march.folds.schema)

    assert "a weight of 1 row or more" in objection(table, history_of(march, most_rows=rows))


@pytest.mark.parametrize(
    ("first", "last", "machine", "taken"),
    [
        (0.0, 200.0, "old", False),  # it has grown
        (40.0, 60.0, "old", False),  # a part of it, cut out
        (100.0, 200.0, "old", True),  # what follows
        (-50.0, 0.0, "old", True),
        (0.0, 200.0, "other", True),
        (math.nan, math.nan, "old", True),
    ],
)
def test_rows_of_one_machine_and_time_count_once(march, first, last, machine, taken):
    """A file that has grown has another key."""
    table = fleet(march.folds.schema)
    begun = FIRST.times[0]
    held = replace(march.chunks[0], first=begun, last=begun + 100.0)
    pushed(table, replace(history_of(march), chunks=(held,)))
    chunk = replace(held, key=bytes(32), machine=machine, first=begun + first, last=begun + last)
    # One from long before stands first: not only the first of them is looked at.
    early = replace(held, key=b"e" * 32, first=begun - 900.0, last=begun - 800.0)
    history = replace(history_of(march), chunks=(early, chunk))
    if taken:
        assert ["history taken"] == pushed(table, history)
    else:
        assert "from the same time" in objection(table, history)
        assert ["history taken"] == pushed(table, history, anyway=True)
