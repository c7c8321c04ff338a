"""Foreign bytes: what nobody can mean is refused, and costs no more than it weighs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError, Schema
from submerge.protocol.messages import Message, Model, Reason, Report
from submerge.protocol.score_trail import LAST_MINUTE, MINUTES
from submerge.protocol.summaries import KernelSummary
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, columns, forms
from support.alarm_statuses import ALARM_STATUS
from support.damage import damaged
from support.wire import (
    HONEST,
    OF_EARLIER,
    OF_KERNELS,
    OF_NARROW,
    a_report,
    arrived,
    form_of,
    kernel_schema,
    reported,
    subspace_of,
    travelled,
)

# -- what nobody can mean -----------------------------------------------------------

Lie = Callable[[Any], None]


def _set(place: str, value: Any) -> Lie:
    """Return what puts a value into a field, `a.b.c`; bytes, numbers, or arrays as float64."""

    def lie(message: Any) -> None:
        *path, last = place.split(".")
        for name in path:
            message = getattr(message, name)
        if isinstance(value, list | np.ndarray):
            setattr(message, last, np.asarray(value, dtype="<f8").tobytes())
        else:
            setattr(message, last, value)

    return lie


def _fill(place: str, values: list[Any]) -> Lie:
    """Return what replaces a repeated field."""

    def lie(message: Any) -> None:
        *path, last = place.split(".")
        for name in path:
            message = getattr(message, name)
        del getattr(message, last)[:]
        getattr(message, last).extend(values)

    return lie


def _within(place: str, lie: Lie) -> Lie:
    """Return what lies in a message within, or in the first of several."""

    def within(message: Any) -> None:
        for name in place.split("."):
            message = getattr(message, name)
        lie(message if hasattr(message, "ListFields") else message[0])

    return within


def _columns(change: Callable[[np.ndarray], Any]) -> Lie:
    """Return what changes the columns, (k, dim), in place."""

    def lie(message: Any) -> None:
        rows = np.frombuffer(message.subspace.columns, "<f4").reshape(3, -1).copy()
        change(rows)
        message.subspace.columns = rows.tobytes()

    return lie


def _put(row: int, column: int, value: float) -> Lie:
    return _columns(lambda rows: rows.__setitem__((row, column), value))


def _beside(lie: Lie) -> Lie:
    """Return what does to the readings' subspace as is done to the other."""

    def beside(message: Any) -> None:
        holder = pb.ReportRequest(subspace=message.linear)
        lie(holder)
        message.linear.CopyFrom(holder.subspace)

    return beside


def _both(*lies: Lie) -> Lie:
    """Return what tells several lies at once."""

    def told_together(message: Any) -> None:
        for lie in lies:
            lie(message)

    return told_together


def _first(field: str, values: list[float]) -> Lie:
    """Return what replaces numbers of the first factors."""
    return _within("factors", _set(field, np.array(values, dtype="<f4").tobytes()))


def _points(*values: float) -> Lie:
    """Return what replaces a sample's points, 4 for each of 3 readings."""
    return _set("moments.points", np.resize(np.array(values, dtype="<f4"), 12).tobytes())


def _priorities(*values: int) -> Lie:
    """Return what replaces a sample's priorities."""
    return _set("moments.priorities", np.array(values, dtype="<u8").tobytes())


def _tilt(rows: np.ndarray) -> None:
    rows[0] += 1.1e-3 * rows[1]


def _signalling(message: Any) -> None:
    message.subspace.columns = b"\x01\x00\x80\x7f" + message.subspace.columns[4:]


NAN, INF = float("nan"), float("inf")

HEADER: dict[str, Lie] = {
    "no name": _set("header.node", ""),
    "a long name": _set("header.node", "x" * 65),
    "a name with a slash": _set("header.node", "a/b"),
    "a name with a wildcard": _set("header.group", "+"),
    "a name with a newline": _set("header.group", "room\n"),
    "a name in another script": _set("header.group", "пресс"),
    "created too late": _set("header.incarnation.created_ms", 2**61 + 1),
    "a seq that nobody reaches": _set("header.seq", 2**62 + 1),
}


def _cut(place: str, n: int) -> Lie:
    """Return what leaves out the last bytes of a field."""
    holder, field = place.split(".")

    def lie(message: Any) -> None:
        part = getattr(message, holder)
        setattr(part, field, getattr(part, field)[:-n])

    return lie


def _triangle(change: Callable[[np.ndarray], Any]) -> Lie:
    """Return what changes a packed triangle in place."""

    def lie(message: Any) -> None:
        packed = np.frombuffer(message.subspace.columns, "<f4").copy()
        change(packed)
        message.subspace.columns = packed.tobytes()

    return lie


def _energies(change: Callable[[np.ndarray], Any]) -> Lie:
    """Return what changes energies of channels in place; nothing may be missing from eigenvalues.

    With a bound as large as the energy, only their sum could be wrong.
    """

    def lie(message: Any) -> None:
        energies = np.frombuffer(message.subspace.channel_energies, "<f8").copy()
        change(energies)
        message.subspace.channel_energies = energies.tobytes()
        message.subspace.spectral_bound = 0.0

    return lie


def _moved(energies: np.ndarray) -> None:
    """Give another channel what one of them holds, and a hundredth more: the sum stays."""
    energies[1] += energies[0] * 0.99
    energies[0] *= 0.01


