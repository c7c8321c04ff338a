"""ShareCollection: one turn at a parent: what its children are asked, and what they contribute.

For each child one share is held, and one of more clients replaces it (docs/jobs.md, "Rules").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from submerge.errors import PeerError, SubmergeError
from submerge.jobs import roster
from submerge.jobs.arrays import Arrays, check_finite
from submerge.jobs.envelopes import ENDED, OPENING, JobAsk, JobShare
from submerge.jobs.kind import JobKind
from submerge.jobs.machine import (
    ChildrenKnown,
    JobEffect,
    JobPiece,
    JobPieceTaken,
    JobTimes,
    SendJob,
)
from submerge.jobs.parcels import IncomingParcel, OutgoingParcel, Parcel, all_of
from submerge.jobs.points import check_nodes
from submerge.jobs.roster import Place
from submerge.protocol.machine import Note, Now
from submerge.protocol.messages import Incarnation, Stamp
from submerge.protocol.names import RandomSource

MOST_TRIED = 64
"""Children of which one is looked for without whom a round can be computed."""

LEAST_VOICES, MOST_MOVED = 5, 10.0
"""From so many children on, none moves what settles a scale further than that."""

SHARE_OF_TIME = 0.75
"""A child has so much of its parent's time: the rest is for what comes late."""


