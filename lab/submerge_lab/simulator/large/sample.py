"""SampledLeaf: one client of a large fleet a second time, as the product runs it.

It is a `ClientNode` with all its matrices, monitor and sketches, on the same rows at the same
times, with the same messages and the same random numbers. It is stepped at each reading, by its
own clock, and what it sends goes nowhere. Each message has to be what the client has sent: the
same stamp, counts, versions, scores and trail, and a subspace that is the same to rounding.

It is followed until its process ends for the first time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import fields

import numpy as np

from submerge._linalg import Array
from submerge.client.node import ClientNode
from submerge.pca.subspace import Subspace
from submerge.protocol.machine import Event, Now, Reading, Send, Start, Tick
from submerge.protocol.messages import Message, Report
from submerge.protocol.summaries import Summary

AGREES = 1e-5
"""Largest relative difference of two scatters: directions are rounded to float32."""

ROUNDING_S = 1e-5
"""Largest difference of two times: those of a wall clock are as coarse as microseconds."""

UNCOMPARED = ("summary", "as_of", "alarm_status")


class SampledLeaf:
    """A client a second time.

    Parameters
    ----------
    name : str
    node : ClientNode
        That has not started.

    Attributes
    ----------
    messages, reports : int
        Messages compared, and reports among them.
    difference : str
        The first difference; empty if there is none.
    worst : float
        The largest relative difference of two scatters.
    ends : bool
        Whether its process has ended: nothing is compared from then on.
    """

    def __init__(self, name: str, node: ClientNode) -> None:
        self.name, self._node = name, node
        self.messages = self.reports = 0
        self.difference = ""
        self.worst = 0.0
        self.ends = False
        self._mine, self._theirs = deque[Message](), deque[Message]()

    def read(self, row: Array, now: Now) -> None:
        """Take a reading (1, channels)."""
        self._pass(Reading(row), now)

    def step(self, event: Event, now: Now) -> None:
        """Take an event; it finds out for itself when it wakes."""
        self._pass(event, now)

    def sent(self, send: Send) -> None:
        """Note what the client has sent."""
        if not self.ends:
            self._theirs.append(send.message)

    def compare(self) -> None:
        """Compare what both have sent until now."""
        while self._mine and self._theirs:
            mine, theirs = self._mine.popleft(), self._theirs.popleft()
            self.messages += 1
            self.reports += isinstance(mine, Report)
            if not self.difference:
                self.difference = self._between(mine, theirs)

    def conclude(self) -> str:
        """Return the first difference, also that one of both has sent more; empty for none."""
        if not self.difference and not self.ends and (self._mine or self._theirs):
            more = (self._mine or self._theirs)[0]
            which = "the sampled node" if self._mine else "the client"
            self.difference = f"{which} sends one more {type(more).__name__}"
        return f"{self.name}: {self.difference}" if self.difference else ""

    def _pass(self, event: Event, now: Now) -> None:
        if self.ends:
            return
        if not isinstance(event, Start):
            self._wake(now)
        if not isinstance(event, Tick):
            self._perform(event, now)
            self._wake(now)

    def _wake(self, now: Now) -> None:
        """Let it wake as often as it wants to until now."""
        while (at := self._node.wakes_at) <= now.steady + ROUNDING_S:
            at = max(at, self._steady)
            self._perform(Tick(), Now(at, now.wall - (now.steady - at), now.synced))

    def _perform(self, event: Event, now: Now) -> None:
        self._steady = now.steady
        for effect in self._node.step(event, now):
            if isinstance(effect, Send):
                self._mine.append(effect.message)

    def _between(self, mine: Message, theirs: Message) -> str:
        """Return how a message differs from the client's; empty if it does not."""
        if not isinstance(mine, Report) or not isinstance(theirs, Report):
            return "" if mine == theirs else f"{theirs} where the sampled node sends {mine}"
        for field in fields(Report):
            one, other = getattr(mine, field.name), getattr(theirs, field.name)
            if field.name not in UNCOMPARED and one != other:
                return f"report {theirs.stamp.seq} has {field.name} {other}, expected {one}"
        if abs(mine.as_of - theirs.as_of) > ROUNDING_S:
            return f"report {theirs.stamp.seq} is of {theirs.as_of}, expected {mine.as_of}"
        apart = apart_by(mine.summary, theirs.summary)
        self.worst = max(self.worst, apart)
        return f"report {theirs.stamp.seq} differs by {apart:.1e}" if apart > AGREES else ""


def apart_by(one: Summary | None, other: Summary | None) -> float:
    """Return the relative difference of two summaries: of weights, means and scatters."""
    if one is None or other is None:
        return 0.0 if one is other else np.inf
    pairs = zip(one.parts, other.parts, strict=True)
    return max(max(_apart(*each) for each in _numbers(*pair)) for pair in pairs)


def _numbers(one: Subspace, other: Subspace) -> list[tuple[Array, Array]]:
    return [
        (np.array([one.weight]), np.array([other.weight])),
        (one.mean, other.mean),
        (_scatter(one), _scatter(other)),
    ]


def _scatter(subspace: Subspace) -> Array:
    scaled = subspace.basis * subspace.sigma
    return np.asarray(scaled @ scaled.T)


def _apart(one: Array, other: Array) -> float:
    size = float(np.abs(one).max(initial=0.0))
    difference = float(np.abs(one - other).max(initial=0.0))
    return difference / size if size else difference