def _negative(energies: np.ndarray) -> None:
    """Take a little more of one than there is; the sum stays."""
    taken = energies[1] + 1e-3
    energies[1] -= taken
    energies[0] += taken


ENERGIES: dict[str, Lie] = {
    "one less": _cut("subspace.channel_energies", 8),
    "half a number less": _cut("subspace.channel_energies", 4),
    "not a number": _energies(lambda each: each.__setitem__(2, NAN)),
    "infinite": _energies(lambda each: each.__setitem__(2, INF)),
    "one negative": _energies(_negative),
    "of a larger sum": _energies(lambda each: each.__imul__(1 + 2e-5)),
    "of a smaller sum": _energies(lambda each: each.__imul__(1 - 2e-5)),
    "of a sum beyond float64": _energies(lambda each: each.__setitem__(slice(None), 1.7e308)),
    "less than is held of one": _energies(_moved),
}

SUBSPACE: dict[str, Lie] = {
    "no dimension": _set("subspace.dim", 0),
    "another dimension": _set("subspace.dim", 5),
    "more dimensions than there are": _set("subspace.dim", 2**32 - 1),
    "a sigma more": _set("subspace.sigma", [5.0, 4, 3, 2]),
    "a sigma less": _set("subspace.sigma", [5.0, 4]),
    "sigma of half a number": _set("subspace.sigma", b"\0" * 20),
    "sigma is not a number": _set("subspace.sigma", [5.0, NAN, 3]),
    "sigma is infinite": _set("subspace.sigma", [INF, 4, 3]),
    "sigma ascends": _set("subspace.sigma", [4.0, 5, 3]),
    "sigma is negative": _set("subspace.sigma", [5.0, 4, -3]),
    "sigma has squares beyond float64": _set("subspace.sigma", [1e200, 1e200, 3]),
    "more directions than dimensions": _set("subspace.sigma", [1.0] * 7),
    "mean of another length": _set("subspace.mean", [0.0] * 7),
    "mean is not a number": _set("subspace.mean", [0.0, 0, NAN, 0, 0, 0]),
    "mean is infinite": _set("subspace.mean", [0.0, 0, -INF, 0, 0, 0]),
    "mean is too large to square": _set("subspace.mean", [0.0, 0, 0, 0, 0, -1.9e19]),
    "weight zero": _set("subspace.weight", 0.0),
    "weight negative": _set("subspace.weight", -1.0),
    "weight next to nothing": _set("subspace.weight", 2.0**-601),
    "weight is not a number": _set("subspace.weight", NAN),
    "weight too large": _set("subspace.weight", 3.5e38),
    "energy below what sigma holds": _set("subspace.energy", 49.9),
    "energy negative": _set("subspace.energy", -1.0),
    "energy is not a number": _set("subspace.energy", NAN),
    "energy is infinite": _set("subspace.energy", INF),
    "energy of readings too large to square": _set("subspace.energy", 100 * 6 * 3.5e38),
    "bound negative": _set("subspace.spectral_bound", -1e-9),
    "bound is not a number": _set("subspace.spectral_bound", NAN),
    "bound is infinite": _set("subspace.spectral_bound", INF),
    "columns not orthogonal": _columns(_tilt),
    "a column too long": _columns(lambda rows: rows.__imul__(1.0006)),
    "a column twice": _columns(lambda rows: rows.__setitem__(1, rows[0])),
    "a column of zeros": _columns(lambda rows: rows.__setitem__(2, 0.0)),
    "columns hold NaN": _put(0, 0, NAN),
    "columns hold a NaN that signals": _signalling,
    "columns hold infinity": _put(1, 2, -INF),
    "columns hold numbers too large to square": _put(1, 2, 3e38),
    "columns as float64": _set("subspace.columns", np.eye(6)[:3]),
    "columns missing": _set("subspace.columns", b""),
    "exact columns": _set("subspace.exact", b"\0" * 144),
    "coarse columns without scales": _set("subspace.coarse", b"\x7f" * 6),
    "half a scale": _set("subspace.scales", b"\0\0"),
    "a scale without a column": _set("subspace.scales", b"\0\0\x80\x3f"),
    "more scales than columns": _set("subspace.scales", b"\0\0\x80\x3f" * 4),
    "directions, said to be a whole scatter": _set("subspace.whole", True),
    **{f"energies of channels: {what}": lie for what, lie in ENERGIES.items()},
}

WHOLE: dict[str, Lie] = {
    **{f"energies of channels: {what}": lie for what, lie in ENERGIES.items()},
    "no dimension": _set("subspace.dim", 0),
    "more dimensions than there are": _set("subspace.dim", 2**32 - 1),
    "said to be directions": _set("subspace.whole", False),
    "with sigma": _set("subspace.sigma", [1.0]),
    "with coarse columns": _set("subspace.coarse", b"\x7f" * 6),
    "with scales": _set("subspace.scales", b"\0\0\x80\x3f"),
    "of a number less": _cut("subspace.columns", 4),
    "of half a number less": _cut("subspace.columns", 2),
    "none": _set("subspace.columns", b""),
    "as float64": _set("subspace.exact", b"\0" * 8 * 21),
    "not a number": _triangle(lambda R: R.__setitem__(3, NAN)),
    "infinite": _triangle(lambda R: R.__setitem__(20, INF)),
    "too large to square in float32": _triangle(lambda R: R.__setitem__(0, 3e38)),
    "more than the energy": _triangle(lambda R: R.__imul__(1.00002)),
    "mean of another length": _set("subspace.mean", [0.0] * 7),
    "mean is not a number": _set("subspace.mean", [0.0, 0, NAN, 0, 0, 0]),
    "mean is too large to square": _set("subspace.mean", [0.0, 0, 0, 0, 0, -1.9e19]),
    "weight zero": _set("subspace.weight", 0.0),
    "weight too large": _set("subspace.weight", 3.5e38),
    "weight of more readings than there are": _set("subspace.weight", 101.0),
    "energy is not a number": _set("subspace.energy", NAN),
    "energy of readings too large to square": _set("subspace.energy", 100 * 6 * 3.5e38),
    "bound negative": _set("subspace.spectral_bound", -1e-9),
    "readings beside it": lambda m: m.linear.CopyFrom(m.subspace),
}
"""Of a whole scatter, 21 numbers for 6 dimensions."""