class ShareCollection:
    """What a parent collects in one turn; UsageError if what is asked is more than the job allows.

    ask : It names the place of all below; None while the job opens.
    kind : Without it nothing is merged.
    clients : Children known to be clients take part for themselves alone.
    """

    def __init__(
        self,
        ask: JobAsk,
        known: ChildrenKnown,
        kind: JobKind | None,
        me: Incarnation,
        times: JobTimes,
        now: Now,
    ) -> None:
        self.ask, self._kind, self._me = ask, kind, me
        self.children, self._clients = _asked(ask, known.names), known.clients
        self.closes_at = now.steady + ask.within_s
        self._shares: dict[str, JobShare] = {}
        self._out: dict[str, str] = {}
        self._incoming: dict[str, IncomingParcel] = {}
        self._asks = {child: self._outgoing(child, times) for child in sorted(self.children)}

    def _outgoing(self, child: str, times: JobTimes) -> OutgoingParcel:
        ask, job = self.ask, self.ask.job
        within_s = SHARE_OF_TIME * ask.within_s
        body = replace(ask, within_s=within_s, place=self._expected(child)).pack()
        parcel = Parcel.of(job, ask.turn, body)
        stamp = Stamp(child, job.group, self._me, ask.turn)
        waits = ask.phase != ENDED
        return OutgoingParcel(stamp, job.id, parcel, times, up=False, awaits_more=waits)

    def _expected(self, child: str) -> Place | None:
        """Return who is expected below a child; None while the job opens."""
        place = self.ask.place
        return None if place is None or isinstance(place, Incarnation) else place.get(child)

    @property
    def sends_at(self) -> float:
        return min((ask.due_at for ask in self._asks.values()), default=math.inf)

    @property
    def wakes_at(self) -> float:
        return min(self.sends_at, self.closes_at)

    @property
    def complete(self) -> bool:
        """Whether every child has said what it has; of a job that is over, has heard of it."""
        if self.ask.phase == ENDED:
            return all(ask.settled for ask in self._asks.values())
        return all(child in self._shares or child in self._out for child in self.children)

    @property
    def held_bytes(self) -> int:
        shares = sum(a.nbytes for share in self._shares.values() for a in share.arrays.values())
        incoming = sum(each.held_bytes for each in self._incoming.values())
        asks = sum(len(p) for ask in self._asks.values() for p in ask.parcel.pieces)
        return shares + incoming + asks

    def send_due(self, now: Now, rng: RandomSource) -> Iterator[SendJob]:
        for child, ask in self._asks.items():
            for piece in ask.send_due(now, rng):
                yield SendJob(child, piece)

    def take_taken(
        self, child: str, taken: JobPieceTaken, now: Now, rng: RandomSource
    ) -> Iterator[SendJob]:
        ask = self._asks.get(child)
        if ask is None or taken.stamp.seq != self.ask.turn:
            return
        if taken.over:
            ask.settle()
            self._out.setdefault(child, "it takes part in too many jobs")
            return
        for piece in ask.take(taken, now, rng):
            yield SendJob(child, piece)

    def take_piece(self, child: str, piece: JobPiece) -> tuple[list[JobEffect], bool]:
        """Take a piece of a child's share; return whether the share has changed."""
        if self.ask.phase == ENDED or child not in self.children:
            return [refusal(piece, self._me)], False
        if piece.stamp.seq > self.ask.turn:
            return [], False  # this process has not heard of the turn yet
        if piece.stamp.seq < self.ask.turn:
            return [self._taken(piece, all_of(piece.total))], False  # of a turn that is closed
        held = self._shares.get(child)
        if held is not None and piece.weight <= roster.size(held.place):
            return [self._taken(piece, all_of(piece.total))], False
        incoming = self._incoming.get(child)
        if incoming is None or not incoming.is_of(piece):
            # A restarted child has a share of its own, which may hold less than its last one did.
            again = incoming is None or piece.stamp.incarnation != incoming.sender
            if incoming is not None and not again and piece.weight < incoming.weight:
                return [], False
            incoming = IncomingParcel(piece, self.ask.job.payload_bytes)
            self._incoming[child] = incoming
        try:
            incoming.take(piece)
            effects: list[JobEffect] = [self._taken(piece, incoming.have)]
            if not incoming.complete:
                return effects, False
            del self._incoming[child]
            self._shares[child] = self._checked(child, piece, incoming.body())
        except Exception as error:  # whatever it is, it costs this share alone
            self._incoming.pop(child, None)
            self._out[child] = "what it contributed was refused"
            facts = {"job": piece.job, "child": child, "why": reason_of(error)}
            return [Note("share refused", facts)], True
        self._asks[child].settle()
        return effects, True

    def _checked(self, child: str, piece: JobPiece, body: bytes) -> JobShare:
        share, expected = JobShare.unpack(body), self._expected(child)
        if roster.size(share.place) != piece.weight:
            raise PeerError("a share holds as many clients as its pieces say", kind="range")
        held = roster.names(share.place, child)
        if self.ask.phase == OPENING:
            if isinstance(share.place, Incarnation) and share.place != piece.stamp.incarnation:
                raise PeerError("a client takes part as what it is", kind="name")
            if child in self._clients and isinstance(share.place, Mapping):
                raise PeerError("a client takes part for itself alone", kind="name")
            return replace(share, arrays={})
        if held:
            missing = expected is None or _part(expected, held, child) != share.place
            if missing:
                raise PeerError("a share holds clients that do not take part there", kind="name")
            if self._kind is not None:
                self._kind.check_up(self.ask.down, share.arrays, len(held))
                check_nodes(share.arrays, held)
        return share

    def _taken(self, piece: JobPiece, have: bytes) -> SendJob:
        stamp = piece.stamp._replace(incarnation=self._me)
        return SendJob(stamp.node, JobPieceTaken(stamp, piece.job, True, piece.parcel, have))

    def share(self) -> JobShare:
        """Return what all children contribute together, as far as it is here."""
        try:
            merged = self.merged()
        # A share with which nothing can be computed is left out; if it is not clear which, all are.
        except Exception as error:
            blamed = self.culprit(lambda _: None)
            for child in self.contributors if blamed is None else [blamed]:
                self.leave_out(child, f"what it contributed does not merge: {reason_of(error)}")
            merged = self.merged()
        if mover := self._mover(merged):
            self.leave_out(mover, f"alone it moves a scale more than {MOST_MOVED:g} times")
            merged = self.merged()
        place: dict[str, Place] = {}
        left: dict[str, str] = {}
        for child in sorted(self.children):
            share, expected = self._shares.get(child), self._expected(child)
            if share is not None and share.place:
                place[child] = share.place
            said = {} if share is None else share.left
            names = roster.names(expected, child) if self.ask.phase != OPENING else {*said, child}
            absent = names - (roster.names(share.place, child) if share is not None else set())
            if self.ask.phase == OPENING and share is not None:
                absent -= {child} - said.keys()
            why = self._out.get(child, "silent")
            left |= {name: said.get(name, why) for name in sorted(absent)}
        return JobShare(place or None, left, merged)

    def merged(self, without: str = "") -> Arrays:
        """Return what children contribute, merged, `without` one; any exception if it fails."""
        ups = [self._shares[child].arrays for child in self.contributors if child != without]
        if self._kind is None or not ups:
            return {}
        with np.errstate(all="ignore"):
            merged = self._kind.merge(self.ask.down, ups)
        check_finite(merged)
        return merged

    @property
    def contributors(self) -> list[str]:
        """The children that contribute something, by name."""
        return sorted(child for child, share in self._shares.items() if share.place)

    def _mover(self, merged: Arrays) -> str | None:
        """Return the one child that moves the scale of all others; None where they are few."""
        kind, names, down = self._kind, self.contributors, self.ask.down
        if kind is None or not LEAST_VOICES <= len(names) <= MOST_TRIED:
            return None
        whole, moved = kind.spread(down, merged), list[str]()
        for name in names if whole is not None else ():
            rest = kind.spread(down, self.merged(without=name))
            if rest is not None and whole is not None:
                # Where all others are alike there is no scale to move.
                times = whole[rest > 0] / rest[rest > 0]
                moved += [name] * bool(((times > MOST_MOVED) | (times * MOST_MOVED < 1)).any())
        return moved[0] if len(moved) == 1 else None

    def culprit(self, compute: Callable[[Arrays], object]) -> str | None:
        """Return the one child without which `compute` raises nothing; None if it is not one."""
        names = self.contributors
        found = [name for name in names[:MOST_TRIED] if self._goes_without(name, compute)]
        return found[0] if len(found) == 1 < len(names) <= MOST_TRIED else None

    def _goes_without(self, child: str, compute: Callable[[Arrays], object]) -> bool:
        try:
            compute(self.merged(without=child))
        except Exception:
            return False
        return True

    def leave_out(self, child: str, why: str) -> None:
        """Leave a child's share out, and say why of all whose contributions it holds."""
        held = roster.names(self._shares[child].place, child)
        said = self._shares[child].left
        self._shares[child] = JobShare(None, {**said, **dict.fromkeys(held, why)}, {})


def reason_of(error: Exception) -> str:
    """Return what an error says, and its type if it is none of ours."""
    return str(error) if isinstance(error, SubmergeError) else f"{type(error).__name__}: {error}"


def _part(place: Place, held: frozenset[str], child: str) -> Place | None:
    if isinstance(place, Incarnation):
        return place if child in held else None
    return roster.pruned(place, held)


def refusal(piece: JobPiece, me: Incarnation) -> SendJob:
    """Return the answer to a child's piece of a job that is over."""
    stamp, have = piece.stamp._replace(incarnation=me), all_of(piece.total)
    return SendJob(stamp.node, JobPieceTaken(stamp, piece.job, True, piece.parcel, have, over=True))


def _asked(ask: JobAsk, known: frozenset[str]) -> frozenset[str]:
    """Return whom a parent asks: who takes part; all whom it knows as well, first and last."""
    named = frozenset() if isinstance(ask.place, Incarnation | None) else frozenset(ask.place)
    return named | known if ask.phase in (OPENING, ENDED) else named
