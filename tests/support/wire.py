"""Messages of every kind, drawn or written out.

What is drawn here an honest node may say: numbers up to the bounds of docs/wire.md, names of
any length. What no honest node says is in tests/proto/test_distrust.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from hypothesis import strategies as st

from submerge import Schema, Subspace
from submerge.aggregator.rows.pool import Row
from submerge.client.incarnation import Checkpoint
from submerge.client.pending_finals import Past
from submerge.features import Gaussian, RandomFourier
from submerge.pca.factor import Factors
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import (
    Answer,
    Census,
    Counts,
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
from submerge.protocol.score_trail import LAST_MINUTE, MINUTES, NO_TRAIL, ScoreTrail
from submerge.protocol.summaries import KernelSummary, Method
from submerge.stats.moments import KEPT, LARGEST_POINT, LEAST_WIDTH, Moments, Reservoir
from submerge.stats.quantile_sketch import QuantileSketch
from submerge.stats.score_limits import Limits
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, forms, parts
from submerge_proto.wire.sizes import held_by
from support import alarm_statuses
from support.edges import (
    MOST,
    READINGS,
    clients,
    names,
    numbers,
    readings,
    reals,
    scores_seen,
    versions,
)
from support.nodes import EPOCH, GROUP, new_incarnation
from support.wild_factors import wild_factors


def reported(value: Any) -> Any:
    """Return all that a value says, to the last bit, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if is_dataclass(value):
        return type(value).__name__, *(reported(getattr(value, f.name)) for f in fields(value))
    if isinstance(value, Mapping):
        return tuple((reported(key), reported(each)) for key, each in value.items())
    if isinstance(value, tuple | list):
        return tuple(map(reported, value))
    if isinstance(value, float):
        return value.hex()
    return value.name if isinstance(value, Enum) else value


def as_kept(record: Any) -> Any:
    """Return a record as it should come back: no store keeps a trail of scores."""
    if isinstance(record, Row | Checkpoint):
        return replace(record, report=replace(record.report, trail=NO_TRAIL))
    if isinstance(record, Past):
        return replace(record, finals=tuple(map(as_kept, record.finals)))
    return record


def arrived(message: Message) -> Message:
    """Return a message as it should come out at the other end."""
    if isinstance(message, Report) and not message.software:
        return replace(message, software=parts.SOFTWARE)
    return message


# -- parts --------------------------------------------------------------------------

fences = st.binary(min_size=16, max_size=16)
lines = st.lists(st.text(st.characters(categories=["L", "N", "P"]), max_size=40), max_size=6)

born = st.integers(0, 1000) | st.integers(0, MOST // 2) | st.just(MOST // 2)
incarnations = st.builds(Incarnation, born, st.integers(0, 2**64 - 1))
stamps = st.builds(Stamp, names, names, incarnations, numbers)
counts = st.builds(Counts, readings, readings, readings)
sketches = scores_seen.map(QuantileSketch.of)
scores = st.builds(
    ScoreSketches,
    sketches,
    sketches,
    st.none() | sketches,
    st.none() | alarm_statuses.maxima,
    st.none() | sketches,
)
censuses = st.builds(Census, clients, st.lists(clients, max_size=64).map(tuple))
schemas = st.one_of(
    st.integers(1, 9).map(lambda dim: Schema.anonymous(dim).canonical),
    st.integers(1, 9).map(lambda width: kernel_schema(width, 4).canonical),
    st.binary(max_size=90),
)


def kernel_schema(width: int, dim: int, gamma: float | None = 0.25) -> Schema:
    """A kernel group's, of so many channels and so many features, an even number."""
    return Schema(width, features=RandomFourier(Gaussian(gamma), dim, "fourier-pair"))


def orthonormal(dim: int, k: int, seed: int) -> np.ndarray:
    """(k, dim) rows, float32, in any position; their largest entries are positive."""
    rows = np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, k)))[0].T
    rows *= np.sign(np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1))
    return rows.astype(np.float32)