READ: dict[str, Lie] = {
    "readings beyond what floats count": _set("counts.learnt", 2**53 + 1),
    "withheld likewise": _set("counts.withheld", 2**53 + 1),
    "lost likewise": _set("counts.lost", 2**64 - 1),
}

MAXIMA: dict[str, Lie] = {
    "cut short": _set("spe", b"\0\x03\0\x01"),
    "half a head": _set("t2", b"\0"),
    "too long": _set("t2", b"\0" * 2000),
    "more buckets than any has": _set("spe", b"\0\xa1\0\x01" + b"\x01\x01" * 160),
    "empty buckets": _set("spe", b"\0\x01\0\0"),
    "out of reach": _set("t2", b"\0\x01\xff\xff\xff\xff\x0f\x01"),
    "coarser than need be": _set("t2", b"\x05\x01\0\x01"),
    "more than floats count": _set("linear", b"\0\x01\0" + b"\xff" * 7 + b"\x7f"),
    "of a channel, out of reach": _set("channel", b"\0\x01\xff\xff\xff\xff\x0f\x01"),
    "more blocks than there are": _set("longest", 2**62 + 1),
    "of blocks of no length": _set("block_s", NAN),
    "of blocks of three seconds": _set("block_s", 3.0),
    "of blocks of half a second": _set("block_s", 0.5),
    "of blocks that last too long": _set("block_s", 2.0**25),
    "with more lengths than there are": lambda m: m.lengths.extend([1] * 26),
    "of more nodes of a length than there are": lambda m: m.lengths.append(2**40 + 1),
}

ALARM: dict[str, Lie] = {
    "of nobody": _set("node", ""),
    "of no name": _set("node", "a/b"),
    "of another": _set("node", "press-4"),
    "beyond all numbers": _set("number", 2**62 + 1),
    "begun at no time": _set("began_s", NAN),
    "begun before there was time": _set("began_s", -1.0),
    "begun when no calendar goes on": _set("began_s", 253_402_300_800.0),
    "worst at no time": _set("peaked_s", INF),
    "worst before there was time": _set("peaked_s", -1e-300),
    "worst when no calendar goes on": _set("peaked_s", 1e300),
    "over at no time": _set("ended_s", NAN),
    "over before there was time": _set("ended_s", -INF),
    "over when no calendar goes on": _set("ended_s", 1e300),
    "that came to no number": _set("worst", NAN),
    "without bounds": _set("worst", INF),
    "below nothing": _set("worst", -1.0),
    "of a share that is none": _within("top", _set("share", NAN)),
    "of a share below nothing": _within("top", _set("share", -1e-9)),
    "of more than all": _within("top", _set("share", 1.0 + 1e-9)),
    "of four channels": lambda m: m.top.add(channel="x", share=0.1),
    "whose onset is a share that is none": lambda m: m.first.add(channel="x", share=NAN),
    "whose onset is of four channels": lambda m: m.first.extend(4 * [m.top[0]]),
    "of a value that is none": lambda m: m.deviations.add(channel="x", value=NAN),
    "that expects no number": lambda m: m.deviations.add(channel="x", expected=INF),
    "of a value beyond all sensors": lambda m: m.deviations.add(channel="x", value=-1e101),
    "of four values": lambda m: [m.deviations.add(value=1.0) for _ in range(4)],
    "by a version that nobody reaches": _set("model_version", 2**63),
    "of more readings than floats count": _set("withheld", 2**53 + 1),
}

ALARMS: dict[str, Lie] = {
    **{f"an alarm {what}": _within("alarm_status.alarms", lie) for what, lie in ALARM.items()},
    "too many alarms": lambda m: m.alarm_status.alarms.extend([m.alarm_status.alarms[0]] * 63),
    **{
        f"a node twice: {state}": _set(f"alarm_status.states.{state}", 2)
        for state in ("learning", "armed", "alarm", "paused", "stale")
    },
    "a node in two states": _set("alarm_status.states.armed", 1),
    "more open than are told": _set("alarm_status.open", 3),
    "watched for no time": _set("alarm_status.watched_s", NAN),
    "watched for less than none": _set("alarm_status.watched_s", -1.0),
    "watched for longer than there is": _set("alarm_status.watched_s", 2.0**62 * (1 + 1e-9)),
    "allowed is no number": _set("alarm_status.allowed", INF),
    "allowed is below nothing": _set("alarm_status.allowed", -1e-9),
    "allowed without end": _set("alarm_status.allowed", 1e19),
    "raised without end": _set("alarm_status.raised", 2**62 + 1),
    "confirmed without end": _set("alarm_status.confirmed", 2**62 + 1),
    "a wait of no length": _set("alarm_status.armed_in_s", NAN),
    "a wait before it began": _set("alarm_status.armed_in_s", -2.0),
    "a wait without end": _set("alarm_status.armed_in_s", 1e19),
    "provisional for no rows": _set("alarm_status.provisional_rows", NAN),
    "provisional for less than none": _set("alarm_status.provisional_rows", -1.0),
    "a wish that nobody has": _set("alarm_status.desired", 2**62 + 1),
}

