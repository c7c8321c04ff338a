"""Bytes that never change: `tests/golden/v1` is what version 1 is.

Each message stands there as it goes out, and beside it as text. A change that breaks one of
these breaks every device in the field: what is to be said otherwise is version 2, and these
are still read. `SUBMERGE_REWRITE=1 pytest tests/proto/test_golden.py` writes those down that
are not there yet, and never another.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from submerge import Schema, Subspace
from submerge.drill.drill import ChannelAnswer, packed
from submerge.features import Gaussian, RandomFourier
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.alarm_status import (
    Alarm,
    AlarmStatus,
    Deviation,
    Looks,
    TypicalAlarms,
    Waiting,
)
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.messages import (
    Answer,
    Census,
    Counts,
    DrillReport,
    DrillTaken,
    EarlierSums,
    Hello,
    Incarnation,
    Join,
    Joined,
    Left,
    Message,
    Model,
    Reason,
    Report,
    ScoreSketches,
    Stamp,
)
from submerge.protocol.score_trail import ScoreTrail
from submerge.protocol.summaries import KernelSummary
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.moments import Moments, Reservoir
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge.stats.score_limits import Limits
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, parts
from support.wire import reported

FOLDER = Path(__file__).parents[2] / "golden" / "v1"

FORMS: dict[codec.Kind, Any] = {
    "join": pb.JoinRequest,
    "joined": pb.JoinResponse,
    "report": pb.ReportRequest,
    "answer": pb.ReportResponse,
    "watch": pb.WatchResponse,
    "drill": pb.DrillRequest,
    "drilled": pb.DrillResponse,
}

CLIENT = Incarnation(1_700_000_000_123, 0x0123456789ABCDEF)
SITE = Incarnation(1_600_000_000_456, 0xFEDCBA9876543210)
ROOT = Incarnation(1_500_000_000_789, 1)
FENCE, BEFORE = bytes(range(16)), bytes(range(16, 32))
SCHEMA = Schema.anonymous(4)
WIDE = Schema.anonymous(11)

HALVES = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1]]) / 2
"""Orthonormal, and exact in float32."""

STEPS = np.zeros((3, 11))
STEPS[0, 10] = 1
STEPS[1, :5] = STEPS[2, 5:10] = np.array([127, 15, 5, 2, 1]) / 128
"""Orthonormal, and exact in 127 steps of 2^-7."""

KERNEL = Schema(8, features=RandomFourier(Gaussian(0.25), 4, "fourier-pair", seed=7))
"""Of 8 channels and 4 features."""

BOTH = np.kron(np.eye(2), np.full(4, 0.5))
"""Orthonormal, (2, 8), and exact in float32."""

SAMPLE = Reservoir(
    np.array([3, 0x0123456789ABCDEF, 2**64 - 1], dtype=np.uint64),
    np.array([[1, -2, 0.5, 0], [3, 3, -3, 3], [1e18, 0, 0, -1e18]], dtype=np.float32),
)

SKETCH = QuantileSketch(0, ((-8, 1), (0, 20), (8, 300), (30, 1)))
COARSE = QuantileSketch(1, tuple((i, 2) for i in range(-8, 8)))


FINE_SKETCH = QuantileSketch(-2, ((-64, 1), (0, 20), (31, 300), (1000, 1)), FINE)
WIDER = QuantileSketch(-1, tuple((i, 2) for i in range(-80, 80)), FINE)
MAXIMA = BlockMaxima(FINE_SKETCH, WIDER, empty(FINE), 720, FINE_SKETCH)

ALARM = Alarm(
    "pump-3",
    1_700_086_390_000,
    1_700_086_390.25,
    1_700_086_395.5,
    0.0,
    3.25,
    "spe",
    (("bearing.heat", 0.5), ("flow", 0.25), ("Öl °C", 0.125)),
    1_700_086_000_000,
    60,
)
OVER = replace(ALARM, number=7, ended=1_700_086_399.75, cause="t2", top=(), verdict="accepted")
JUDGED = replace(OVER, number=8, cause="linear", withheld=0, verdict="rejected")
STRAYS = replace(OVER, number=9, cause="channel", version=2**63 - 1, verdict="")
STUCK = replace(ALARM, node="pump-4", number=2**62, cause="stuck", worst=0.0)
ALARM_STATUS = AlarmStatus(
    AlarmStatus.at("alarm"),
    (ALARM, OVER, JUDGED, STRAYS),
    1,
    604_800.5,
    1.0,
    4,
    1,
    3600.5,
    1_700_086_400_777,
)


def subspace(schema: Schema, rows: np.ndarray, sigma: list[float], **fields: Any) -> Subspace:
    return Subspace(
        schema.fingerprint,
        rows.T.astype(np.float32),
        np.array(sigma),
        **{
            "mean": np.arange(schema.dim) / 4 - 1,
            "weight": 86_400.5,
            "energy": 90.0,
            "spectral_bound": 0.75,
            **fields,
        },
    )


def report(**fields: Any) -> Report:
    said: dict[str, Any] = {
        "stamp": Stamp("pump-3", "pumps", CLIENT, 12),
        "final": False,
        "pinned": SITE,
        "fence": b"",
        "fingerprint": SCHEMA.fingerprint,
        "summary": subspace(SCHEMA, HALVES, [8.0, 4.0, 2.5]),
        "moments": None,
        "counts": Counts(86_401, 17, 0),
        "as_of": 1_700_086_400.25,
        "synced": True,
        "version": 1_700_086_000_000,
        "lifetime": 600_000,
        "scores": ScoreSketches(SKETCH, COARSE),
        "software": "submerge 0.1.0",
    }
    return Report(**{**said, **fields})


def model(**fields: Any) -> Model:
    said: dict[str, Any] = {
        "group": "pumps",
        "version": 1_700_086_400_001,
        "schema": SCHEMA.canonical,
        "fingerprint": SCHEMA.fingerprint,
        "summary": subspace(SCHEMA, HALVES, [8.0, 4.0, 2.5]),
        "limits": Limits((0.95, 0.99, 0.999), (1.0, 2.5, 8.0), (9.0, 16.0, 40.0), 4096),
        "counts": Counts(1_000_000, 500, 20),
        "nodes": 12,
        "staleness": (256.0, 512.0, 1024.0),
        "created": 1_700_086_400.5,
        "expires": 1_700_089_400.5,
    }
    return Model(**{**said, **fields})


TWOFOLD = KernelSummary(
    subspace(KERNEL, HALVES, [8.0, 4.0, 2.5], mean=np.array([0.5, -0.25, 0, 0.125])),
    subspace(KERNEL, BOTH, [16.0, 2.0], mean=np.arange(8) / 4 - 1, energy=300.0),
)

WHOLE = WholeScatter(
    SCHEMA.fingerprint,
    np.array([0.5, 0.25, 0.125, 0, 0.5, 0.125, -0.25, 0.25, 0.125, 0.125], dtype=np.float32),
    mean=np.arange(4) / 4 - 1,
    weight=86_400.5,
    energy=64.0,
    spectral_bound=2.0**-20,
    channel_energies=np.array([20.0, 24.0, 10.25, 9.75]),
)
"""What it holds of channels is 16, 20, 6 and 6."""

JOIN = Join(Stamp("pump-3", "pumps", CLIENT, 0), b"", (), SCHEMA.canonical)
SITE_STAMP = Stamp("site-7", "pumps", SITE, 5)

GOLDEN: dict[str, Message] = {
    "join": JOIN,
    "join_of_an_aggregator": Join(SITE_STAMP, FENCE, (Left(BEFORE, 4),), b""),
    "joined": Joined(JOIN.stamp, Reason.ACK, b"", SITE, False, 0, SCHEMA.canonical),
    "joined_refused": Joined(
        SITE_STAMP._replace(seq=3),
        Reason.SCHEMA,
        FENCE,
        ROOT,
        True,
        1_400_000_000_000,
        b"",
        ("missing channel: flow", "unit of heat: expected '°C', got 'K'"),
    ),
    "joined_not_now": Joined(JOIN.stamp, Reason.UNAVAILABLE, b"", None, False, 0, b""),
    "report": report(),
    "report_coarse": report(
        fingerprint=WIDE.fingerprint,
        summary=subspace(WIDE, STEPS, [100.0, 2.0, 1.0], energy=2.0**31, spectral_bound=2.0**30),
        scores=None,
    ),
    "report_of_moments": report(
        summary=None,
        moments=Moments(50, np.array([20.5, 0, -3, 1e6]), np.array([2.0, 0, 1e-9, 1e12])),
        scores=None,
        synced=False,
    ),
    "report_of_constants": report(
        summary=subspace(SCHEMA, HALVES[:0], [], energy=0.0, spectral_bound=0.0), scores=None
    ),
    "report_final": report(final=True, summary=None, counts=Counts(0, 0, 40), scores=None),
    "report_of_an_aggregator": report(
        stamp=SITE_STAMP,
        pinned=ROOT,
        fence=FENCE,
        census=Census(12, (0, 0, 3, 8, 0, 1)),
        counts=Counts(2**53, 2**53, 2**53),
        lifetime=2**62,
    ),
    "report_with_energies": report(
        summary=replace(
            subspace(SCHEMA, HALVES, [8.0, 4.0, 2.5]),
            channel_energies=np.array([21.75, 22.0, 22.25, 24.0]),
        ),
        scores=None,
    ),
    "report_of_a_whole_scatter": report(summary=WHOLE, scores=None),
    "report_of_earlier_sums": report(
        fence=FENCE,
        summary=None,
        moments=Moments(30, np.array([20.5, 0, -3, 1e6]), np.array([2.0, 0, 1e-9, 1e12])),
        counts=Counts(50, 1, 2),
        scores=None,
        earlier=EarlierSums(
            WIDE.fingerprint, subspace(WIDE, STEPS, [8.0, 4.0, 2.5], weight=20.0), Counts(20, 1, 1)
        ),
    ),
    "report_of_moved_readings": report(
        summary=None,
        moments=Moments(50, np.array([20.5, 0, -3, 1e6]), np.array([2.0, 0, 1e-9, 1e12])),
        counts=Counts(50, 1, 2, 40),
        scores=None,
    ),
    "joined_for_whole_scatters": Joined(
        JOIN.stamp, Reason.ACK, b"", SITE, False, 0, SCHEMA.canonical, whole_scatter=True
    ),
    "report_of_features_with_energies": report(
        fingerprint=KERNEL.fingerprint,
        summary=KernelSummary(
            replace(TWOFOLD.features, channel_energies=np.array([22.0, 22.0, 22.0, 24.0])),
            replace(TWOFOLD.linear, channel_energies=np.array([70.0] * 4 + [5.0] * 4)),
        ),
        scores=None,
    ),
    "model_with_energies": model(
        summary=replace(
            subspace(SCHEMA, HALVES, [8.0, 4.0, 2.5]),
            channel_energies=np.array([22.0, 22.0, 22.0, 24.0]),
        ),
        limits=None,
    ),
    "report_of_features": report(
        fingerprint=KERNEL.fingerprint,
        summary=TWOFOLD,
        scores=ScoreSketches(SKETCH, COARSE, SKETCH),
    ),
    "report_of_a_sample": report(
        summary=None,
        fingerprint=KERNEL.fingerprint,
        moments=Moments(50, np.arange(8) / 4, np.arange(8) * 2.0, SAMPLE),
        scores=None,
    ),
    "report_of_alarms": report(
        scores=ScoreSketches(SKETCH, COARSE, None, MAXIMA), alarm_status=ALARM_STATUS, summary=None
    ),
    "report_of_alarms_below": report(
        stamp=SITE_STAMP,
        pinned=ROOT,
        fence=FENCE,
        summary=None,
        scores=None,
        alarm_status=AlarmStatus(
            (3, 20, 1, 2, 2**40), (ALARM_STATUS.alarms[0], STUCK), 2, 2.0**62, 0.5, 7, 2, -1.0
        ),
    ),
    "report_of_silent_nodes": report(
        stamp=SITE_STAMP,
        pinned=ROOT,
        fence=FENCE,
        summary=None,
        scores=None,
        alarm_status=AlarmStatus(
            (0, 2, 1, 0, 0), (ALARM, STUCK), 2, silent=((ALARM.node, 1_234), (STUCK.node, 2**40))
        ),
    ),
    "report_of_provisional_alarms": report(
        summary=None,
        scores=None,
        alarm_status=AlarmStatus(
            AlarmStatus.at("learning"),
            (
                replace(
                    ALARM,
                    ended=ALARM.peaked + 60,
                    first=(("flow", 0.625),),
                    deviations=(
                        Deviation(ALARM.top[0][0], 71.5, 64.25),
                        Deviation("oil", -2.5, 3.0),
                    ),
                    settled=True,
                    provisional=True,
                ),
            ),
            provisional_rows=1300.0,
            waiting=Waiting("mean", 4, 10),
        ),
    ),
    "report_of_looks": report(
        summary=None,
        scores=None,
        alarm_status=AlarmStatus(
            AlarmStatus.at("alarm"), (replace(ALARM, looks=Looks("process", 51, 4.75)),), 1
        ),
    ),
    "report_with_a_trail": report(
        summary=None,
        scores=None,
        trail=ScoreTrail(28_334_773, bytes([1, 1, 0, 2, 77, 128, 146, 255])),
    ),
    "report_of_typical_alarms": report(
        stamp=SITE_STAMP,
        pinned=ROOT,
        fence=FENCE,
        summary=None,
        scores=None,
        alarm_status=AlarmStatus((0, 9, 0, 0, 0), typical=TypicalAlarms(12.5, 21, 4)),
    ),
    "answer": Answer(report().stamp, Reason.ACK, b"", SITE, False, 12, ROOT, 9, 0),
    "answer_refused": Answer(
        SITE_STAMP, Reason.FENCED, FENCE, ROOT, True, 4, ROOT, 4, 1_400_000_000_000
    ),
    "answer_not_now": Answer(report().stamp, Reason.UNAVAILABLE),
    "answer_with_wishes": Answer(
        report().stamp,
        Reason.ACK,
        b"",
        SITE,
        newest=12,
        desired_states=(
            DesiredState("pump-3", 1_700_086_400_777, True, ((ALARM.number, False), (7, True))),
            DesiredState("pump-4", 1_700_086_400_778, False),
            DesiredState("pump-5", 2**62),
        ),
    ),
    "answer_with_a_drill": Answer(
        report().stamp,
        Reason.ACK,
        desired_states=(DesiredState("pump-3", 1_700_086_400_779, drill=1_700_086_400_779),),
    ),
    "drill": DrillReport(
        report().stamp,
        "pump-3",
        SCHEMA.fingerprint,
        1_700_086_460.5,
        1_700_086_400_779,
        *(256, 31, 60),
        1 / 604800,
        packed(
            (
                ChannelAnswer(1.0, 0.75, 0.5, 1.0, 0.25, 1.0, 0.5),
                ChannelAnswer(1.0, 0.0, 4.0, math.inf, 8.0, 0.0, math.nan),
            )
        ),
    ),
    "drilled": DrillTaken(report().stamp, Reason.ACK),
    "hello": Hello("site-7", SITE, False, 0xFFFFFFFFFFFFFFFF),
    "hello_of_a_root": Hello("root", ROOT, True, 7),
    "model": model(),
    "model_of_features": model(
        schema=KERNEL.canonical,
        fingerprint=KERNEL.fingerprint,
        summary=TWOFOLD,
        limits=Limits(
            (0.95, 0.99, 0.999), (0.25, 0.5, 0.75), (9.0, 16.0, 40.0), 4096, (1.0, 2.5, 8.0)
        ),
    ),
    "model_with_peaks": model(summary=None, maxima=replace(MAXIMA, longest=2**62)),
    "model_of_features_with_peaks": model(
        schema=KERNEL.canonical,
        fingerprint=KERNEL.fingerprint,
        summary=None,
        limits=None,
        maxima=replace(MAXIMA, linear=FINE_SKETCH, channel=empty(FINE)),
    ),
    "model_of_nothing": model(
        summary=None, limits=None, counts=Counts(), nodes=0, staleness=(0.0, 0.0, 0.0)
    ),
}


@pytest.fixture(autouse=True)
def _of_that_version(monkeypatch):
    """A header names the software: of these bytes, the one that wrote them first."""
    monkeypatch.setattr(parts, "SOFTWARE", "submerge 0.1.0")


@pytest.mark.parametrize("name", GOLDEN)
def test_version_1_is_what_it_was(name):
    """The same message is the same bytes, and the same bytes the same message, for ever."""
    message, path = GOLDEN[name], FOLDER / f"{name}.bin"
    kind, data = codec.kind_of(message), codec.encode(message, coarse="coarse" in name)
    if os.environ.get("SUBMERGE_REWRITE") and not path.exists():
        path.write_bytes(data)
        text = text_format.MessageToString(FORMS[kind].FromString(data), as_utf8=True)
        path.with_suffix(".txt").write_text(text, encoding="utf-8")
    golden = path.read_bytes()

    assert golden == data
    assert reported(message) == reported(codec.decode(kind, golden))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_beside_says_the_same(name):
    """For whoever writes a client in another language, and has only bytes that are wrong."""
    golden, form = FOLDER / f"{name}.bin", FORMS[codec.kind_of(GOLDEN[name])]
    text = golden.with_suffix(".txt").read_text(encoding="utf-8")

    assert form.FromString(golden.read_bytes()) == text_format.Parse(text, form())


def test_folds_of_moments_are_skipped():
    """No released version sends them: the rest of such a report is what it says."""
    read = codec.decode("report", (FOLDER / "report_of_folds.bin").read_bytes())

    assert reported(GOLDEN["report_of_moved_readings"]) == reported(read)


def test_no_golden_file_is_forgotten():
    """What is no longer written is still read: nothing is taken out of the folder."""
    assert {
        f"{name}{suffix}"
        for name in (*GOLDEN, "report_of_folds", "job_piece", "job_ask", "job_taken")
        for suffix in (".bin", ".txt")
    } == {path.name for path in FOLDER.iterdir()}