def subspace_of(
    dim: int,
    sigma: Any,
    *,
    seed: int = 0,
    weight: float = 100.0,
    mean: float = 1.0,
    lost: float = 0.25,
    schema: Schema | None = None,
    energies: bool = False,
) -> Subspace:
    """A subspace as it travels, with so much energy `lost`, as a share of what is held.

    energies : with those of single channels
    """
    schema = Schema.anonymous(dim) if schema is None else schema
    sigma = np.asarray(sigma, dtype=np.float64)
    held = float(sigma @ sigma)
    subspace = Subspace(
        schema.fingerprint,
        orthonormal(dim, len(sigma), seed).T,
        sigma,
        mean * np.cos(np.arange(dim, dtype=np.float64)),
        weight=weight,
        energy=held * (1 + lost),
        spectral_bound=held * lost,
    )
    return with_energies(subspace, seed=seed) if energies else subspace


def with_energies(subspace: Subspace, *, seed: int = 0) -> Subspace:
    """The same with energies of channels: what is lost is spread over them by chance."""
    spread = np.random.default_rng(seed).dirichlet(np.ones(subspace.dim))
    held = held_by(subspace.basis.T, subspace.sigma)
    lost = subspace.energy - float(held.sum())
    # Columns are of length 1 to float32's rounding: a little less than nothing may be lost.
    energies = held + spread * lost if lost >= 0 else held * (subspace.energy / float(held.sum()))
    return replace(subspace, channel_energies=energies)


def whole_of(subspace: Subspace, *, rest: float = 0.0) -> WholeScatter:
    """A whole scatter as it travels, of a subspace's directions and `rest` in each channel."""
    wide = np.asarray(subspace.basis, dtype=np.float64)
    scatter = (wide * subspace.sigma**2) @ wide.T + rest * np.eye(subspace.dim)
    energy = float(np.trace(scatter))
    return WholeScatter(
        subspace.schema,
        (scatter + scatter.T) / 2,
        subspace.mean,
        weight=subspace.weight,
        energy=energy,
        spectral_bound=0.0,
        channel_energies=np.diag(scatter).copy(),
    ).rounded()


@st.composite
def subspaces(draw: Any, *, dim: int | None = None, most_weight: float = 1e15) -> Subspace:
    """From k = 0 to k = dim, alike or far apart, as old as can be and as new."""
    dim = draw(st.integers(1, 9)) if dim is None else dim
    k = draw(st.sampled_from([0, dim]) | st.integers(0, dim))
    size = draw(st.sampled_from([1e-30, 1.0, 1e12]))
    spread = draw(st.sampled_from([1.0, 0.9, 1e-2]))
    weight = draw(st.floats(0.5, 1.0)) * draw(st.sampled_from([most_weight, 2.0**-599]))
    return subspace_of(
        dim,
        weight**0.5 * size * spread ** np.arange(k),
        seed=draw(st.integers(0, 2**16)),
        weight=weight,
        mean=draw(st.sampled_from([0.0, -1.0, 1e19])),
        lost=draw(st.sampled_from([0.0, 0.3, 1e3])),
        energies=draw(st.booleans()),
    )


@st.composite
def wholes(draw: Any, *, dim: int, most_weight: float = 1e15) -> WholeScatter:
    """Of a singular scatter or a regular one."""
    subspace = draw(subspaces(dim=dim, most_weight=most_weight))
    rest = draw(st.sampled_from([0.0, 1e-12, 1.0])) * subspace.weight
    return whole_of(subspace, rest=rest)


@st.composite
def twofolds(draw: Any, *, width: int, most_weight: float = 1e15) -> KernelSummary:
    """A kernel group's: of features, and of readings as old."""
    features = draw(subspaces(dim=draw(st.sampled_from([2, 4, 10])), most_weight=most_weight))
    linear = draw(subspaces(dim=width, most_weight=most_weight))
    linear = linear.faded(features.weight / linear.weight)
    # To the last bit: where it is the least that travels, a bit less would be left out.
    linear = replace(linear, schema=features.schema, weight=features.weight)
    return KernelSummary(features, linear)


def relabelled(summary: Any, fingerprint: str) -> Any:
    """The same under another schema's name."""
    if isinstance(summary, KernelSummary):
        both = (summary.features, summary.linear)
        return KernelSummary(*(replace(part, schema=fingerprint) for part in both))
    return replace(summary, schema=fingerprint)


