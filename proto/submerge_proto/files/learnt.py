"""packed(), unpacked(): what was learnt, as the bytes of a model file of form 3, and back.

One line of text, `submerge model 3 {"bytes": 10240, "sha256": "..."}`, and a message. The digest
refuses a file that a disk or a mail program has changed; it keeps no forger out. So what passes it
is checked as foreign bytes are: the model by `codec.decode`, the rest by the checks of reports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from submerge import PeerError, Schema, SubmergeError, UsageError
from submerge.client.alarms.detector import DetectorState
from submerge.client.monitor_state import MonitorState
from submerge.errors import whole
from submerge.history.knowledge import Learnt
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.messages import Model
from submerge.protocol.summaries import Piece, Subspaces, Summary, summary_of
from submerge.stats.moments import Moments
from submerge.stats.resolution import Resolution
from submerge.stats.stuck import Habits, RunLengths
from submerge_proto.files import chunks
from submerge_proto.files.chunks import MOST_MACHINES, ascending
from submerge_proto.kept import monitor as kept_monitor
from submerge_proto.v1 import kept_pb2, summary_pb2
from submerge_proto.v1 import learnt_pb2 as pb
from submerge_proto.wire import alarms, bounds, codec, parts, scores, sizes, summaries, triangles
from submerge_proto.wire.fields import number, within
from submerge_proto.wire.sizes import ROUNDING, TINY, held_by

BELOW = 1e-9
"""How far an eigenvalue of a scatter may lie below 0, over the trace: rounding is far smaller."""


def put(message: pb.Learnt, summary: Summary | None) -> None:
    """Put a summary into a message; one that has faded to nothing is left out."""
    if summary is None or summary.weight < sizes.LEAST:
        return
    summaries.put(message, summary_of(*map(_within, summary.pieces)), exact=True)


def of(message: pb.Learnt, schema: Schema) -> Summary | None:
    found = summaries.of(message, schema.fingerprint, kept=True)
    if found is None:
        return None
    # The rank does not matter: this checks the dimensions against the schema's.
    if not Subspaces(schema.dim).fits(schema, found):
        raise PeerError("what merges is of other dimensions than its schema's", kind="shape")
    for each, piece in zip((message.subspace, message.linear), found.pieces, strict=False):
        _check(each, piece)
    return found


def _within(piece: Piece) -> Piece:
    """Return a piece within the bounds of sums; itself if it is."""
    if isinstance(piece, WholeScatter):
        return triangles.saturated_whole(piece)
    return sizes.saturated(piece)


def _check(message: summary_pb2.Subspace, piece: Piece) -> None:
    """Compare the numbers of a piece with each other, as those of a report are."""
    sizes.check_sizes(message, piece.mean)
    if isinstance(piece, WholeScatter):
        if piece.held.ndim == 2:
            _check_scatter(piece)
        held = triangles.channels_held(piece)
    else:
        held = held_by(piece.basis.T, piece.sigma)
    if piece.channel_energies is not None:
        bound = min(piece.spectral_bound, piece.energy)
        sizes.check_channels(piece.channel_energies, held, piece.energy, bound)


def _check_scatter(whole: WholeScatter) -> None:
    """Refuse a symmetric matrix that is no scatter: it has an eigenvalue below 0, or no energy."""
    trace = float(np.trace(whole.held))
    if not trace * (1 - ROUNDING) <= whole.energy + TINY:
        raise PeerError("energy must not be less than the scatter holds", kind="energy")
    with np.errstate(all="ignore"):
        unit = whole.held / trace if trace > 0 else whole.held
        small = np.abs(unit).max() <= 1 + BELOW
    try:
        if not small or (not trace > 0 and whole.held.any()):
            raise np.linalg.LinAlgError
        np.linalg.cholesky(unit + BELOW * np.eye(whole.dim))
    except np.linalg.LinAlgError as error:
        raise PeerError("a scatter must be positive semi-definite", kind="range") from error


FORM = 3
MARK = b"submerge model "  # how a model file begins, before the number of its form

LONGEST_LINE = 200
MOST_BYTES = 1 << 30  # longest file that is read
MOST_PARTS = 1 << 18  # most fields of the message: two a machine, one a file, and a few

MOST_LAGS, MOST_PERIOD_S = 1 << 16, 1e9
MOST_CONDITION = 10_000


class LearntFile(NamedTuple):
    """What a file holds; a rank of 0 is not known, a `linear_rank` of 0 is the default."""

    learnt: Learnt
    rank: int = 0
    linear_rank: int = 0


def packed(learnt: Learnt, *, rank: int = 0, linear_rank: int = 0) -> bytes:
    """Return what was learnt as the bytes of a file; the same gives the same bytes."""
    try:
        payload = _message(learnt, rank, linear_rank).SerializeToString(deterministic=True)
    except (ValueError, OverflowError) as error:  # not a number of the field's type, or no text
        raise _unsaved(error) from error
    about = {"bytes": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    data = b"%s%d %s\n%s" % (MARK, FORM, json.dumps(about).encode(), payload)
    try:
        unpacked(data)
    except PeerError as error:
        raise _unsaved(error) from error
    return data


def unpacked(data: bytes) -> LearntFile:
    payload = _payload(data)
    try:
        bounds.check(pb.Learnt, payload, MOST_PARTS)
        return _read(pb.Learnt.FromString(payload))
    except (DecodeError, UnicodeDecodeError) as error:
        raise PeerError("a message that cannot be read") from error
    except (ValueError, SubmergeError) as error:
        raise error if isinstance(error, PeerError) else PeerError(str(error)) from error


def of_earlier_form(form: int) -> PeerError:
    """Return the error for a file of form 1, a message alone, or 2, with a line before it."""
    return PeerError(f"form {form} of it, from before 28 November 2026: fit or save it again")


def model_of(data: bytes) -> tuple[Model, Schema]:
    model = codec.decode("watch", data)
    if not isinstance(model, Model):
        raise PeerError("these bytes are a hello")
    schema = Schema.parse(model.schema)
    # The rank does not matter: this checks the dimensions against the schema's.
    if model.summary is not None and not Subspaces(schema.dim).fits(schema, model.summary):
        raise PeerError("a summary of other dimensions than its schema's")
    return model, schema


def _unsaved(why: Exception) -> UsageError:
    return UsageError(f"expected what can be saved and read again, got: {why}")


def _payload(data: bytes) -> bytes:
    """Return the message below the first line, undamaged."""
    line, end, _ = data[:LONGEST_LINE].partition(b"\n")
    form, _, facts = line.removeprefix(MARK).partition(b" ")
    if not line.startswith(MARK):
        raise PeerError("expected a first line that says so, got other bytes")
    if form == b"2":
        raise of_earlier_form(2)
    if form != b"%d" % FORM:
        number = parts.text(form.decode(errors="replace"), 20)
        raise PeerError(f"form {number!r} of it: update submerge")
    if len(data) > MOST_BYTES:
        raise PeerError(f"expected at most {MOST_BYTES:,} bytes, got more", kind="oversize")
    try:
        about = json.loads(facts)
    except (ValueError, RecursionError):
        about = None
    if not end or not isinstance(about, dict):
        raise PeerError("a first line that cannot be read")
    payload = data[len(line) + 1 :]
    if about.get("bytes") != len(payload):
        said = parts.text(str(about.get("bytes")), 20)
        raise PeerError(
            f"{said} bytes of it were written, and {len(payload)} are there: copy it again"
        )
    if about.get("sha256") != hashlib.sha256(payload).hexdigest():
        raise PeerError("damaged: its bytes are not those that were written; copy it again")
    return payload


def _message(learnt: Learnt, rank: int, linear_rank: int) -> pb.Learnt:
    message = pb.Learnt(
        model=codec.encode(learnt.model),
        origin=learnt.origin,
        monitors=monitors(learnt.monitors),
        lags=learnt.lags,
        period_s=learnt.period_s,
        when=learnt.when,
        rank=0 if learnt.model.rank else rank,
        linear_rank=linear_rank,
    )
    put(message, learnt.summary)
    if learnt.moments is not None:
        message.moments.CopyFrom(parts.MOMENTS.made(learnt.moments))
    if learnt.sketches is not None:
        message.scores.CopyFrom(scores.SCORES.made(learnt.sketches))
    if learnt.chunks:
        message.chunks.CopyFrom(chunks.chunks(learnt.chunks))
    return message


def _read(message: pb.Learnt) -> LearntFile:
    model, schema = model_of(message.model)
    lags = whole("lags", message.lags, least=1, most=MOST_LAGS)
    learnt = Learnt(
        model=model,
        summary=of(message, schema),
        moments=_moments_of(message, schema) if message.HasField("moments") else None,
        sketches=scores.SCORES.read(message.scores) if message.HasField("scores") else None,
        chunks=chunks.chunks_of(message.chunks),
        origin=chunks.name_of("an origin", message.origin),
        monitors=monitors_of(message.monitors, schema, lags),
        lags=lags,
        period_s=within("period_s", message.period_s, MOST_PERIOD_S),
        when=_condition_of(message.when),
    )
    ranks = number("rank", message.rank), number("linear_rank", message.linear_rank)
    return LearntFile(learnt, *ranks)


def _condition_of(text: str) -> str:
    """Check the length and the signs of a condition; whoever applies it parses it."""
    if len(text) > MOST_CONDITION or not text.isprintable():
        raise PeerError("a condition that is too long or unprintable", kind="range")
    return text


def _moments_of(message: pb.Learnt, schema: Schema) -> Moments:
    held = parts.MOMENTS.read(message.moments)
    if len(held.mean) != schema.width:
        raise PeerError(
            f"expected moments of {schema.width} channels, got {len(held.mean)}", kind="shape"
        )
    return held


NO_ORDERS = DesiredState("machine", 0)
"""In place of what an operator wants of a node: a file holds no orders. A machine may have a name
that no node can have."""

OF_CHANNELS = ("own", "run_lengths", "habits", "residual_scale", "offset", "resolution")
"""What must have the width of the schema, or of its channels."""

NOT_NEGATIVE = frozenset(
    (
        *("weight", "scatter", "error", "learnt", "squares", "count", "span_s"),
        *("run", "longest", "at_lowest", "at_highest", "step", "before", "seen"),
    )
)
"""Numbers of channels that are counts, times or sums of squares."""


def monitors(value: Iterable[tuple[str, MonitorState]]) -> list[pb.MachineMonitor]:
    ordered = sorted(value, key=lambda each: each[0])
    return [pb.MachineMonitor(machine=name, state=_state(state)) for name, state in ordered]


def monitors_of(
    messages: Sequence[pb.MachineMonitor], schema: Schema, lags: int
) -> tuple[tuple[str, MonitorState], ...]:
    names = ascending("machines", [each.machine for each in messages], MOST_MACHINES)
    return tuple(
        (name, _state_of(each.state, name, schema, lags))
        for name, each in zip(names, messages, strict=True)
    )


def without_alarms(state: MonitorState) -> MonitorState:
    """Return what a file holds of a monitor."""
    seen = state.detector
    detector = DetectorState(excused=seen.excused, hours=seen.hours, highest=seen.highest)
    return replace(
        state, detector=detector, desired=NO_ORDERS, reference=None, held=None, level=None
    )


def _state(state: MonitorState) -> bytes:
    message = kept_monitor.MONITOR.made(without_alarms(state))
    message.ClearField("desired")
    # The order of the kinds says nothing: the same state is the same bytes.
    hours = message.detector.hours
    for several in (hours.windows, hours.spared, message.detector.highest):
        several.sort(key=attrgetter("of"))
    return bytes(message.SerializeToString(deterministic=True))


def _state_of(data: bytes, machine: str, schema: Schema, lags: int) -> MonitorState:
    bounds.check(kept_pb2.NodeMonitor, data)
    message = kept_pb2.NodeMonitor.FromString(data)
    if message.detector.alarms or any(
        map(message.HasField, ("reference", "held", "level", "desired"))
    ):
        raise PeerError(f"the monitor of {machine}: expected no alarm and no order, got one")
    message.desired.CopyFrom(alarms.DESIRED_STATE.made(NO_ORDERS))
    with np.errstate(invalid="ignore"):  # a number that is too large for a count: refused below
        state = kept_monitor.MONITOR.read(message)
    if state.fingerprint != schema.fingerprint:
        raise PeerError(f"the monitor of {machine} is of another schema", kind="schema")
    _check_widths(state, machine, schema, lags)
    _check_numbers(state, machine, schema)
    return replace(state, desired=DesiredState(machine, 0))


def _check_widths(state: MonitorState, machine: str, schema: Schema, lags: int) -> None:
    channels, rest = divmod(schema.width, lags)
    fitting = state.of_schema(schema, channels)
    for part in OF_CHANNELS:
        held = getattr(state, part)
        if rest or (held is not None and held is not getattr(fitting, part)):
            raise PeerError(
                f"the monitor of {machine}: expected {channels} channels in each part, and all or"
                f" none of run lengths, habits and residual scale: {part.replace('_', ' ')} does"
                " not fit",
                kind="shape",
            )


def _check_numbers(state: MonitorState, machine: str, schema: Schema) -> None:
    """Refuse numbers that no rows give, or that overflow in sums."""
    for part in OF_CHANNELS:
        held = getattr(state, part)
        for name in _fields(held):
            least = 0.0 if name in NOT_NEGATIVE else -sizes.LARGEST
            numbers = np.asarray(getattr(held, name) if name else held, dtype=np.float64)
            # NaN stands for a channel that was never heard, where it passed the record's own check.
            if ((numbers < least) | (numbers > sizes.LARGEST)).any():
                raise PeerError(
                    f"the monitor of {machine}: {name or part} must be {least:g} to"
                    f" {sizes.LARGEST:g}",
                    kind="range",
                )
    hours, excused = state.detector.hours, state.detector.excused
    for sketch in (each for both in hours.windows.values() for each in both):
        number("scores", sketch.n, parts.MOST_READINGS)
    for size in (hours.watched_s, hours.allowed, *hours.spared.values()):
        within("a monitored time, or a limit", size)
    if any(channel >= schema.width for channel in excused) or len(excused) > schema.width:
        raise PeerError(f"the monitor of {machine}: expected channels of its schema", kind="range")


def _fields(held: Any) -> Sequence[str]:
    """Return the names of the numbers in a part; "" where it is one array."""
    if held is None:
        return ()
    if isinstance(held, Habits | RunLengths | Resolution):
        return held._fields
    if isinstance(held, np.ndarray):
        return ("",)
    names = [each.name for each in fields(held)]
    return [name for name in names if getattr(held, name) is not None]