SITE: dict[str, Lie] = {
    **{
        f"more nodes than there are: {state}": _set(f"alarm_status.states.{state}", 2**40 + 1)
        for state in ("learning", "armed", "alarm", "paused", "stale")
    },
    "more open alarms than there are nodes": _set("alarm_status.open", 2**40 + 1),
    "an alarm of no name": _within("alarm_status.alarms", _set("node", "a/b")),
    "a trail of one node": _set("trail.levels", b"\1"),
}

REPORT: dict[str, Lie] = {
    **HEADER,
    **SUBSPACE,
    **READ,
    "pinned in the far future": _set("pinned.created_ms", 2**63),
    "a short fence": _set("fence", b"f" * 15),
    "a long fence": _set("fence", b"f" * 17),
    "no fingerprint": _set("fingerprint", b""),
    "a fingerprint in hex": _set("fingerprint", b"ab" * 32),
    "a time that is none": _set("as_of_s", NAN),
    "a time without end": _set("as_of_s", INF),
    "a certificate that ends at no time": _set("certified_until_s", NAN),
    "a certificate that ends when no calendar goes on": _set("certified_until_s", 1e300),
    "a certificate that ended before there were any": _set("certified_until_s", -1.0),
    "a version that nobody reaches": _set("model_version", 2**63),
    "a trail of no level": _set("trail.levels", b""),
    "a trail of too many levels": _set("trail.levels", bytes(MINUTES + 1)),
    "a trail that ends when no calendar goes on": _set("trail.last_minute", LAST_MINUTE + 1),
    "a trail that began before there were any": _set("trail.last_minute", 0),
    "more readings than a life has": _set("lifetime", 2**62 + 1),
    "readings that weigh more than one each": _set("subspace.weight", 100.01),
    "nothing learnt, and a summary": _set("counts.learnt", 0),
    "moments of more readings than there are": _set("moments.count", 101),
    "moments of none": _set("moments.count", 0),
    "moments of too many": _set("moments.count", 2**53 + 1),
    "moments of half a number": _set("moments.mean", b"\0" * 12),
    "moments of no channel": lambda m: (_set("moments.mean", b"")(m), _set("moments.m2", b"")(m)),
    "moments of unequal lengths": _set("moments.m2", [9.0] * 5),
    "deviations negative": _set("moments.m2", [9.0, 9, 9, 9, 9, -1e-300]),
    "deviations are not numbers": _set("moments.m2", [9.0, 9, 9, 9, 9, NAN]),
    "deviations too large": _set("moments.m2", [9.0, 9, 9, 9, 9, 51e280]),
    "means are not numbers": _set("moments.mean", [NAN] * 6),
    "means infinite": _set("moments.mean", [INF] * 6),
    "means too large": _set("moments.mean", [1.1e140] * 6),
    "more clients than there are": _set("census.nodes", 2**40 + 1),
    "more silent clients than there are": _fill("census.ages", [2**40 + 1]),
    "too many bins": _fill("census.ages", [1] * 65),
    **ALARMS,
    **{f"peaks: {what}": _within("scores.maxima", lie) for what, lie in MAXIMA.items()},
    "a sketch of distances cut short": _set("scores.distance", b"\0\x03\0\x01"),
    "a sketch without a head": _set("scores.spe", b""),
    "a sketch cut short": _set("scores.spe", b"\0\x03\0\x01"),
    "a sketch that is too long": _set("scores.t2", b"\0" * 300),
    "a sketch with empty buckets": _set("scores.t2", b"\0\x01\0\0"),
    "a sketch out of reach": _set("scores.t2", b"\0\x01\xff\xff\xff\xff\x0f\x01"),
    "a sketch coarser than it need be": _set("scores.t2", b"\x05\x01\0\x01"),
    "more scores than floats count": _set("scores.t2", b"\0\x01\0" + b"\xff" * 7 + b"\x7f"),
}

FACTORS: dict[str, Lie] = {
    "factors of two subspaces": lambda m: m.factors.add().CopyFrom(m.factors[0]),
    "factors of nothing": lambda m: m.ClearField("subspace"),
    "noise of a channel too few": _first("noise", [0.5] * 5),
    "noise of half a channel": lambda m: setattr(m.factors[0], "noise", b"\0" * 22),
    "no noise": _first("noise", []),
    "noise is not a number": _first("noise", [0.5, 0.5, 0.5, 0.5, 0.5, NAN]),
    "noise is zero": _first("noise", [0.5, 0.5, 0.5, 0.5, 0.5, 0.0]),
    "noise is negative": _first("noise", [0.5, 0.5, 0.5, 0.5, 0.5, -1.0]),
    "noise is infinite": _first("noise", [0.5, 0.5, 0.5, 0.5, 0.5, INF]),
    "noise too large": _first("noise", [0.5, 0.5, 0.5, 0.5, 0.5, 3.2e38]),
    "noise too small beside directions": _both(_first("loadings", []), _first("noise", [1e-9] * 6)),
    "noise too small beside loadings": _first("noise", [1e-9] * 6),
    "loadings of a channel too many": _first("loadings", [1.0] * 7),
    "loadings of half a channel": lambda m: setattr(m.factors[0], "loadings", b"\0" * 22),
    "more loadings than channels": _first("loadings", [0.1] * 42),
    "a loading is not a number": _first("loadings", [1.0, 1, 1, 1, 1, NAN]),
    "a loading is infinite": _first("loadings", [1.0, 1, 1, 1, 1, -INF]),
    "a loading is too large": _both(
        _first("loadings", [3.2e38] * 6), _first("noise", [2.9e38] * 6)
    ),
}

