"""Drill: the smallest fault of each channel that would raise an alarm (docs/decisions/0039).

R2 is the share of a channel's variance that the others explain under the model; *blind* is below
`BLIND` (Dunia and Qin, AIChE Journal 44, 1998). A stuck channel counts as found if its scores raise
an alarm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.drill.detection import Detection, Spans
from submerge.drill.response import (
    Anchors,
    DirectResponse,
    NodeScorer,
    QuadraticResponse,
    Response,
    score_changed,
)
from submerge.errors import PeerError, UsageError
from submerge.judge.decision import Mask
from submerge.pca.factor import uniform
from submerge.pca.subspace import Subspace
from submerge.stats.statistic import By

Kind = Literal["bias", "drift", "noise", "stuck", "swap"]

SIZED: tuple[Kind, ...] = ("bias", "drift", "noise")  # kinds with a size, in the channel's unit


def shape(kind: str, ages: Array, noise: Array) -> Array | None:
    """Return what a fault of size 1 adds to readings, (..., n); None for a kind without a size."""
    match kind:
        case "bias":
            return np.ones_like(ages)
        case "drift":
            return ages  # since the fault began, over a drift's time to its size
        case "noise":
            return noise
        case _:
            return None


def held(readings: Array, starts: npt.NDArray[np.intp], rows: int) -> Array:
    """Return what a stuck sensor adds to readings (n,), from each start on: (spans, rows)."""
    return np.asarray(readings[starts - 1, None] - readings[starts[:, None] + np.arange(rows)])


def most_alike(readings: Array, others: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return the channel most like each, of `others` to exchange with, (channels,), or itself."""
    squares = np.einsum("ij,ij->j", readings, readings)
    apart = squares[:, None] + squares - 2 * readings.T @ readings
    apart = np.where(others & ~np.eye(len(squares), dtype=bool), apart, np.inf)
    nearest = apart.argmin(axis=1)
    return np.where(np.isfinite(apart.min(axis=1)), nearest, np.arange(len(squares)))


FOUND = 0.9  # share of spans in which a fault has to be found
BLIND = 0.25  # R2 below which the other channels say little about one
LEAST, LARGEST = 2.0**-10, 2.0**4  # sizes that are tried, in standard deviations of the channel
HALVINGS = 9  # steps of bisection: sizes are found to 2 %

FLAT = 1e-3
"""Least standard deviation of a channel, over the root mean square of all: it may never vary."""


@dataclass(frozen=True, slots=True)
class ChannelAnswer:
    """What a drill found out about one channel. Sizes are scaled; infinite if none is found."""

    deviation: float  # standard deviation under the model
    r2: float  # as in the module's docstring
    bias: float
    drift: float  # what the smallest reaches at the end of a span
    noise: float  # the smallest, as its standard deviation
    stuck: float  # share of spans in which such a fault is found
    swap: float  # likewise; NaN if no channel has its unit

    @property
    def blind(self) -> bool:
        """Whether only its own range tells of a fault."""
        return self.r2 < BLIND


