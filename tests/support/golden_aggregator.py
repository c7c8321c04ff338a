"""What golden stores hold: an aggregator's of two groups, and a root's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from submerge.aggregator.node import StoreIdentity
from submerge.aggregator.operators.quarantine import QuarantineEntry, Slip
from submerge.aggregator.rows.influence import GroupTime
from submerge.aggregator.rows.ledger import Membership
from submerge.aggregator.rows.pool import Row, Sealed
from submerge.aggregator.rows.releases import Release
from submerge.aggregator.upward import Lineage
from submerge.jobs.job import Job
from submerge.pca.row_sums import RowSums
from submerge.protocol.alarm_status import AlarmStatus
from submerge.protocol.desired_state import DesiredState, Missed
from submerge.protocol.messages import (
    Census,
    Counts,
    EarlierSums,
    Incarnation,
    Left,
    Pin,
    Told,
)
from submerge.protocol.summaries import KernelSummary
from submerge_proto.kept.aggregator import history_from
from submerge_proto.kept.records import ReceivedReports
from submerge_proto.v1 import kept_pb2
from submerge_proto.wire import codec
from support import golden_blocks, golden_factors, golden_learnt
from support import golden_parts as parts
from support.golden_parts import KERNEL, LINEAR, NOW, OPEN_KERNEL, OPEN_LINEAR, ROOT, SITE

LIVES = tuple(Incarnation(1_700_000_000_100 + i, 0x0F0E0D0C0B0A0900 + i) for i in range(4))
CLOSED = tuple(Incarnation(1_650_000_000_000 + i, 0xA000000000000000 + i) for i in range(2))
BELOW = Incarnation(1_610_000_000_000, 0xB000000000000001)


def _fence(first: int) -> bytes:
    return bytes(range(first, first + 16))


def _row(report: Any, first: int) -> dict[Any, Any]:
    node, group, (created_ms, nonce), _ = report.stamp
    row = Row(report=report, digest=_fence(first), as_of=NOW - first)
    return {("row", group, node, str(created_ms), str(nonce)): row}


def _below(group: str, summary: Any, node: str = "hall-2") -> Any:
    """Return what an aggregator below says: of many clients, under a fence."""
    reported = AlarmStatus(
        states=(3, 20, 4, 2, 2**40),
        alarms=(*parts.alarms("press-8", "linear"), *parts.alarms("press-9", "channel")),
        open=2,
        watched_s=2.0**40,
        allowed=0.5,
        raised=7,
        confirmed=3,
        armed_in_s=-1.0,
        desired=1_700_086_300_000,
    )
    return parts.report(
        node,
        group,
        BELOW,
        44,
        summary=summary,
        final=False,
        fence=_fence(160),
        synced=False,
        census=Census(nodes=12, ages=(1, 0, 3, 8)),
        counts=Counts(learnt=2**53, withheld=2**52, lost=2**51),
        lifetime=2**62,
        alarm_status=reported,
    )


def _sealed(group: str, node: str, summary: Any, width: int) -> dict[Any, Any]:
    schema = KERNEL if isinstance(summary, KernelSummary) else LINEAR
    record = Sealed(
        summary=summary,
        moments=parts.moments(width, 77, sample=width == 8),
        counts=Counts(learnt=90_000, withheld=91, lost=92),
        as_of=NOW - 5000,
    )
    return {("sealed", group, node, schema.fingerprint): record}


def _member(group: str, node: str) -> dict[Any, Any]:
    record = Membership(
        closed={CLOSED[0]: 71, CLOSED[1]: 72},
        floor=1_640_000_000_000,
        fences={BELOW: _fence(160), CLOSED[1]: _fence(176)},
    )
    return {("member", group, node): record}


def _orders(group: str, kind: str) -> dict[Any, Any]:
    """Return what is held against nodes, and wanted of them; `kind`: what nodes are called."""
    return {
        ("banned", group): frozenset({f"{kind}-13", f"{kind}-17"}),
        ("quarantined", group): {
            f"{kind}-21": QuarantineEntry(cause="operator", since=NOW - 21),
            f"{kind}-22": QuarantineEntry(cause="shrunk", since=NOW - 22),
            f"{kind}-23": QuarantineEntry(cause="equivocated twice", since=NOW - 23),
        },
        ("suspected", group): {
            f"{kind}-31": Slip(at=NOW - 31, digest=_fence(192)),
            f"{kind}-32": Slip(at=NOW - 32, digest=_fence(208)),
        },
        ("wishes", group): {
            f"{kind}-3": DesiredState(
                node=f"{kind}-3",
                number=1_700_086_400_701,
                paused=True,
                verdicts=((1_700_086_390_000, False), (1_700_086_389_000, True)),
            ),
            f"{kind}-4": DesiredState(node=f"{kind}-4", number=1_700_086_400_702, paused=False),
            f"{kind}-5": DesiredState(
                node=f"{kind}-5", number=1_700_086_400_703, verdicts=((9, True),)
            ),
        },
    }


def _group(group: str, kind: str, summary: Any, exact: Any) -> dict[Any, Any]:
    """Return one group of an aggregator; `exact`: as it was merged, in float64."""
    schema = KERNEL if isinstance(summary, KernelSummary) else LINEAR
    node = f"{kind}-3"
    return {
        ("line", group): Lineage(
            seq=41,
            fence=_fence(16),
            past=(Left(fence=_fence(32), seq=7), Left(fence=_fence(48), seq=40)),
            admitted=_fence(48),
        ),
        ("schema", group): schema.canonical,
        ("asked", group): b"",
        ("version", group): 0,
        ("heard", group): 1_700_086_300_001,
        ("reference", group): NOW - 3600,
        **_orders(group, kind),
        **_row(parts.report(node, group, LIVES[0], 12, summary=summary, final=False), 1),
        **_row(parts.report(node, group, LIVES[1], 3, summary=summary), 2),
        **_row(_below(group, summary), 3),
        **_sealed(group, node, exact, schema.width),
        **_sealed(group, f"{kind}-4", summary, schema.width),
        **_member(group, node),
        **_member(group, "hall-2"),
    }


def of_a_site() -> dict[Any, Any]:
    """An aggregator below a root, of a linear group and of a kernel group."""
    pin = Pin(parent="root", incarnation=ROOT, top=True)
    return {
        ("store",): StoreIdentity(incarnation=SITE, pin=pin),
        **_group("pumps", "pump", parts.linear(), parts.linear(9.0, dtype="<f8")),
        **_group("presses", "press", parts.kernel(), parts.kernel(17.0, dtype="<f8")),
    }


def of_a_root() -> dict[Any, Any]:
    """A root that has settled a scaling, and is about to settle gamma of another group."""
    moments = parts.moments(8, 40, sample=True)
    report = parts.report(
        "press-3",
        "presses",
        LIVES[2],
        5,
        summary=None,
        fingerprint=OPEN_KERNEL.fingerprint,
        moments=moments,
        scores=None,
    )
    sealed = Sealed(
        summary=None,
        moments=replace(moments, count=41),
        counts=Counts(learnt=41, withheld=42, lost=43),
        as_of=NOW - 7,
    )
    return {
        ("store",): StoreIdentity(incarnation=ROOT, pin=None),
        **_group("pumps", "pump", parts.linear(), parts.linear(9.0, dtype="<f8")),
        ("line", "pumps"): Lineage(),
        ("asked", "pumps"): OPEN_LINEAR.canonical,
        ("version", "pumps"): 1_700_086_000_007,
        ("heard", "pumps"): 0,
        ("line", "presses"): Lineage(),
        ("schema", "presses"): OPEN_KERNEL.canonical,
        ("asked", "presses"): OPEN_KERNEL.canonical,
        ("version", "presses"): 1_700_086_000_008,
        ("reference", "presses"): NOW - 1800,
        **_row(report, 4),
        ("sealed", "presses", "press-3", OPEN_KERNEL.fingerprint): sealed,
        ("member", "presses", "press-3"): Membership(closed={CLOSED[0]: 73}, floor=5),
        ("banned", "presses"): frozenset(),
        ("quarantined", "presses"): {},
        ("suspected", "presses"): {},
        ("wishes", "presses"): {},
        ("heard", "presses"): 0,
    }


def _of_an_early_root() -> dict[Any, Any]:
    """A root's before alarms: no row tells of them, and nothing is wanted of nodes."""
    group, node = "pumps", "pump-3"
    scores = parts.scores(12, of_readings=False)._replace(maxima=None)
    report = parts.report(
        node, group, LIVES[0], 12, summary=parts.linear(), scores=scores, alarm_status=None
    )
    return {
        ("store",): StoreIdentity(incarnation=ROOT, pin=None),
        ("line", group): Lineage(),
        ("schema", group): LINEAR.canonical,
        ("asked", group): LINEAR.canonical,
        ("version", group): 1_700_086_000_007,
        ("reference", group): NOW - 3600,
        ("banned", group): frozenset({"pump-13", "pump-17"}),
        **_row(report, 1),
        **_sealed(group, node, parts.linear(9.0, dtype="<f8"), LINEAR.width),
        **_member(group, node),
    }