MODEL: dict[str, Lie] = {
    **{name: lie for name, lie in HEADER.items() if "group" in str(lie.__closure__)},
    "a group that is no name": _set("header.group", "a b"),
    **SUBSPACE,
    **READ,
    "a version that nobody reaches": _set("version", 2**63),
    "another schema's dimension": _set("schema", Schema.anonymous(7).canonical),
    "a schema of more names than memory holds": _set("schema", Schema.anonymous(2**40).canonical),
    "more nodes than there are": _set("nodes", 2**62 + 1),
    "a time that is none": _set("created_s", NAN),
    "an end that is none": _set("expires_s", INF),
    "silence that is no time": _set("staleness_p99_s", NAN),
    "limits of unequal lengths": _fill("limits.spe", [1.0]),
    "too many limits": lambda m: [
        _fill(f"limits.{name}", [0.5] * 65)(m) for name in ("shares", "spe", "t2")
    ],
    "no limits": lambda m: [_fill(f"limits.{name}", [])(m) for name in ("shares", "spe", "t2")],
    "a limit is not a number": _fill("limits.spe", [1.0, NAN]),
    "a limit is infinite": _fill("limits.t2", [1.0, INF]),
    "a limit is negative": _fill("limits.t2", [1.0, -1.0]),
    "a share of nothing": _fill("limits.shares", [0.0, 0.99]),
    "a share above all": _fill("limits.shares", [0.95, 1.01]),
    "a share that is none": _fill("limits.shares", [0.95, NAN]),
    "limits of more scores than there are": _set("limits.n", 2**62 + 1),
    **{f"peaks: {what}": _within("maxima", lie) for what, lie in MAXIMA.items()},
    "limits of distances too few": _fill("limits.distance", [1.0]),
    "a limit of distances is not a number": _fill("limits.distance", [1.0, NAN]),
    "a limit of distances is negative": _fill("limits.distance", [1.0, -1.0]),
    **FACTORS,
}

LINEAR: dict[str, Lie] = {
    **{f"readings: {what}": _beside(lie) for what, lie in SUBSPACE.items()},
    "readings: energy of readings too large to square": _set("linear.energy", 100 * 9 * 3.5e38),
    "readings, and no features": lambda m: m.ClearField("subspace"),
    "readings lighter than their features": _set("linear.weight", 100 * (1 - 2e-6)),
    "readings heavier than their features": _set("linear.weight", 100 * (1 + 2e-6)),
}

KERNEL_REPORT: dict[str, Lie] = {
    **LINEAR,
    **SUBSPACE,
    "both weigh more than they count": _both(
        _set("subspace.weight", 100.01), _set("linear.weight", 100.01)
    ),
    "half a priority": _set("moments.priorities", b"\0" * 12),
    "points of nothing": _set("moments.priorities", b""),
    "priorities of nothing": _set("moments.points", b""),
    "a point too few": _set("moments.points", b"\0" * 44),
    "priorities descend": _priorities(3, 2, 1),
    "priorities alike": _priorities(1, 1, 2),
    "a point is not a number": _points(1.0, NAN),
    "a point is infinite": _points(1.0, -INF),
    "a point is too far away": _points(1.0, 1.1e18),
    "a sample of more than are counted": _set("moments.count", 2),
    "a sample of more than 64": _both(
        _priorities(*range(65)), _set("moments.points", b"\0" * 16 * 65), _set("moments.count", 99)
    ),
    "a sample of seven channels": _both(
        _set("moments.mean", [1.0] * 7), _set("moments.m2", [1.0] * 7)
    ),
    "a third sketch cut short": _set("scores.linear", b"\0\x03\0\x01"),
    "a third sketch that is too long": _set("scores.linear", b"\0" * 300),
    "a third of more scores than floats count": _set(
        "scores.linear", b"\0\x01\0" + b"\xff" * 7 + b"\x7f"
    ),
}

KERNEL_MODEL: dict[str, Lie] = {
    **LINEAR,
    **SUBSPACE,
    "one subspace of two": lambda m: m.ClearField("linear"),
    "two subspaces of one": _set("schema", Schema.anonymous(6).canonical),
    "another schema's features": _set("schema", kernel_schema(9, 8).canonical),
    "another schema's channels": _set("schema", kernel_schema(8, 6).canonical),
    "a schema of an open gamma": _set("schema", kernel_schema(9, 6, None).canonical),
    "limits of the readings too few": _fill("limits.linear", [1.0]),
    "a limit of the readings is not a number": _fill("limits.linear", [1.0, NAN]),
    "a limit of the readings is infinite": _fill("limits.linear", [1.0, INF]),
    "a limit of the readings is negative": _fill("limits.linear", [1.0, -1.0]),
}

