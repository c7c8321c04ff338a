"""Records as bytes: a node that was restarted from them goes on as if it had never stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import PeerError, Schema, Subspace, merge
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import StoreIdentity
from submerge.aggregator.operators.quarantine import Cause, QuarantineEntry, Slip
from submerge.aggregator.rows.influence import GroupTime
from submerge.aggregator.rows.ledger import Membership
from submerge.aggregator.rows.pool import Row, Sealed
from submerge.aggregator.upward import Lineage
from submerge.client.incarnation import Checkpoint
from submerge.client.pending_finals import Past
from submerge.pca.own_scatter import KAPPAS, OwnScatter
from submerge.protocol.history import History
from submerge.protocol.machine import Drop, Flush, Forget, PushHistory, Reading, SetQuarantine
from submerge.protocol.messages import Counts, Incarnation, Left, Pin
from submerge.protocol.summaries import KernelSummary, Subspaces
from submerge.stats.moments import Moments
from submerge.stats.stuck import RunLengths
from submerge_proto.files.learnt import packed, unpacked
from submerge_proto.kept import records
from submerge_proto.kept.aggregator import history_from
from submerge_proto.kept.monitor import SCATTER
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import kept_pb2 as pb
from support import golden_learnt, histories
from support.alarm_statuses import desired_states, monitor_of, monitors
from support.edges import positive
from support.nodes import EPOCH, GROUP, Table, new_incarnation
from support.wire import (
    READINGS,
    a_model,
    a_report,
    a_twofold,
    as_kept,
    counts,
    fences,
    incarnations,
    kernel_schema,
    models,
    moments,
    names,
    numbers,
    reals,
    reported,
    reports,
    subspace_of,
    subspaces,
    twofolds,
)
from support.wired import WiredTable

# -- every kind, drawn --------------------------------------------------------------

pins = st.builds(Pin, names, incarnations, st.booleans())
checkpoints = reports().flatmap(
    lambda report: st.builds(
        Checkpoint, st.just(report), st.none() | pins, st.integers(0, report.counts.generated)
    )
)
lefts = st.lists(st.tuples(fences, numbers), max_size=70)
node_sets = st.frozensets(names, max_size=5)


@st.composite
def sealed(draw: Any) -> Sealed:
    """What is folded together: float32 from the wire, or float64; one subspace, or two."""
    summary = draw(st.none() | subspaces(most_weight=1e100) | twofolds(width=5, most_weight=1e100))
    if summary is not None and draw(st.booleans()):
        summary = each_of(summary, widened)
    return Sealed(summary, draw(st.none() | moments()), draw(counts), draw(reals))


def widened(subspace: Subspace) -> Subspace:
    """The same in float64, as it comes out of a merge."""
    if not subspace.rank:
        return subspace
    return replace(subspace, basis=np.linalg.qr(subspace.basis.astype(np.float64))[0])


def each_of(summary: Subspace | KernelSummary, change: Callable[[Subspace], Subspace]) -> Any:
    """Change a subspace, or both of two."""
    if isinstance(summary, KernelSummary):
        return KernelSummary(change(summary.features), change(summary.linear))
    return change(summary)


@st.composite
def lines(draw: Any) -> Lineage:
    """A line with its past."""
    past = tuple(Left(*left) for left in draw(lefts))
    return Lineage(draw(numbers), draw(fences), past, draw(st.just(b"") | fences))


RECORDS: dict[str, st.SearchStrategy[Any]] = {
    "checkpoint": checkpoints,
    "past": st.builds(
        Past,
        st.lists(checkpoints, max_size=2).map(tuple),
        st.none() | incarnations,
        numbers,
        numbers,
    ),
    "model": models(),
    "lookout": monitors(models(known=True)),
    "wishes": st.lists(desired_states, max_size=9).map(
        lambda some: {desired.node: desired for desired in some}
    ),
    "heard": numbers,
    "store": st.builds(StoreIdentity, incarnations, st.none() | pins),
    "line": lines(),
    "row": st.builds(Row, reports(), st.binary(min_size=16, max_size=16), reals),
    "sealed": sealed(),
    "member": st.builds(
        Membership,
        st.dictionaries(incarnations, numbers, max_size=64),
        numbers,
        st.dictionaries(incarnations, fences, max_size=8),
    ),
    "banned": node_sets,
    "quarantined": st.dictionaries(
        names, st.builds(QuarantineEntry, st.sampled_from(get_args(Cause)), reals), max_size=5
    ),
    "suspected": st.dictionaries(
        names, st.builds(Slip, reals, st.binary(min_size=16, max_size=16)), max_size=5
    ),
    "schema": st.integers(1, 9).map(lambda dim: Schema.anonymous(dim).canonical) | st.just(b""),
    "earlier": st.integers(1, 9).map(lambda dim: Schema.anonymous(dim).canonical),
    "asked": st.integers(1, 9).map(lambda dim: Schema.anonymous(dim).canonical) | st.just(b""),
    "job": st.binary(max_size=300),
    "version": st.integers(0, 2**63 - 1),
    "reference": reals,
    "first": positive,
    "elapsed": st.builds(GroupTime, positive, reals),
    "history": st.builds(
        history_from,
        st.sampled_from((golden_learnt.from_files(), golden_learnt.of_a_fleet())),
        most_rows=st.just(np.inf) | positive.filter(bool),
        pushed=reals,
    ),
}


def key_of(kind: str, record: Any) -> tuple[str, ...]:
    """Return a key that a record of this kind may have."""
    if isinstance(record, History):
        return kind, GROUP, record.name
    return records.row_key(record) if isinstance(record, Row) else (kind, GROUP)


@given(st.sampled_from(sorted(RECORDS)).flatmap(lambda k: st.tuples(st.just(k), RECORDS[k])))
def test_what_is_kept_comes_back_bit_for_bit(drawn):
    """Rows with whose software sent them, sums of closed lives in float64, and all the rest."""
    kind, record = drawn
    key = key_of(kind, record)
    data = records.pack(key, record)

    assert reported(as_kept(record)) == reported(records.unpack(key, data))
    assert data == records.pack(key, records.unpack(key, data))


@given(sealed().filter(lambda record: record.summary is not None), st.integers(0, 2**16))
@settings(max_examples=30)
def test_what_is_folded_once_more_is_folded_alike(record, seed):
    """A restart between two folds changes no byte: the columns keep their width, too."""
    key = ("sealed", GROUP, "press-3", "ab")
    back = records.unpack(key, records.pack(key, record))

    def folded(old: Subspace) -> Subspace:
        X = np.random.default_rng(seed).standard_normal((30, old.dim))
        new = Subspace.of(X, Schema.anonymous(old.dim), rank=3)
        new = replace(new, basis=new.basis.astype(np.float32), schema=old.schema)
        return merge(old, new, rank=3)

    straight, restarted = (each_of(each.summary, folded) for each in (record, back))
    assert reported(straight) == reported(restarted)


# -- every kind, by nodes at work -----------------------------------------------------


def incarnations(table: Table) -> None:
    """All that nodes can meet with: crashes, copies, seals, operators, a scaling to settle."""
    rng = np.random.default_rng(7)

    def reads(label: str, n: int = 40) -> None:
        table.step(label, Reading(rng.standard_normal((n, 5)) * 0.7 ** np.arange(5)))

    table.root("r", seal_after_s=600.0)
    table.aggregator("a", under="r", seal_after_s=600.0)
    for label, under in (("c", "a"), ("d", "a"), ("e", "r")):
        table.client(label, under=under)
    for _ in range(4):
        for label in "cde":
            reads(label)
            table.step(label, Flush())
        table.passes(400)
    table.restarts("a")
    for _ in range(3):  # a new life, and the last one's final: sealed, and folded
        reads("c")
        table.passes(300)
        table.restarts("c")
        reads("c")
        table.passes(900)
        table.restarts("a")
    table.hosts["d"].cut = True  # finals that wait
    reads("d")
    table.passes(300)
    table.restarts("d")
    reads("d")
    table.passes(300)
    table.back("d")
    table.passes(900)
    table.restarts("r")
    table.step("r", SetQuarantine(GROUP, "e"))
    table.step("a", Drop(GROUP, "d", None))
    table.step("a", Forget(GROUP, "d", ban=True))
    table.passes(3600.0 * 36)  # more than 32 half-lives: the reference moves
    reads("c")
    reads("e")
    table.passes(900)


@pytest.fixture(scope="module", params=["linear", "kernel"])
def played(request: pytest.FixtureRequest) -> tuple[Table, WiredTable]:
    """The same lives, on a table where values are handed over, and on one of bytes."""
    schema = Schema(5, half_life=3600.0)
    if request.param == "kernel":
        schema = replace(schema, features=kernel_schema(5, 16).features)
    straight = Table(Subspaces(2, oversample=1), schema)
    wired = WiredTable(Subspaces(2, oversample=1), schema)
    incarnations(straight)
    incarnations(wired)
    return straight, wired


@pytest.mark.slow
def test_bytes_change_nothing(played):
    """Through wire and disk, with every restart, the root comes to the same bytes."""
    straight, wired = ([table.hosts[label] for label in "ra"] for table in played)
    kind = played[0].summaries

    for one, other in zip(straight, wired, strict=True):
        assert reported(one.ledger.summary()) == reported(other.ledger.summary())
        assert kind.packed(one.ledger.summary()) == kind.packed(other.ledger.summary())
        assert one.ledger.counts() == other.ledger.counts()
        assert sorted(one.ledger.rows) == sorted(other.ledger.rows)
    assert reported(straight[0].model) == reported(wired[0].model)


@pytest.mark.slow
def test_every_record_that_nodes_keep_can_be_kept(played):
    """And no kind of record is packed that no node keeps."""
    seen = played[1].seen
    moments_only = WiredTable(Subspaces(2), Schema.anonymous(3))
    plan = GroupPlan(moments_only.summaries, Schema.anonymous(3), learns_scaling=True)
    moments_only.root("r", plans={GROUP: plan})
    moments_only.client("c", under="r", learns_scaling=True)
    rng = np.random.default_rng(0)
    for _ in range(12):
        moments_only.step("c", Reading(rng.standard_normal((120, 3))))
        moments_only.passes(300)
        moments_only.restarts("c")
    open_gamma = WiredTable(moments_only.summaries, kernel_schema(8, 16, None))
    open_gamma.root("r", scaling_rows=600)
    open_gamma.client("c", under="r")
    for i in range(12):
        open_gamma.step("c", Reading(rng.standard_normal((120, 8))))
        open_gamma.passes(300)
        if i % 2:
            open_gamma.restarts("c")
    day = histories.fitted(histories.recorded(1))
    of_files = WiredTable(moments_only.summaries, day.folds.schema)
    of_files.root("r")
    given = history_from(unpacked(histories.file_of(day)).learnt, most_rows=100.0)
    of_files.step("r", PushHistory(GROUP, given))
    seen = seen + moments_only.seen + open_gamma.seen + of_files.seen

    for key, record in seen:
        assert reported(as_kept(record)) == reported(records.unpack(key, records.pack(key, record)))
    # A root's part in jobs keeps its own: tests/aggregator/jobs has them in a store.
    assert set(RECORDS) == {key[0] for key, _ in seen} | {"job"}
    surveyed = {type(record) for _, record in seen}
    assert {Checkpoint, Past, StoreIdentity, Lineage, Row, Sealed, Membership} <= surveyed
    rows = [record.report for _, record in seen if isinstance(record, Row)]
    assert any(row.moments is not None for row in rows)
    assert any(row.moments is not None and row.moments.sample is not None for row in rows)
    assert any(isinstance(row.summary, KernelSummary) for row in rows)
    sums = [record for _, record in seen if isinstance(record, Sealed)]
    assert any(each.moments is not None and each.moments.sample is not None for each in sums)
    assert any(row.scores is not None for row in rows)
    assert any(row.census is not None and row.fence for row in rows)
    assert any(record.finals for _, record in seen if isinstance(record, Past))
    assert any(record.fences for _, record in seen if isinstance(record, Membership))
    assert any(record.closed for _, record in seen if isinstance(record, Membership))


# -- what no node has kept -----------------------------------------------------------

ROW_KEY = ("row", GROUP, "press-3", str(new_incarnation(1).created_ms), "1")


def _row(**fields: Any) -> Callable[[], Any]:
    def make() -> pb.Row:
        row = Row(a_report(**fields), b"d" * 16, EPOCH)
        return pb.Row.FromString(records.pack(ROW_KEY, row))

    return make


def _changed(make: Callable[[], Any], change: Callable[[Any], Any]) -> Callable[[], bytes]:
    def data() -> bytes:
        message = make()
        change(message)
        return bytes(message.SerializeToString())

    return data


def _sealed(**fields: Any) -> Callable[[], Any]:
    key = ("sealed", GROUP, "press-3", "ab")
    surveyed = {"summary": subspace_of(6, [5.0, 4.0, 3.0]), "moments": None, **fields}
    return lambda: pb.Sealed.FromString(
        records.pack(key, Sealed(**surveyed, counts=Counts(9), as_of=EPOCH))
    )


HISTORY = history_from(golden_learnt.from_files(), most_rows=100.0, pushed=EPOCH)


def _history(**fields: Any) -> Callable[[], bytes]:
    return lambda: pb.History(
        **{"learnt": packed(golden_learnt.from_files()), "pushed_s": EPOCH, **fields}
    ).SerializeToString()


def _checkpoint() -> pb.Checkpoint:
    checkpoint = Checkpoint(a_report(), None, 9)
    return pb.Checkpoint.FromString(records.pack(("checkpoint",), checkpoint))


def _monitor() -> pb.NodeMonitor:
    return pb.NodeMonitor.FromString(records.pack(("lookout",), monitor_of(a_model())))


def _sets(place: str, value: Any) -> Callable[[Any], None]:
    """Return what puts a value into a field, `a.b.0.c`; numbers in a list as float64."""

    def lie(message: Any) -> None:
        *path, last = place.split(".")
        for name in path:
            message = message[int(name)] if name.isdigit() else getattr(message, name)
        as_bytes = isinstance(value, list)
        setattr(message, last, np.array(value, "<f8").tobytes() if as_bytes else value)

    return lie


def _knows(what: str, name: str, values: Any) -> Callable[[Any], None]:
    """Return what changes a number that is known of each channel."""

    def lie(message: Any) -> None:
        (column,) = (each for each in getattr(message, what) if each.name == name)
        _sets("values", values)(column)

    return lie


NAN, INF = float("nan"), float("inf")

LOOKOUTS: dict[str, Callable[[Any], None]] = {
    "of no schema": _sets("fingerprint", b""),
    "with a model of another schema": _sets("fingerprint", b"f" * 32),
    "with a model that knows nothing": lambda m: m.reference.ClearField("subspace"),
    "with a model of another version": _sets("reference.header.version", 2),
    "with a mean that has no model": lambda m: m.ClearField("reference"),
    "with a mean of nothing": _sets("own.rows", []),
    "with a mean of half a number": _sets("own.rows", b"\0" * 12),
    "with a mean that is none": _sets("own.rows", [1.0] * 5 + [NAN]),
    "with features that are none": _sets("own.features", [INF]),
    "with means of two widths": _sets("own.rows", [1.0]),
    "with means of features and of none": _sets("held.features", [1.0]),
    "with a mean that weighs no number": _sets("own.weight", NAN),
    "with half of a feature": _sets("held.features", b"\0" * 4),
    "with a mean of no time": _sets("held.span_s", NAN),
    "with an alarm of no name": _sets("detector.alarms.0.node", "a/b"),
    "with too many alarms": lambda m: m.detector.alarms.extend([m.detector.alarms[0]] * 8),
    "that held for no time": _sets("detector.held_s", NAN),
    "with a limit of no kind": _sets("detector.frozen.0.of", "sp"),
    "with a limit that is none": _sets("detector.frozen.0.value", INF),
    "with a limit of a later kind": _sets("detector.frozen.0.of", "later"),
    "that spares what is no kind": _sets("detector.hours.spared.0.of", ""),
    "that spares for no number": _sets("detector.hours.spared.0.value", NAN),
    "with half of the blame": _sets("detector.blame", b"\0" * 4),
    "with blame that is none": _sets("detector.blame", [NAN]),
    "with blame beyond numbers": _sets("detector.blame", [INF]),
    "with squares of one channel": _sets("residual_scale.squares", [1.0]),
    "with a held mean of one channel": _sets("held.rows", [1.0]),
    "with peaks of another form": _sets("detector.hours.windows.0.before", b"\xff" * 3),
    "with peaks of no kind": _sets("detector.hours.windows.0.of", "peaks"),
    "with peaks that are none": _sets("detector.hours.windows.0.before", b"\0\x03\0\x01"),
    "with peaks half there": _sets("detector.hours.windows.0.filling", b""),
    "with peaks cut short": _sets("detector.hours.windows.0.filling", b"\0"),
    "that watched for no time": _sets("detector.hours.watched_s", NAN),
    "that was allowed no number": _sets("detector.hours.allowed", INF),
    "with a wish of no name": _sets("desired.node", ""),
    "with habits of nothing": _sets("habits.0.values", b""),
    "with repeats of half a number": _knows("run_lengths", "last", b"\0" * 12),
    "with repeats of two widths": _knows("run_lengths", "run", [1.0]),
    "that repeats without bounds": _knows("run_lengths", "last", [1.0] * 5 + [INF]),
    "that repeats for no number": _knows("run_lengths", "run", [1.0] * 5 + [NAN]),
    "with half of a count": _knows("run_lengths", "run", b"\0" * 4),
    "with counts of seven channels": _knows("run_lengths", "run", [1.0] * 7),
    "with habits of two widths": _knows("habits", "stuck", [1.0]),
    "with a weight that is none": _knows("habits", "weight", [1.0] * 5 + [NAN]),
    "with a flag beyond numbers": _knows("habits", "stuck", [1.0] * 5 + [INF]),
    "with squares of half a number": _sets("residual_scale.squares", b"\0"),
    "with squares beyond numbers": _sets("residual_scale.squares", [1.0] * 5 + [INF]),
    "with squares that are none": _sets("residual_scale.squares", [1.0] * 5 + [NAN]),
    "with squares of no weight": _sets("residual_scale.weight", [1.0]),
    "with weights that are none": _sets("residual_scale.weight", [1.0] * 5 + [NAN]),
    "with squares of no time": _sets("residual_scale.span_s", NAN),
}

LIES: dict[str, tuple[tuple[str, ...], Callable[[], bytes]]] = {
    "a row of no time": (ROW_KEY, _changed(_row(), lambda m: setattr(m, "as_of_s", NAN))),
    "a row of another version": (
        ROW_KEY,
        _changed(_row(), lambda m: setattr(m.report.header, "version", 2)),
    ),
    "a row in another's place": (
        (*ROW_KEY[:2], "press-4", *ROW_KEY[3:]),
        lambda: _row()().SerializeToString(),
    ),
    "a row that is none": (ROW_KEY, lambda: b"\xff\xff\xff"),
    "a row with a name in no letters": (
        ROW_KEY,
        lambda: _row()().SerializeToString().replace(b"press-3", b"press\xff\xff"),
    ),
    "a checkpoint of another version": (
        ("checkpoint",),
        _changed(_checkpoint, lambda m: setattr(m.report.header, "version", 2)),
    ),
    "a past of another version": (
        ("past",),
        lambda: pb.Past(finals=[pb.Checkpoint()]).SerializeToString(),
    ),
    "a past cut short": (("past",), lambda: b"\x0a\xff"),
    "a store that is none": (("store",), lambda: b"\xff\xff"),
    "a past fence too short": (
        ("line", GROUP),
        lambda: pb.Lineage(past=[wire.Left(fence=b"f")]).SerializeToString(),
    ),
    "a fence too short": (("line", GROUP), lambda: pb.Lineage(fence=b"f").SerializeToString()),
    "a member's fence too short": (
        ("member", GROUP, "c"),
        lambda: pb.Membership(fences=[pb.Membership.Fence(fence=b"f")]).SerializeToString(),
    ),
    "a member's fence too long": (
        ("member", GROUP, "c"),
        lambda: pb.Membership(fences=[pb.Membership.Fence(fence=b"f" * 17)]).SerializeToString(),
    ),
    "a member cut short": (("member", GROUP, "c"), lambda: b"\x0a\x05"),
    "a node in no letters": (("banned", GROUP), lambda: b"\x0a\x02\xff\xff"),
    "set apart, in no letters": (("quarantined", GROUP), lambda: b"\x0a\x02\xff\xff"),
    "set apart for nothing": (
        ("quarantined", GROUP),
        lambda: pb.Quarantined(nodes=[pb.Quarantined.Node(name="c")]).SerializeToString(),
    ),
    "set apart at no time": (
        ("quarantined", GROUP),
        lambda: pb.Quarantined(
            nodes=[pb.Quarantined.Node(name="c", cause="CAUSE_SHRUNK", since_s=NAN)]
        ).SerializeToString(),
    ),
    "suspected, and cut short": (("suspected", GROUP), lambda: b"\x0a\x05c"),
    "suspected at no time": (
        ("suspected", GROUP),
        lambda: pb.QuarantineSlips(
            nodes=[pb.QuarantineSlips.Node(name="c", at_s=NAN)]
        ).SerializeToString(),
    ),
    "a schema that is none": (("schema", GROUP), lambda: pb.Text(value=b"{}").SerializeToString()),
    "half a version": (("version", GROUP), lambda: b"\x08"),
    "a reference of no time": (
        ("reference", GROUP),
        lambda: pb.Real(value=NAN).SerializeToString(),
    ),
    "a model of no version": (("model",), lambda: b""),
    "a history in another's place": (("history", GROUP, "0" * 12), _history()),
    "a history of no place": (("history", GROUP), _history()),
    "a history of nothing": (("history", GROUP, HISTORY.name), _history(learnt=b"")),
    "a history that is damaged": (
        ("history", GROUP, HISTORY.name),
        _history(learnt=packed(golden_learnt.from_files())[:-1]),
    ),
    "a history of a model alone": (
        ("history", GROUP, HISTORY.name),
        _history(learnt=packed(golden_learnt.below_a_root())),
    ),
    "a history for fewer rows than none": (
        ("history", GROUP, HISTORY.name),
        _history(most_rows=-1.0),
    ),
    "a history for no number of rows": (("history", GROUP, HISTORY.name), _history(most_rows=NAN)),
    "a history of no time": (("history", GROUP, HISTORY.name), _history(pushed_s=INF)),
    "a history cut short": (("history", GROUP, HISTORY.name), lambda: _history()()[:-1]),
    "sums of no time": (
        ("sealed", GROUP, "c", "ab"),
        _changed(_sealed(), lambda m: setattr(m, "as_of_s", NAN)),
    ),
    "sums that are not numbers": (
        ("sealed", GROUP, "c", "ab"),
        _changed(_sealed(), lambda m: setattr(m.subspace, "energy", NAN)),
    ),
    "sums of a crooked basis": (
        ("sealed", GROUP, "c", "ab"),
        _changed(_sealed(), lambda m: setattr(m.subspace, "columns", b"\0" * 72)),
    ),
    "sums of nothing known": (
        ("sealed", GROUP, "c", "ab"),
        _changed(_sealed(), lambda m: setattr(m, "fingerprint", b"")),
    ),
    "sums of readings, and no features": (
        ("sealed", GROUP, "c", "ab"),
        _changed(_sealed(summary=a_twofold()), lambda m: m.ClearField("subspace")),
    ),
    "sums of readings that weigh more": (
        ("sealed", GROUP, "c", "ab"),
        _changed(_sealed(summary=a_twofold()), lambda m: setattr(m.linear, "weight", 101.0)),
    ),
    "sums of readings that are not numbers": (
        ("sealed", GROUP, "c", "ab"),
        _changed(_sealed(summary=a_twofold()), lambda m: setattr(m.linear, "energy", NAN)),
    ),
    "a wish of no name": (
        ("wishes", GROUP),
        lambda: pb.DesiredStates(
            desired_states=[wire.DesiredState(node="a/b")]
        ).SerializeToString(),
    ),
    "a wish beyond everything": (
        ("wishes", GROUP),
        lambda: pb.DesiredStates(
            desired_states=[wire.DesiredState(node="c", number=2**62 + 1)]
        ).SerializeToString(),
    ),
    "more wishes than are kept": (
        ("wishes", GROUP),
        lambda: pb.DesiredStates(
            desired_states=[wire.DesiredState(node="c")] * 4097
        ).SerializeToString(),
    ),
    "half a number": (("heard", GROUP), lambda: b"\x08\xff"),
    **{
        f"a lookout {what}": (("lookout",), _changed(_monitor, lie))
        for what, lie in LOOKOUTS.items()
    },
    "a record of no kind": (("rows", GROUP), lambda: b""),
    "a record without a name": ((), lambda: b""),
}


@pytest.mark.parametrize("what", LIES)
def test_a_damaged_record_is_refused(what):
    """What is cut short, of another shape or version, or no number is one line, not a trace."""
    key, data = LIES[what]
    with pytest.raises(PeerError) as caught:
        records.unpack(key, data())
    assert 1 == len(str(caught.value).splitlines())


def test_sums_that_have_faded_to_nothing_are_read_all_the_same():
    """What was folded a thousand half-lives ago is zero, and no reason to refuse a store."""
    key = ("sealed", GROUP, "c", "ab")
    old = subspace_of(6, [5.0, 4.0, 3.0])
    for factor in (2.0**-650, 2.0**-1000, 2.0**-1074):
        record = Sealed(old.faded(factor), None, Counts(100), EPOCH)
        back = records.unpack(key, records.pack(key, record))

        assert (record.summary.weight, 0) == (back.summary.weight, back.summary.rank)
        assert record.counts == back.counts
        kernel_summary = Subspaces(3).faded(a_twofold(weight=99.7), factor)
        both = Sealed(kernel_summary, None, Counts(100), EPOCH)
        back = records.unpack(key, records.pack(key, both))

        assert both.summary.weight == back.summary.weight == back.summary.linear.weight
        assert (0, 0) == (back.summary.features.rank, back.summary.linear.rank)


def test_a_store_is_read_whole():
    """All records at once, by their keys; one that cannot be read is named."""
    kept = {("version", GROUP): 5, ("banned", GROUP): frozenset({"c"})}
    packed = {key: records.pack(key, record) for key, record in kept.items()}

    assert kept == records.unpack_all(packed)
    with pytest.raises(PeerError, match="expected a whole record banned/room"):
        records.unpack_all({**packed, ("banned", GROUP): b"\xff"})


def test_a_quarantine_from_before_causes_were_kept_is_an_operators():
    """Names alone, as an earlier store has them."""
    data = pb.Nodes(names=["c", "d"]).SerializeToString()
    quarantined = records.unpack(("quarantined", GROUP), data)

    assert {
        "c": QuarantineEntry("operator", 0.0),
        "d": QuarantineEntry("operator", 0.0),
    } == quarantined


def test_more_than_is_believed_is_kept_as_what_is():
    """A node's sums of what its children said, cut to what can be read again."""
    much = Moments(2 * READINGS, np.ones(3), np.full(3, 8.0))
    record = Sealed(None, much, Counts(2**60), EPOCH)
    key = ("sealed", GROUP, "c", "ab")
    back = records.unpack(key, records.pack(key, record))

    assert (READINGS, Counts(READINGS)) == (back.moments.count, back.counts)
    np.testing.assert_array_equal(much.m2 / much.count, back.moments.m2 / back.moments.count)