def of_ages() -> dict[Any, Any]:
    """When nodes were first heard: in the group's time, which a restart continues."""
    orders = _orders("pumps", "pump")
    early = ("quarantined", "pumps"), ("suspected", "pumps")
    return {
        **_of_an_early_root(),
        **{key: orders[key] for key in early},
        ("first", "pumps", "pump-3"): 86_400.5,
        ("first", "pumps", "pump-4"): 172_801.25,
        ("elapsed", "pumps"): GroupTime(elapsed=259_202.75, wall=NOW - 600),
    }


def of_histories() -> dict[Any, Any]:
    """What a root was given beside rows: of files, with a cap, and of another fleet."""
    files = history_from(golden_learnt.from_files(), most_rows=1_234.5, pushed=NOW - 25)
    fleet = history_from(golden_learnt.of_a_fleet(), pushed=NOW - 26)
    return {**of_ages(), **{("history", "pumps", each.name): each for each in (files, fleet)}}


def of_rows() -> dict[Any, Any]:
    """Rows of a narrow group, with factors, in blocks that are no hours, of aggregators below."""
    group, whole = "pumps", parts.whole()

    def row(node: str, life: int, summary: Any) -> Any:
        return parts.report(node, group, LIVES[life], 12, summary=summary, final=False)

    silent = _below(group, whole)
    status = replace(silent.alarm_status, silent=(("press-8", 1_234), ("press-9", 2**40)))
    return {
        **_row(row("pump-3", 0, whole), 1),
        **_row(row("pump-3", 1, parts.with_energies()), 2),
        **_row(golden_factors.report(row("pump-5", 2, parts.with_energies())), 3),
        **_row(golden_blocks.report(row("pump-6", 3, whole)), 4),
        **_row(replace(silent, alarm_status=status), 5),
        **_row(_with_earlier_sums(_below(group, None, "hall-3")), 6),
        **_sealed(group, "pump-3", parts.whole(dtype="<f8"), LINEAR.width),
    }