PINNED: dict[str, Lie] = {
    **HEADER,
    "no reason": _set("reason", 0),
    "a reason to come": _set("reason", 99),
    "a short fence": _set("fence", b"f"),
    "a parent from the far future": _set("pinned.created_ms", 2**61 + 1),
    "a floor above everything": _set("floor_ms", 2**63),
}

ANSWERS: dict[str, Lie] = {
    **PINNED,
    "newest above everything": _set("newest", 2**63),
    "durable above everything": _set("durable", 2**63),
    "a root from the far future": _set("root.created_ms", 2**63),
    "a wish of nobody": _within("desired_states", _set("node", "")),
    "a wish of no name": _within("desired_states", _set("node", "a/b")),
    "a wish beyond everything": _within("desired_states", _set("number", 2**62 + 1)),
    "a verdict on an alarm beyond everything": _within(
        "desired_states", lambda m: m.verdicts.add(alarm=2**62 + 1)
    ),
    "too many verdicts": _within("desired_states", lambda m: [m.verdicts.add() for _ in range(7)]),
    "too many wishes": lambda m: m.desired_states.extend(list(m.desired_states) * 16),
}

JOINS: dict[str, Lie] = {
    **HEADER,
    "a long fence": _set("fence", b"f" * 32),
    "a past fence that is none": lambda m: m.past_fences.add(seq=1),
    "a short past fence": lambda m: m.past_fences.add(fence=b"e", seq=1),
    "a past seq above everything": lambda m: m.past_fences.add(fence=b"e" * 16, seq=2**63),
    "too many past fences": lambda m: m.past_fences.extend([pb.Left()] * 256),
    "a schema of more names than memory holds": _set("schema", Schema.anonymous(2**40).canonical),
}

HELLOS: dict[str, Lie] = {
    "no name": _set("header.node", ""),
    "created too late": _set("header.incarnation.created_ms", 2**63),
}

LIES = [
    pytest.param(name, lie, id=f"{name}: {what}")
    for name, lies in {
        "join": JOINS,
        "joined": PINNED,
        "report": REPORT,
        "answer": ANSWERS,
        "hello": HELLOS,
        "model": MODEL,
    }.items()
    for what, lie in lies.items()
]


@pytest.mark.parametrize(("name", "lie"), LIES)
def test_what_nobody_can_mean_is_refused(name, lie):
    """Each field that can lie, once; the message is right but for it."""
    kind = codec.kind_of(HONEST[name])
    form, message = form_of(name)
    assert reported(arrived(HONEST[name])) == reported(codec.decode(kind, form.SerializeToString()))
    lie(message)

    with pytest.raises(PeerError):
        codec.decode(kind, form.SerializeToString())


@pytest.mark.parametrize("what", SITE)
def test_what_no_aggregator_can_mean_is_refused(what):
    """It speaks of many nodes, and of alarms of any: but not of more than there are."""
    site = a_report(
        fence=b"f" * 16, alarm_status=replace(ALARM_STATUS, open=2**40, states=(2**40,) * 5)
    )
    form = forms.report(site)
    form.alarm_status.alarms[0].node = "press-4"
    codec.decode("report", form.SerializeToString())
    SITE[what](form)

    with pytest.raises(PeerError):
        codec.decode("report", form.SerializeToString())


KERNEL_LIES = [
    pytest.param(name, lie, id=f"{name}: {what}")
    for name, lies in {"report": KERNEL_REPORT, "model": KERNEL_MODEL}.items()
    for what, lie in lies.items()
]


@pytest.mark.parametrize(("name", "lie"), KERNEL_LIES)
def test_what_nobody_can_mean_of_a_kernel_group_is_refused(name, lie):
    """Two subspaces, three residuals' sketches or limits, a sample: each can lie as well."""
    message = OF_KERNELS[name]
    kind = codec.kind_of(message)
    form, content = form_of(name, OF_KERNELS)
    assert reported(arrived(message)) == reported(codec.decode(kind, form.SerializeToString()))
    lie(content)

    with pytest.raises(PeerError):
        codec.decode(kind, form.SerializeToString())


@pytest.mark.parametrize("lie", [pytest.param(lie, id=what) for what, lie in WHOLE.items()])
def test_what_nobody_can_mean_of_a_whole_scatter_is_refused(lie):
    """Lengths, numbers, the energy that it holds, and what does not go with it."""
    form, content = form_of("report", OF_NARROW)
    honest = codec.decode("report", form.SerializeToString())
    assert reported(arrived(OF_NARROW["report"])) == reported(honest)
    lie(content)

    with pytest.raises(PeerError):
        codec.decode("report", form.SerializeToString())