class Drill:
    """Tries faults on copies of rows; UsageError if no limit, no room, or alarms in all spans.

    rows : (n, width). Scaled, with lags, oldest first; NaN is a gap.
    tried : Where faults begin, and for how many rows they are watched.
    noise : (m,). Standard normal numbers; used again and again if they are few.
    spans : Those of `tried` in which no alarm is raised without a fault.
    base : Of the rows as they are.
    """

    def __init__(
        self,
        model: NodeScorer,
        rows: Array,
        limits: Mapping[By, float],
        *,
        after: int,
        of: int,
        tried: Spans,
        noise: Array,
    ) -> None:
        if not limits:
            raise UsageError("a drill needs limits of alarms: the model has none yet")
        self._model, self._rows = model, rows
        self.base = model.score(rows)
        if tried.rows < after or not len(tried.starts):
            raise UsageError(f"a drill needs more rows: {len(rows)} have no room for a fault")
        self._detection = Detection(limits, after, of, self.base.even, tried)
        self.spans = self._detection.spans
        if not len(self.spans.starts):
            raise UsageError("everything is in alarm already: a drill needs rows without an alarm")
        self._starts = np.tile(self.spans.starts, 2)
        self._both = self.spans._replace(starts=self._starts)
        signs = np.repeat((1.0, -1.0), len(self.spans.starts))[:, None]
        size = (len(self._starts), self.spans.rows)
        ages = np.tile(np.arange(1, size[1] + 1) / size[1], (size[0], 1))
        self._shapes: dict[Kind, Array] = {}
        for kind in SIZED:
            one = shape(kind, ages, np.resize(noise, size))
            if one is not None:
                self._shapes[kind] = signs * one
        self.deviations = deviations(model.scoring.summary.parts[-1], model.channels)
        self._partners = self._find_partners()
        self._response: tuple[int, Response] | None = None

    def __len__(self) -> int:
        return self._model.channels

    def answer(self, channel: int) -> ChannelAnswer:
        """Try faults of every kind on one channel."""
        return next(each for each in self._slices(channel) if each is not None)

    def answers(self) -> Iterator[ChannelAnswer | None]:
        """Yield the answer of each channel, and None after each smaller part of the work."""
        for channel in range(len(self)):
            yield from self._slices(channel)

    def share(self, kind: Kind, channel: int, size: float = 1.0) -> float:
        """Return the share of spans in which a fault of a scaled size raises an alarm."""
        if kind == "swap":
            return self._swapped(channel)
        if kind == "stuck":
            added = held(self._readings(channel), self.spans.starts, self.spans.rows)
        else:
            added = size * self._shapes[kind]
        found = self._found(channel, added).reshape(-1, len(self.spans.starts))
        # Where a channel is away, no fault of it could be seen.
        there = np.isfinite(self._rows[self.spans.places, channel]).mean(axis=1) > 0.5
        return float((found[:, there] if there.any() else found).mean())

    def smallest(self, kind: Kind, channel: int) -> float:
        """Return the smallest size that is found in a share `FOUND` of the spans; else infinity."""
        deviation = float(self.deviations[channel])
        if self.share(kind, channel, LARGEST * deviation) < FOUND:
            return math.inf
        low, high = math.log2(LEAST), math.log2(LARGEST)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if self.share(kind, channel, 2**middle * deviation) < FOUND:
                low = middle
            else:
                high = middle
        return float(2**high * deviation)

    def r2(self, channel: int) -> float:
        """Return the share of a channel's variance that the others explain under the model."""
        response, rest = self._of(channel), None
        if isinstance(response, QuadraticResponse):
            rest = response.unexplained()
        if rest is None:
            expected = self.base.expected
            rest = math.inf if expected is None else float(expected[channel])
        return min(max(0.0, 1 - rest / float(self.deviations[channel]) ** 2), 1.0)

    def _slices(self, channel: int) -> Iterator[ChannelAnswer | None]:
        """Try one kind of fault after the other; the last that is yielded is the answer."""
        deviation, r2 = float(self.deviations[channel]), self.r2(channel)
        yield None
        sizes: dict[Kind, float] = {}
        for kind in SIZED:
            sizes[kind] = self.smallest(kind, channel)
            yield None
        stuck = self.share("stuck", channel)
        yield None
        swap = self.share("swap", channel)
        bias, drift, noise = (sizes[kind] for kind in SIZED)
        yield ChannelAnswer(deviation, r2, bias, drift, noise, stuck, swap)

    def _of(self, channel: int) -> Response:
        """Return the response of the scores to one channel; that of the last one is kept."""
        if self._response is None or self._response[0] != channel:
            model, rows = self._model, self._rows
            made: Response
            if model.schema.linear:
                unit = float(self.deviations[channel])
                made = QuadraticResponse(model, self._anchors, channel, self.base, unit)
            else:
                made = DirectResponse(model, rows, channel)
            self._response = channel, made
        return self._response[1]

    @cached_property
    def _anchors(self) -> Anchors:
        return Anchors(self._model, self._rows)

    def _found(self, channel: int, added: Array) -> Mask:
        """Return in which spans readings are found that are off by `added` (spans, rows)."""
        tried = self._both if len(added) == len(self._starts) else self.spans
        response, scored = self._of(channel), self._detection.scored
        first = tuple(kind for kind in scored if kind != "channel")
        found = self._detection.found(response.scores(added, tried, first), tried.starts)
        # It costs the most, a prediction of every channel: mostly bounds say enough.
        left = ~found & ("channel" in scored)
        if left.any() and isinstance(response, QuadraticResponse):
            rest = tried.only(left)
            found[left], left[left] = (
                self._detection.found({"channel": each}, rest.starts)
                for each in response.channel_bounds(added[left], rest)
            )
            left &= ~found
        if left.any():
            rest = tried.only(left)
            scores = response.scores(added[left], rest, ("channel",))
            found[left] = self._detection.found(scores, rest.starts)
        return found

    def _readings(self, channel: int) -> Array:
        """Return the readings of one channel, (n,): a gap repeats the reading before it."""
        readings = self._rows[:, channel]
        known = ~np.isnan(readings)
        if not known.any():
            return np.zeros(len(readings))
        last = np.maximum.accumulate(np.where(known, np.arange(len(readings)), np.argmax(known)))
        return np.asarray(readings[last])

    def _find_partners(self) -> npt.NDArray[np.intp]:
        """Return the channel that each may be exchanged with, of those with its unit."""
        n, schema = len(self), self._model.schema
        scaling, units = schema.scaling, np.array([each.unit for each in schema.named[:n]])
        readings = np.stack([self._readings(channel) for channel in range(n)], axis=1)
        if scaling is not None:
            # Exchanged cables exchange readings in their units. Offsets that all share cost digits.
            scale, offset = np.array(scaling.scale[:n]), np.array(scaling.offset[:n])
            readings = readings * scale + (offset - offset.mean())
        return most_alike(readings, units[:, None] == units)

    def _swapped(self, channel: int) -> float:
        """Return the share of spans in which two exchanged channels are found; NaN without one."""
        n, other = len(self), int(self._partners[channel])
        if other == channel:
            return math.nan
        scaling, rows = self._model.schema.scaling, self.spans.rows
        scale, offset = np.ones(n), np.zeros(n)
        if scaling is not None:
            scale, offset = np.array(scaling.scale[:n]), np.array(scaling.offset[:n])
        ages = np.tile(np.arange(rows), len(self.spans.starts))

        def change(copies: Array, part: slice) -> None:
            for lag in range(copies.shape[1] // n):
                ours, theirs = channel + lag * n, other + lag * n
                late = ages[part] >= lag
                one, two = copies[:, ours].copy(), copies[:, theirs].copy()
                gap = offset[other] - offset[channel]
                ratio = scale[other] / scale[channel]
                copies[late, ours] = two[late] * ratio + gap / scale[channel]
                copies[late, theirs] = one[late] / ratio - gap / scale[other]

        scores = score_changed(self._model, self._rows, self.spans, self._detection.scored, change)
        return float(self._detection.found(scores, self.spans.starts).mean())


def deviations(subspace: Subspace, channels: int) -> Array:
    """Return the standard deviation of each channel under a model, (channels,), all positive."""
    if subspace.channel_energies is not None and subspace.weight > 0:
        variances = subspace.channel_energies / subspace.weight
    else:
        held = np.square(subspace.basis, dtype=np.float64) @ subspace.explained_variance
        variances = held + uniform(subspace).noise
    variances = np.maximum(variances[:channels], FLAT**2 * max(float(variances.mean()), 1e-300))
    return np.sqrt(variances)


# R2 is rounded down, so that what is blind stays blind.

FORM = np.dtype([("sizes", "<f4", 3), ("shares", "u1", 3), ("later", "u1")])

STEPS, UNKNOWN = 200, 255


def packed(channels: Sequence[ChannelAnswer]) -> bytes:
    """Return the answers of all channels as bytes, `FORM.itemsize` a channel."""
    table = np.zeros(len(channels), dtype=FORM)
    table["sizes"] = np.array(
        [(each.bias, each.drift, each.noise) for each in channels], dtype=np.float32
    ).reshape(-1, 3)
    table["shares"] = np.array(
        [(_share(each.r2), _share(each.stuck), _share(each.swap)) for each in channels],
        dtype=np.uint8,
    ).reshape(-1, 3)
    return table.tobytes()


def unpacked(data: bytes) -> tuple[ChannelAnswer, ...]:
    """Return the answers that bytes hold, deviations 1; PeerError if no node sends these bytes."""
    if len(data) % FORM.itemsize:
        raise PeerError(f"expected {FORM.itemsize} bytes a channel, got {len(data)}", kind="shape")
    table = np.frombuffer(data, dtype=FORM)
    if not (table["sizes"] >= 0).all():
        raise PeerError("the size of a fault must not be negative", kind="range")
    shares = table["shares"]
    if ((shares > STEPS) & (shares != UNKNOWN)).any() or (shares[:, 0] == UNKNOWN).any():
        raise PeerError(f"a share has {STEPS} steps, got more", kind="range")
    known = np.where(shares == UNKNOWN, np.nan, shares / STEPS)
    return tuple(
        ChannelAnswer(1.0, r2, bias, drift, noise, stuck, swap)
        for (bias, drift, noise), (r2, stuck, swap) in zip(
            table["sizes"].tolist(), known.tolist(), strict=True
        )
    )


def _share(share: float) -> int:
    return UNKNOWN if math.isnan(share) else math.floor(STEPS * share + 1e-9)