def of_looks() -> dict[Any, Any]:
    """A row whose alarms say what they look like."""
    report = parts.report("pump-7", "pumps", LIVES[0], 12, summary=parts.whole(), final=False)
    return _row(golden_blocks.report_with_looks(report), 1)


def of_missed() -> dict[Any, Any]:
    """Faults of a node that raised no alarm; there was none in one of these times after all."""
    missed = Missed(NOW - 7200, NOW - 3600, "flow"), Missed(NOW - 90, NOW - 30, withdrawn=True)
    return {
        ("wishes", "pumps"): {"pump-6": DesiredState("pump-6", 1_700_086_400_704, missed=missed)}
    }


def of_noise() -> dict[Any, Any]:
    """A root whose models carry noise: sums of a client's rows and of a site's, and a release."""
    schema = replace(LINEAR, half_life=None, center="fleet", clip=4.0)
    none = RowSums.none(schema.fingerprint, schema.dim, 4.0)
    rows = np.arange(3.0 * schema.dim).reshape(3, schema.dim) / 16 - 0.5
    sums = none.with_rows(rows)
    numbers = np.arange(len(sums.numbers)) * 1_000_003 - 7_000_021
    release = Release(
        rho=0.185,
        spent=0.01,
        share=0.0875,
        number=6,
        told=Told(17, 0.0975),
        rows=3,
        left=2,
        fingerprint=schema.fingerprint,
        noises={2: numbers, 1: -numbers},
        summary=replace(parts.whole(dtype="<f8"), schema=schema.fingerprint),
    )
    named = {"summary": sums, "fingerprint": schema.fingerprint, "moments": None}
    counts = Counts(learnt=3, withheld=91, lost=92)
    site = replace(_below("pumps", sums), fingerprint=schema.fingerprint, counts=counts, left=2)
    site = replace(site, told=Told(18, 0.125))
    report = parts.report("pump-3", "pumps", LIVES[0], 12, final=False, **named)
    return {
        ("left", "pumps"): 1,
        ("release", "pumps"): release,
        **_row(replace(report, counts=counts), 1),
        **_row(site, 2),
    }