EARLIER: dict[str, Lie] = {
    "from a client": _set("fence", b""),
    "of the report's own schema": lambda m: setattr(m.earlier, "fingerprint", m.fingerprint),
    "of half a fingerprint": _set("earlier.fingerprint", b"f" * 16),
    "without sums": lambda m: m.earlier.ClearField("subspace"),
    "beside a summary": lambda m: m.subspace.CopyFrom(m.earlier.subspace),
    "of more readings than there are": _set("earlier.counts.learnt", 101),
    "of more that were withheld": _set("earlier.counts.withheld", 3),
    "of more that are lost": _set("earlier.counts.lost", 2),
    "of more that have moved": _set("earlier.counts.moved", 1),
    "of more than can be": _set("earlier.counts.learnt", 2**64 - 1),
    "columns as float64": _set("earlier.subspace.exact", b"\0" * 8 * 15),
    "a number that is none": _set("earlier.subspace.weight", NAN),
    "of more dimensions than columns": _set("earlier.subspace.dim", 6),
    "sigma that rises": _set("earlier.subspace.sigma", [3.0, 4.0, 5.0]),
    "less energy than sigma holds": _set("earlier.subspace.energy", 1.0),
    "a mean beyond all sums": _set("earlier.subspace.mean", [1e30] * 5),
    "columns that are no basis": _set("earlier.subspace.columns", b"\0\0\x80\x3f" * 15),
    "energies of other channels": _set("earlier.subspace.channel_energies", [1.0] * 6),
}


@pytest.mark.parametrize("lie", [pytest.param(lie, id=what) for what, lie in EARLIER.items()])
def test_what_nobody_can_mean_of_earlier_sums_is_refused(lie):
    """All that is refused of a summary; and where they have no place."""
    form, content = form_of("report", OF_EARLIER)
    honest = codec.decode("report", form.SerializeToString())
    assert reported(arrived(OF_EARLIER["report"])) == reported(honest)
    lie(content)

    with pytest.raises(PeerError):
        codec.decode("report", form.SerializeToString())


def test_a_model_has_directions():
    """And is refused with a whole scatter: clients of this version score with directions."""
    form, model = form_of("model")
    model.subspace.CopyFrom(forms.report(OF_NARROW["report"]).subspace)

    with pytest.raises(PeerError, match="in a model or a kernel group, got a whole scatter"):
        codec.decode("watch", form.SerializeToString())


@pytest.mark.parametrize("place", ["subspace", "linear"])
def test_a_kernel_groups_parts_are_directions(place):
    """Of the features, and of the readings."""
    form, report = form_of("report", OF_KERNELS)
    getattr(report, place).whole = True

    with pytest.raises(PeerError, match="got a whole scatter"):
        codec.decode("report", form.SerializeToString())


def test_more_features_than_any_device_computes_are_refused():
    """However few columns there are of them."""
    form, message = form_of("report", OF_KERNELS)
    message.subspace.dim = 2**16 + 2
    message.subspace.mean = bytes(8 * message.subspace.dim)
    message.subspace.columns = bytes(12 * message.subspace.dim)

    with pytest.raises(PeerError, match="at most 65536 features, got 65538"):
        codec.decode("report", form.SerializeToString())


@pytest.mark.parametrize("off", [-0.9e-6, 0.9e-6])
def test_two_weights_may_be_rounded(off):
    """They are of the same readings, added up apart; above they are equal, and stay it."""
    form, message = form_of("report", OF_KERNELS)
    message.linear.weight *= 1 + off
    data = form.SerializeToString()

    assert 100 == codec.decode("report", data).summary.linear.weight


@pytest.mark.parametrize("fence", [b"", b"short", b"f" * 16])
@pytest.mark.parametrize("name", ["join", "report"])
def test_a_child_can_be_told_that_its_message_is_refused(name, fence):
    """As long as the stamp can be read; and which of two processes is meant, by its fence."""
    form, message = form_of(name)
    message.fence = fence
    if name == "report":
        message.fingerprint = b""
    else:
        message.past_fences.add()

    with pytest.raises(codec.MessageRefused) as caught:
        codec.decode(name, form.SerializeToString())
    assert (HONEST[name].stamp, Reason.INVALID) == (caught.value.stamp, caught.value.reason)
    assert (fence if len(fence) == 16 else b"") == caught.value.fence


@pytest.mark.parametrize("tilt", [2e-5, 9e-4])
def test_rounding_is_forgiven_and_mended(tilt):
    """Columns that are orthonormal but for 1e-3 come out orthonormal as float32 can be."""
    form, message = form_of("report")
    rows = np.frombuffer(message.subspace.columns, "<f4").reshape(3, 6).copy()
    rows[0] += np.float32(tilt) * rows[1]
    message.subspace.columns = rows.tobytes()
    basis = codec.decode("report", form.SerializeToString()).summary.basis.astype(float)

    np.testing.assert_allclose(np.eye(3), basis.T @ basis, atol=3e-7)
    np.testing.assert_allclose(rows.T, basis, atol=1e-3)


def test_directions_that_hold_nothing_are_left_out():
    """Sigma may be 0, or so small that its square is: nothing is divided by it later."""
    form, message = form_of("report")
    message.subspace.sigma = np.array([5.0, 0.9e-49, 0.0]).tobytes()

    assert [5.0] == codec.decode("report", form.SerializeToString()).summary.sigma.tolist()


def test_no_more_is_missing_than_there_is():
    """A bound above the energy says nothing, and sums of such bounds would grow without end."""
    form, message = form_of("report")
    message.subspace.spectral_bound = 1e300
    summary = codec.decode("report", form.SerializeToString()).summary

    assert summary.energy == summary.spectral_bound


def test_an_aggregator_may_weigh_more_than_it_counts():
    """What it adds up has been cut; a client counts its own."""
    heavy = subspace_of(6, [5.0], weight=1e20)
    report = a_report(summary=heavy, fence=b"f" * 16)

    assert 1e20 == travelled(report).summary.weight