def test_what_a_later_version_knows_of_channels_is_passed_over():
    """And what an earlier one did not is as it is before the first row."""
    message = _monitor()
    message.run_lengths.add(name="to_come", values=b"?")
    (run,) = (each for each in message.run_lengths if each.name == "run")
    message.run_lengths.remove(run)
    back = records.unpack(("lookout",), message.SerializeToString())

    expected = monitor_of(a_model()).run_lengths._replace(run=RunLengths.none(6).run)
    assert reported(expected) == reported(back.run_lengths)


def test_evidence_of_another_version_begins_again():
    """It weighs the fleet otherwise; what is known of the rows stays."""
    own = OwnScatter(np.eye(3), 40.0, np.zeros((3, 3)), evidence=(1.0,) * len(KAPPAS))
    message = SCATTER.made(own)
    message.evidence = message.evidence[:16]

    read = SCATTER.read(message)

    assert (40.0, OwnScatter.none(3).evidence) == (read.weight, read.evidence)
    np.testing.assert_array_equal(own.sums, read.sums)
    for triangle in (b"", b"\0" * 16, b"\0" * 8 * 97 * 49):
        message.sums = triangle
        with pytest.raises(PeerError, match="no scatter's triangle"):
            SCATTER.read(message)


def test_a_lookout_that_knows_nothing_of_channels_is_read():
    """As it is before the first row under a schema."""
    message = _monitor()
    del message.habits[:], message.run_lengths[:]
    message.ClearField("residual_scale")
    back = records.unpack(("lookout",), message.SerializeToString())

    assert (None, None, None) == (back.run_lengths, back.habits, back.residual_scale)


def test_limits_beyond_all_numbers_are_kept_as_the_highest():
    """What is spared after a score over a limit of nothing; the rest is not lost for it."""
    monitor = monitor_of(a_model())
    hours = replace(monitor.detector.hours, spared={"spe": INF})
    record = replace(monitor, detector=replace(monitor.detector, hours=hours))
    back = records.unpack(("lookout",), records.pack(("lookout",), record))

    assert {"spe": np.finfo(float).max} == back.detector.hours.spared


def test_who_wrote_a_row_is_who_sent_it():
    """A foreign client that names no software is not called ours after a restart."""
    row = Row(a_report(software=""), b"d" * 16, EPOCH)
    assert "" == records.unpack(ROW_KEY, records.pack(ROW_KEY, row)).report.software
    assert Incarnation(*map(int, ROW_KEY[3:])) == row.report.stamp.incarnation