def _with_earlier_sums(report: Any) -> Any:
    """Return a site's row while a scale is measured: moments, and sums under the schema before."""
    schema = replace(LINEAR, channels=LINEAR.channels[::-1])
    summary = replace(parts.with_energies(), schema=schema.fingerprint)
    counts = Counts(learnt=86_001, withheld=18, lost=6, moved=1_001)
    return replace(
        report,
        counts=Counts(learnt=86_404, withheld=20, lost=8, moved=1_004),
        earlier=EarlierSums(schema.fingerprint, summary, counts),
    )


def of_records() -> dict[Any, Any]:
    """What operators want of nodes, a rank, schemas that a group had before, and a job."""
    number = 1_700_086_400_704
    wishes = (
        DesiredState("pump-6", number, banned=True),
        DesiredState("pump-7", number + 1, paused=False, banned=False),
        DesiredState("pump-8", number + 2, drill=number + 1),
        DesiredState("pump-9", number + 4, quarantined=True),
        DesiredState("pump-10", number + 5, quarantined=False, forget=number + 5),
    )
    unreadable = QuarantineEntry(cause="unreadable", since=NOW - 24)
    texts = [replace(OPEN_LINEAR, channels=LINEAR.channels[:n]).canonical for n in (1, 2)]
    clusters = {"clusters": 3, "seed": 7}
    piece = 65536  # the default, when these bytes were written
    job = Job(
        "job-1", "kmeans", clusters, "pumps", LINEAR.fingerprint, 3, least=1, piece_bytes=piece
    )
    return {
        ("wishes", "pumps"): {each.node: each for each in wishes},
        ("quarantined", "pumps"): {"pumps-24": unreadable},
        ("rank", "pumps"): 5,
        **{("earlier", "pumps", str(n)): text for n, text in enumerate(texts, 1)},
        ("job", job.id): json.dumps(job.written()).encode(),
    }


def of_records_as_received() -> dict[Any, Any]:
    """Messages ready to be written: reports as they came, without a digest; and names alone.

    Names that are quarantined for no reason that is known are of a first version's store, which
    later ones have taken over.
    """
    kept, received = _of_an_early_root(), ReceivedReports()
    for key, row in kept.items():
        if key[0] == "row":
            came = replace(row, report=replace(row.report, software="submerge 0.6.1"), digest=b"")
            received.note(came.report, codec.encode(came.report))
            kept[key] = kept_pb2.Row.FromString(received.pack(key, came))
    return {**kept, ("quarantined", "pumps"): kept_pb2.Quarantined(names=["pump-21", "pump-22"])}
