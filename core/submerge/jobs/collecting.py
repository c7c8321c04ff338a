"""ShareCollection: one turn at a parent: what its children are asked, and what they contribute.

1. For each child one share is held. One that holds more clients replaces it; nothing is added up
   before the turn closes. So a share that comes twice, late, or from a child that has restarted
   counts once.
2. Shares are merged in the order of the children's names.
3. A share counts only for clients that the turn expects below that child.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from submerge.errors import PeerError
from submerge.jobs import roster
from submerge.jobs.envelopes import ENDED, OPENING, JobAsk, JobShare
from submerge.jobs.kind import JobKind
from submerge.jobs.machine import JobEffect, JobTimes, SendJob
from submerge.jobs.messages import JobPiece, JobPieceTaken
from submerge.jobs.parcels import IncomingParcel, OutgoingParcel, Parcel, all_of
from submerge.jobs.points import check_nodes
from submerge.jobs.roster import Place
from submerge.protocol.machine import Note, Now
from submerge.protocol.messages import Incarnation, Stamp
from submerge.protocol.randomness import RandomSource

SHARE_OF_TIME = 0.75
"""A child has so much of its parent's time: the rest is for what comes late."""


class ShareCollection:
    """What a parent collects in one turn.

    Parameters
    ----------
    ask : JobAsk
        As this parent got it, or made it: its place is all below; None while the job opens.
    children : frozenset of str
        Who is asked.
    kind : JobKind or None
        None where nothing is merged: while the job opens, and when it is over.
    clients : frozenset of str
        Children that are known to be clients: they take part for themselves alone.

    Raises
    ------
    UsageError
        If what is asked is larger than the job allows.
    """

    def __init__(
        self,
        ask: JobAsk,
        children: frozenset[str],
        kind: JobKind | None,
        me: Incarnation,
        times: JobTimes,
        now: Now,
        clients: frozenset[str] = frozenset(),
    ) -> None:
        self.ask, self.children, self._kind, self._me = ask, children, kind, me
        self._clients = clients
        self.closes_at = now.steady + ask.within_s
        self._shares: dict[str, JobShare] = {}
        self._out: dict[str, str] = {}
        self._incoming: dict[str, IncomingParcel] = {}
        self._asks = {child: self._outgoing(child, times) for child in sorted(children)}

    def _outgoing(self, child: str, times: JobTimes) -> OutgoingParcel:
        """Return what a child is asked, on its way."""
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
        """When something is due to the children."""
        return min((ask.due_at for ask in self._asks.values()), default=math.inf)

    @property
    def wakes_at(self) -> float:
        """When something is due."""
        return min(self.sends_at, self.closes_at)

    @property
    def complete(self) -> bool:
        """Whether every child has said what it has; of a job that is over, has heard of it."""
        if self.ask.phase == ENDED:
            return all(ask.settled for ask in self._asks.values())
        return all(child in self._shares or child in self._out for child in self.children)

    @property
    def held_bytes(self) -> int:
        """Bytes of payloads that are held."""
        shares = sum(a.nbytes for share in self._shares.values() for a in share.arrays.values())
        incoming = sum(each.held_bytes for each in self._incoming.values())
        asks = sum(len(p) for ask in self._asks.values() for p in ask.parcel.pieces)
        return shares + incoming + asks

    def send_due(self, now: Now, rng: RandomSource) -> Iterator[SendJob]:
        """Yield what is due to the children."""
        for child, ask in self._asks.items():
            for piece in ask.send_due(now, rng):
                yield SendJob(child, piece)

    def take_taken(
        self, child: str, taken: JobPieceTaken, now: Now, rng: RandomSource
    ) -> Iterator[SendJob]:
        """Note what a child has of what it is asked."""
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
        except PeerError as error:
            self._incoming.pop(child, None)
            self._out[child] = "what it contributed was refused"
            facts = {"job": piece.job, "child": child, "why": str(error)}
            return [Note("share refused", facts)], True
        self._asks[child].settle()
        return effects, True

    def _checked(self, child: str, piece: JobPiece, body: bytes) -> JobShare:
        """Return the share of a child, if it may be so."""
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
                self._kind.check_up(self.ask.down, share.arrays)
                check_nodes(share.arrays, held)
        return share

    def _taken(self, piece: JobPiece, have: bytes) -> SendJob:
        stamp = piece.stamp._replace(incarnation=self._me)
        return SendJob(stamp.node, JobPieceTaken(stamp, piece.job, True, piece.parcel, have))

    def share(self) -> JobShare:
        """Return what all children contribute together, as far as it is here."""
        place: dict[str, Place] = {}
        left: dict[str, str] = {}
        ups = []
        for child in sorted(self.children):
            share, expected = self._shares.get(child), self._expected(child)
            if share is not None and share.place:
                place[child] = share.place
                ups.append(share.arrays)
            said = {} if share is None else share.left
            names = roster.names(expected, child) if self.ask.phase != OPENING else {*said, child}
            absent = names - (roster.names(share.place, child) if share is not None else set())
            if self.ask.phase == OPENING and share is not None:
                absent -= {child} - said.keys()
            why = self._out.get(child, "silent")
            left |= {name: said.get(name, why) for name in sorted(absent)}
        arrays = self._kind.merge(self.ask.down, ups) if self._kind is not None and ups else {}
        return JobShare(place or None, left, arrays)


def _part(place: Place, held: frozenset[str], child: str) -> Place | None:
    """Return the part of a place that some clients are."""
    if isinstance(place, Incarnation):
        return place if child in held else None
    return roster.pruned(place, held)


def refusal(piece: JobPiece, me: Incarnation) -> SendJob:
    """Return the answer to a child's piece of a job that is over."""
    stamp, have = piece.stamp._replace(incarnation=me), all_of(piece.total)
    return SendJob(stamp.node, JobPieceTaken(stamp, piece.job, True, piece.parcel, have, over=True))


def asked_of(ask: JobAsk, known: frozenset[str]) -> frozenset[str]:
    """Return whom a parent asks: who takes part; all whom it knows as well, first and last."""
    named = frozenset() if isinstance(ask.place, Incarnation | None) else frozenset(ask.place)
    return named | known if ask.phase in (OPENING, ENDED) else named
