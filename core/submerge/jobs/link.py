"""JobLink: what a child holds of one job towards its parent: the newest ask, and its own share."""

from __future__ import annotations

import math
from collections.abc import Iterator

from submerge.errors import PeerError, UsageError
from submerge.jobs import roster
from submerge.jobs.envelopes import JobAsk, JobShare
from submerge.jobs.job import MOST_PAYLOAD
from submerge.jobs.machine import JobEffect, JobPiece, JobPieceTaken, JobTimes, SendJob
from submerge.jobs.parcels import IncomingParcel, OutgoingParcel, Parcel, all_of
from submerge.protocol.machine import Note, Now
from submerge.protocol.messages import Incarnation, Stamp
from submerge.protocol.names import RandomSource


class JobLink:
    """One job, as seen from a child, by the newest whole ask; given up if no more is heard."""

    def __init__(self, node: str, me: Incarnation, times: JobTimes, now: Now) -> None:
        self._node, self._me, self._times = node, me, times
        self.ask: JobAsk | None = None
        self.expires_at = now.steady + times.cap_s * 10
        self._parcel, self._parent = b"", ""
        self._asked_by: Incarnation | None = None
        self._incoming: IncomingParcel | None = None
        self._outgoing: OutgoingParcel | None = None
        self._outgoing_weight = -1

    @property
    def wakes_at(self) -> float:
        due = math.inf if self._outgoing is None else self._outgoing.due_at
        return min(due, self.expires_at)

    @property
    def held_bytes(self) -> int:
        incoming = 0 if self._incoming is None else self._incoming.held_bytes
        outgoing = () if self._outgoing is None else self._outgoing.parcel.pieces
        asked = 0 if self.ask is None else sum(a.nbytes for a in self.ask.arrays.values())
        return incoming + sum(map(len, outgoing)) + asked

    def take(
        self, piece: JobPiece, sender: str, steady: float, effects: list[JobEffect]
    ) -> JobAsk | None:
        """Take a piece from the parent; return the ask that is complete with it."""
        turn, newest = piece.stamp.seq, -1 if self.ask is None else self.ask.turn
        if turn < newest:
            return None
        self._parent = sender
        if turn == newest:
            if piece.parcel == self._parcel:
                self._take_again(piece)
                self._confirm(piece, all_of(piece.total), effects)
            return None
        if self._incoming is None or not self._incoming.is_of(piece):
            if self._incoming is not None and turn < self._incoming.turn:
                return None
            self._incoming = IncomingParcel(piece, MOST_PAYLOAD)
        incoming = self._incoming
        try:
            incoming.take(piece)
            self._confirm(piece, incoming.have, effects)
            if not incoming.complete:
                return None
            ask = JobAsk.unpack(incoming.body())
            if (ask.job.id, ask.turn, ask.job.group) != (piece.job, turn, piece.stamp.group):
                raise PeerError("an ask is of another job or turn than its pieces")
        except PeerError as error:
            self._incoming = None
            effects.append(Note("ask refused", {"job": piece.job, "why": str(error)}))
            return None
        if self.ask is None:
            # The root ends it within `job_s`, and then says so for a while.
            self.expires_at = steady + ask.job.job_s + 2 * ask.job.round_s
        self.ask, self._parcel, self._asked_by = ask, piece.parcel, piece.stamp.incarnation
        self._incoming = self._outgoing = None
        self._outgoing_weight = -1
        return ask

    def _take_again(self, piece: JobPiece) -> None:
        if piece.stamp.incarnation != self._asked_by:
            self._asked_by = piece.stamp.incarnation
            if self._outgoing is not None:
                self._outgoing.again()

    def _confirm(self, piece: JobPiece, have: bytes, effects: list[JobEffect]) -> None:
        stamp = piece.stamp._replace(node=self._node, incarnation=self._me)
        taken = JobPieceTaken(stamp, piece.job, False, piece.parcel, have)
        effects.append(SendJob(self._parent, taken))

    def answer(self, ask: JobAsk, share: JobShare) -> None:
        """Send a share, in place of one that holds fewer contributions."""
        job, turn, weight = ask.job, ask.turn, roster.size(share.place)
        if weight <= self._outgoing_weight:
            return
        try:
            parcel = Parcel.of(job, turn, share.pack())
        except UsageError as error:
            left = dict.fromkeys(roster.names(share.place, self._node), str(error))
            parcel, weight = Parcel.of(job, turn, JobShare(None, left, {}).pack()), 0
        stamp = Stamp(self._node, job.group, self._me, turn)
        self._outgoing_weight = weight
        self._outgoing = OutgoingParcel(stamp, job.id, parcel, self._times, up=True, weight=weight)

    def ends_with(self, taken: JobPieceTaken) -> bool:
        """Note that the parent has enough of this share; whether to forget the job."""
        if self._outgoing is None or self._outgoing.parcel.name != taken.parcel:
            return False
        self._outgoing.settle()
        return self._incoming is None

    def take_taken(self, taken: JobPieceTaken, now: Now, rng: RandomSource) -> Iterator[SendJob]:
        if self._outgoing is not None:
            for piece in self._outgoing.take(taken, now, rng):
                yield SendJob(self._parent, piece)

    def send_due(self, now: Now, rng: RandomSource) -> Iterator[SendJob]:
        if self._outgoing is not None:
            for piece in self._outgoing.send_due(now, rng):
                yield SendJob(self._parent, piece)