def test_what_is_wrong_is_said_in_one_line():
    """Whatever was sent, what is told of it is short."""
    form, message = form_of("report")
    message.header.group = "\n" * 5000
    with pytest.raises(PeerError) as caught:
        codec.decode("report", form.SerializeToString())

    assert len(str(caught.value)) < 300
    assert not re.search(r"[\x00-\x1f]", str(caught.value))


# -- bytes that are no message ------------------------------------------------------


@given(st.sampled_from(codec.KINDS), st.binary(max_size=200))
def test_random_bytes_are_refused(kind, data):
    """Whatever comes, it is an error of the peer's, and of no other kind."""
    try:
        message = codec.decode(kind, data)
    except PeerError:
        return
    assert kind == codec.kind_of(message)


def check_bounds(message: Message) -> None:
    """What was taken in is within bounds: it can be said again, and says the same."""
    assert reported(arrived(message)) == reported(travelled(message))
    match message:
        case Report() | Model():
            summary = message.summary
            both = (
                (summary.features, summary.linear)
                if isinstance(summary, KernelSummary)
                else [summary]
            )
            for part in both if summary is not None else ():
                gram = part.basis.T.astype(float) @ part.basis.astype(float)
                np.testing.assert_allclose(np.eye(part.rank), gram, atol=2e-5)
                assert part.basis.shape == (len(part.mean), len(part.sigma))
                assert part.weight > 0
                assert (part.explained_variance >= 0.99e-100).all()
                assert part.spectral_bound <= part.energy


WHOLE = [
    *HONEST.values(),
    a_report(moments=None, census=None, scores=None),
    a_report(summary=None),
    a_report(summary=subspace_of(6, np.ones(6))),
    *OF_KERNELS.values(),
    *OF_EARLIER.values(),
]


@pytest.mark.slow
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_damaged_messages_are_refused_or_harmless(seed, coarse):
    """20,000 of them: bits flipped, bytes cut off, pieces said twice; and never a warning."""
    rng = np.random.default_rng((seed, coarse))
    whole = [(codec.kind_of(m), codec.encode(m, coarse=coarse)) for m in WHOLE]
    taken = 0
    for _ in range(1000):
        kind, data = whole[int(rng.integers(len(whole)))]
        try:
            message = codec.decode(kind, damaged(data, rng))
        except PeerError:
            continue
        taken += 1
        check_bounds(message)

    # Or else this test would show nothing: most flips hit digits that do not matter.
    assert 100 < taken < 900


@pytest.mark.soak
def test_another_protobuf_is_as_strict():
    """The one in pure Python, which devices without a wheel have; its errors are ours, too."""
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "from google.protobuf.internal import api_implementation as it\n"
        "assert it.Type() == 'python', it.Type()\n"
        "import pytest, sys\n"
        "sys.exit(pytest.main(['-q', '-x', '-p', 'no:cacheprovider', *sys.argv[1:]]))"
    )
    here = Path(__file__)
    ours = "random_bytes or nobody_can_mean or another_version or version_1 or damaged and 3"
    done = subprocess.run(
        [sys.executable, "-c", code, "-k", ours, here.parents[1]],
        env={**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
        capture_output=True,
        text=True,
    )
    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-1000:]


# -- lengths that claim more than there is ------------------------------------------


def allocated(work: Callable[[], Any]) -> int:
    """Return the most bytes that were held at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BOMBS: dict[str, Lie] = {
    "a million dimensions": _set("subspace.dim", 2**20),
    "four thousand million dimensions": _set("subspace.dim", 2**32 - 1),
    "a mean, and a million columns to come": lambda m: (
        _set("subspace.dim", 6)(m),
        _set("subspace.sigma", b"\0" * 8)(m),
        _set("subspace.columns", b"")(m),
    ),
    "a sketch of 255 bins": _set("scores.spe", b"\0\xff"),
    "a million channels beside": _set("linear.dim", 2**20),
}


@pytest.mark.parametrize("what", BOMBS)
def test_lengths_are_checked_before_anything_is_allocated(what):
    """A hundred bytes that speak of gigabytes cost a hundred bytes."""
    form, message = form_of("report", OF_KERNELS)
    BOMBS[what](message)
    data = form.SerializeToString()

    def refuse() -> None:
        with pytest.raises(PeerError):
            codec.decode("report", data)

    refuse()  # whatever is loaded late is loaded now
    assert allocated(refuse) < 64_000


@pytest.mark.slow
@pytest.mark.parametrize("coarse", [False, True])
def test_the_largest_message_costs_a_few_times_its_size(coarse):
    """4 MiB of columns, coarse ones at one byte a number: what checking them takes is bounded."""
    form, message = form_of("report")
    dim = 4096 if coarse else 1024
    k = columns.MOST_RANK if coarse else 1000
    message.subspace.dim = dim
    message.subspace.mean = np.zeros(dim).tobytes()
    message.subspace.sigma = np.full(k, 1.0).tobytes()
    message.subspace.energy = 1e6
    if coarse:
        message.subspace.columns = b""
        message.subspace.coarse = b"\x01" * (k * dim)
        message.subspace.scales = np.full(k, 1 / 64, "<f4").tobytes()
    else:
        message.subspace.columns = b"\0" * (4 * k * dim)
    data = form.SerializeToString()

    def refuse() -> None:
        with pytest.raises(PeerError, match="orthonormal"):
            codec.decode("report", data)

    refuse()
    assert allocated(refuse) < 40 * len(data)