@st.composite
def reservoirs(draw: Any, *, most: int = KEPT) -> Reservoir:
    """Of one reading or 64, near or as far as is told."""
    drawn = draw(st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=min(most, KEPT)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    size = draw(st.sampled_from([0.0, 1e-40, 1.0, LARGEST_POINT]))
    points = size * rng.choice([-1, -0.3, 0, 1], (len(drawn), 4))
    return Reservoir(np.array(sorted(drawn), dtype=np.uint64), points.astype(np.float32))


@st.composite
def moments(draw: Any, *, dim: int | None = None, most: int = READINGS) -> Moments:
    """Of one reading, or of all that can be."""
    dim = draw(st.integers(1, 9)) if dim is None else dim
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    count = draw(st.integers(1, most))
    size = draw(st.sampled_from([0.0, 1e-200, 1.0, 0.7e140]))
    mean, m2 = size * rng.uniform(-1, 1, dim), size**2 * count * rng.uniform(0, 1, dim)
    sample = draw(st.none() | reservoirs(most=count)) if dim >= LEAST_WIDTH else None
    return Moments(count, mean, m2, sample)


@st.composite
def trails(draw: Any) -> ScoreTrail:
    """None, one that has just begun, or as long as one can be; from 1970 to 9999."""
    levels = draw(st.binary(max_size=MINUTES))
    if not levels:
        return NO_TRAIL
    return ScoreTrail(draw(st.integers(len(levels) - 1, LAST_MINUTE)), levels)


# -- messages -----------------------------------------------------------------------


NAMED = st.text("SAPC 0.1,", max_size=64)
METHODS = st.builds(Method, NAMED, st.integers(0, 2**32 - 1), st.floats(0, 1), st.floats(0, 1e300))


@st.composite
def reports(draw: Any) -> Report:
    """A client's, or an aggregator's; of a summary, of moments, of both, of neither."""
    dim = draw(st.integers(1, 9))
    told_counts = draw(counts)
    fence = draw(st.just(b"") | fences)
    learnt = READINGS if fence else told_counts.learnt
    summary = spread = None
    if learnt and draw(st.booleans()):
        most = 1e30 if fence else float(learnt)
        kinds = (subspaces(dim=dim, most_weight=most), twofolds(width=dim, most_weight=most))
        summary = draw(st.one_of(*kinds, wholes(dim=dim, most_weight=most)))
        summary = relabelled(summary, Schema.anonymous(dim).fingerprint)
    if learnt and draw(st.booleans()):
        spread = draw(moments(dim=dim, most=learnt))
    stamp = draw(stamps)
    watch = alarm_statuses.alarm_statuses if fence else alarm_statuses.own_vigils(stamp.node)
    return Report(
        stamp=stamp,
        final=draw(st.booleans()),
        pinned=draw(incarnations),
        fence=fence,
        fingerprint=Schema.anonymous(dim).fingerprint,
        summary=summary,
        moments=spread,
        counts=told_counts,
        as_of=draw(reals),
        synced=draw(st.booleans()),
        version=draw(versions),
        lifetime=draw(numbers),
        census=draw(st.none() | censuses),
        scores=draw(st.none() | scores),
        software=draw(st.just("") | st.text("abc 1.0", max_size=64)),
        certified_until=draw(st.just(0.0) | st.floats(0, 253_402_300_799)),
        alarm_status=draw(st.none() | watch),
        method=draw(METHODS),
        trail=NO_TRAIL if fence else draw(trails()),
        earlier=draw(_earlier_sums(dim, told_counts)) if fence and summary is None else None,
    )


@st.composite
def _earlier_sums(draw: Any, dim: int, all_counts: Counts) -> EarlierSums | None:
    """Sums under a schema with other channels, of a part of the readings; or none."""
    if draw(st.booleans()):
        return None
    other = draw(st.integers(1, 9).filter(lambda each: each != dim))
    summary = draw(subspaces(dim=other, most_weight=1e30) | wholes(dim=other, most_weight=1e30))
    fingerprint = Schema.anonymous(other).fingerprint
    part = Counts(all_counts.learnt // 2, all_counts.withheld // 3, all_counts.lost)
    return EarlierSums(fingerprint, relabelled(summary, fingerprint), part)


joins = st.builds(
    Join,
    stamps,
    st.just(b"") | fences,
    st.lists(st.builds(Left, fences, numbers), max_size=70).map(tuple),
    schemas,
    readings,
    share_points=st.integers(0, 2**32 - 1),
)

joineds = st.builds(
    Joined,
    stamps,
    st.sampled_from(Reason),
    st.just(b"") | fences,
    st.none() | incarnations,
    st.booleans(),
    numbers,
    schemas,
    lines.map(tuple),
    st.booleans(),
)
answers = st.builds(
    Answer,
    stamps,
    st.sampled_from(Reason),
    st.just(b"") | fences,
    st.none() | incarnations,
    st.booleans(),
    numbers,
    st.none() | incarnations,
    numbers,
    numbers,
    alarm_statuses.several_wishes,
)
hellos = st.builds(Hello, names, incarnations, st.booleans(), st.integers(0, 2**64 - 1))


@st.composite
def limits(draw: Any) -> Limits:
    """One share or many."""
    shares = sorted(draw(st.lists(st.floats(1e-9, 1), min_size=1, max_size=8)))
    values = st.lists(st.floats(0, 2.0**900), min_size=len(shares), max_size=len(shares))
    spe, t2, linear = (draw(values) for _ in range(3))
    linear = draw(st.sampled_from([[], linear]))
    return Limits(tuple(shares), tuple(spe), tuple(t2), draw(numbers), tuple(linear))


@st.composite
def models(draw: Any, *, known: bool = False) -> Model:
    """Of something, of nothing yet, or of a schema that only later versions read.

    known : of something, always
    """
    dim = draw(st.integers(1, 9))
    something = subspaces(dim=dim) | twofolds(width=dim)
    summary = draw(something if known else st.none() | something)
    measured, maxima = draw(st.none() | limits()), draw(st.none() | alarm_statuses.maxima)
    schema = Schema.anonymous(dim)
    if isinstance(summary, KernelSummary):
        schema = kernel_schema(dim, summary.features.dim)
    text = draw(st.sampled_from([schema.canonical, b"", b"a form to come"]))
    if text == schema.canonical and schema.linear:
        measured = measured and replace(measured, linear=())
        maxima = maxima and maxima.replaced("linear")
    fingerprint = parts.fingerprint_of_text(text)
    return Model(
        draw(names),
        draw(versions),
        text,
        fingerprint,
        None if summary is None else relabelled(summary, fingerprint),
        measured,
        draw(counts),
        draw(numbers),
        (draw(reals), draw(reals), draw(reals)),
        created=draw(reals),
        expires=draw(reals),
        maxima=maxima,
        factors=draw(st.just(()) | factors_of(summary)),
    )


@st.composite
def factors_of(draw, summary) -> tuple[Factors, ...]:
    """Factors of each part of a summary, as they arrive."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return wild_factors(rng, summary)


messages = st.one_of(joins, joineds, reports(), answers, hellos, models())


# -- written out -----------------------------------------------------------------------

SKETCH = QuantileSketch.of([0.5, 1.0, 2.0])
SCHEMA = Schema.anonymous(6)
KERNEL = kernel_schema(9, 6)
PARENT = new_incarnation(0, nonce=2**63)


def a_twofold(*, weight: float = 100.0) -> KernelSummary:
    """What a kernel group of 9 channels has learnt: 6 features, 3 columns of each."""
    return KernelSummary(
        subspace_of(6, [5.0, 4.0, 3.0], weight=weight, schema=KERNEL, energies=True),
        subspace_of(9, [9.0, 4.0, 2.0], weight=weight, schema=KERNEL, seed=1, energies=True),
    )


TRAIL = ScoreTrail(28_334_773, bytes([1, 0, 2, 77, 128, 255]))


def a_report(**fields: Any) -> Report:
    """A client's, of everything that a report may hold."""
    said: dict[str, Any] = {
        "stamp": Stamp("press-3", GROUP, new_incarnation(1), 7),
        "final": False,
        "pinned": PARENT,
        "fence": b"",
        "fingerprint": SCHEMA.fingerprint,
        "summary": subspace_of(6, [5.0, 4.0, 3.0], weight=100.0, energies=True),
        "moments": Moments(50, np.ones(6), np.full(6, 9.0)),
        "counts": Counts(100, 2, 1),
        "as_of": EPOCH,
        "synced": True,
        "version": 3,
        "lifetime": 200,
        "census": Census(3, (1, 2)),
        "scores": ScoreSketches(SKETCH, SKETCH, None, alarm_statuses.MAXIMA),
        "alarm_status": alarm_statuses.ALARM_STATUS,
        "trail": NO_TRAIL if fields.get("fence") else TRAIL,
    }
    return Report(**{**said, **fields})


def a_model(**fields: Any) -> Model:
    """A model of the same schema, with limits."""
    said: dict[str, Any] = {
        "group": GROUP,
        "version": 1_700_000_000_123,
        "schema": SCHEMA.canonical,
        "fingerprint": SCHEMA.fingerprint,
        "summary": subspace_of(6, [5.0, 4.0, 3.0], weight=100.0, energies=True),
        "limits": Limits((0.95, 0.99), (1.0, 2.0), (3.0, 4.0), 1000, distance=(5.0, 6.0)),
        "counts": Counts(100, 2, 1),
        "nodes": 3,
        "staleness": (2.0, 8.0, 8.0),
        "created": EPOCH,
        "expires": EPOCH + 600,
        "maxima": alarm_statuses.MAXIMA,
        "factors": (Factors(np.full(6, 0.5), np.full((6, 2), 0.25)),),
    }
    if "summary" in fields:
        said["factors"] = ()  # they go with the summary above
    return Model(**{**said, **fields})


JOIN = Join(
    Stamp("site-7", GROUP, new_incarnation(2), 5),
    b"f" * 16,
    (Left(b"e" * 16, 4),),
    SCHEMA.canonical,
)
LINES = ("extra channel: x",)
JOINED = Joined(JOIN.stamp, Reason.SCHEMA, JOIN.fence, PARENT, True, 9, b"", LINES, True)
ANSWER = Answer(
    JOIN.stamp, Reason.ACK, b"f" * 16, PARENT, True, 5, PARENT, 4, 9, (alarm_statuses.WISH,)
)
HELLO = Hello("site-7", new_incarnation(2), True, 2**63 + 1)
HONEST: dict[str, Message] = {
    "join": JOIN,
    "joined": JOINED,
    "report": a_report(),
    "answer": ANSWER,
    "hello": HELLO,
    "model": a_model(),
}


OF_KERNELS: dict[str, Message] = {
    "report": a_report(
        fingerprint=KERNEL.fingerprint,
        summary=a_twofold(),
        moments=Moments(
            50,
            np.ones(9),
            np.full(9, 9.0),
            Reservoir(
                np.array([1, 2**40, 2**64 - 1], dtype=np.uint64),
                np.arange(12, dtype=np.float32).reshape(3, 4),
            ),
        ),
        scores=ScoreSketches(SKETCH, SKETCH, SKETCH, alarm_statuses.OF_READINGS),
    ),
    "model": a_model(
        schema=KERNEL.canonical,
        fingerprint=KERNEL.fingerprint,
        summary=a_twofold(),
        limits=Limits((0.95, 0.99), (1.0, 2.0), (3.0, 4.0), 1000, (5.0, 6.0)),
        maxima=alarm_statuses.OF_READINGS,
    ),
}
"""The same of a kernel group."""

OF_NARROW: dict[str, Message] = {
    "report": a_report(summary=whole_of(subspace_of(6, [5.0, 4.0, 3.0], weight=100.0), rest=0.5)),
}
"""The same of a narrow group, whose reports hold a whole scatter."""

BEFORE = Schema.anonymous(5)
OF_EARLIER: dict[str, Message] = {
    "report": a_report(
        fence=b"f" * 16,
        summary=None,
        earlier=EarlierSums(
            BEFORE.fingerprint,
            subspace_of(5, [5.0, 4.0, 3.0], weight=40.0, schema=BEFORE, energies=True),
            Counts(40, 1, 1),
        ),
    ),
}
"""The same of an aggregator while a scale is measured, with sums under an earlier schema."""


def form_of(name: str, honest: Mapping[str, Message] = HONEST) -> tuple[Any, Any]:
    """Return a message of that name as protobuf, and the part of it that is the message."""
    if name in ("hello", "model"):
        form = pb.WatchResponse.FromString(codec.encode(honest[name]))
        return form, getattr(form, name)
    form = getattr(forms, name.upper()).made(honest[name])
    return form, form


def travelled(message: Message, *, coarse: bool = False) -> Message:
    """Return what arrives of a message."""
    return codec.decode(codec.kind_of(message), codec.encode(message, coarse=coarse))
