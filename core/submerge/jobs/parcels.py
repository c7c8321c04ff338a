"""Parcels: a payload on its way in numbered pieces, until the other side has all of them.

The receiver answers each piece with all the numbers that it has; the sender sends what is missing.
So a piece that is lost, doubled or late changes nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import NamedTuple

from submerge.errors import PeerError, UsageError
from submerge.jobs.job import MOST_PIECES, Job
from submerge.jobs.machine import PARCEL, JobPiece, JobPieceTaken, JobTimes
from submerge.protocol.machine import Now
from submerge.protocol.messages import Incarnation, Stamp
from submerge.protocol.names import RandomSource
from submerge.protocol.retry import Retry

WINDOW = 16
"""Pieces that are sent without an answer."""


class Parcel(NamedTuple):
    """A payload in pieces, named by 16 bytes of the job, the turn and the content."""

    name: bytes
    pieces: tuple[bytes, ...]

    @classmethod
    def of(cls, job: Job, turn: int, body: bytes) -> Parcel:
        """Return a payload in pieces, none empty; UsageError if it is more than the job allows."""
        most = min(job.payload_bytes, MOST_PIECES * job.piece_bytes)
        if len(body) > most:
            raise UsageError(
                f"a payload of this job has at most {most} bytes, got {len(body)}:"
                " raise payload_bytes, or piece_bytes"
            )
        starts = range(0, len(body), job.piece_bytes)
        pieces = tuple(body[at : at + job.piece_bytes] for at in starts)
        return cls(parcel_name(job.id, turn, body), pieces)


def parcel_name(job: str, turn: int, body: bytes) -> bytes:
    """Return the name of a payload: another job, turn or content has another."""
    return hashlib.blake2b(f"{job} {turn} ".encode() + body, digest_size=PARCEL).digest()


def bits(numbers: set[int], total: int) -> bytes:
    """Return numbers below `total` as a bit each, the lowest first."""
    return sum(1 << i for i in numbers).to_bytes(-(-total // 8), "little")


def numbers(bits: bytes) -> set[int]:
    return {8 * i + j for i, byte in enumerate(bits) for j in range(8) if byte >> j & 1}


class OutgoingParcel:
    """A parcel on its way to one other node; each piece's stamp is child, this incarnation, turn.

    awaits_more : Until `settle` its first piece is sent now and then: the other side may forget it.
    """

    def __init__(
        self,
        stamp: Stamp,
        job: str,
        parcel: Parcel,
        times: JobTimes,
        *,
        up: bool,
        weight: int = 0,
        awaits_more: bool = False,
    ) -> None:
        self.stamp, self.job, self.parcel, self.up, self.weight = stamp, job, parcel, up, weight
        self.settled = False
        self._awaits_more = awaits_more
        self._retry = Retry(times.patience_s, times.cap_s)
        self._retry.now()
        self._have: set[int] = set()
        self._sent: set[int] = set()
        self._peer: Incarnation | None = None

    @property
    def due_at(self) -> float:
        """When the next pieces are to be sent; `inf` once it is settled."""
        return math.inf if self.settled else self._retry.at

    @property
    def delivered(self) -> bool:
        """Whether the other side has said that it has all pieces."""
        return len(self._have) == len(self.parcel.pieces)

    def settle(self) -> None:
        """Send nothing more."""
        self.settled = True

    def again(self) -> None:
        """Begin from the first piece: the other side has another memory than before."""
        self._have.clear()
        self._sent.clear()
        self._peer, self.settled = None, False
        self._retry.now()

    def send_due(self, now: Now, rng: RandomSource) -> Iterator[JobPiece]:
        if self.settled or self._retry.at > now.steady:
            return
        self._sent.clear()
        self._retry.tried(now.steady, rng)
        if self.delivered:
            yield self._piece(0)
        else:
            yield from self._next()

    def take(self, taken: JobPieceTaken, now: Now, rng: RandomSource) -> Iterator[JobPiece]:
        """Note what has arrived; yield the pieces that come next."""
        total = len(self.parcel.pieces)
        if self.settled or taken.parcel != self.parcel.name or taken.stamp.seq != self.stamp.seq:
            return
        have = {i for i in numbers(taken.have) if i < total}
        if taken.stamp.incarnation != self._peer:
            # Another process, which has only what it says itself.
            self._peer, self._have = taken.stamp.incarnation, set()
            self._sent.clear()
        elif self.delivered and len(have) < total:
            # It has given up what it had, or this is an old answer: then some pieces go twice.
            self._have = set()
            self._sent.clear()
        progress = not have <= self._have
        self._have |= have
        if not progress:
            return
        self._retry.stop()
        self._retry.tried(now.steady, rng)
        if self.delivered:
            if not self._awaits_more:
                self.settle()
            return
        yield from self._next()

    def _next(self) -> Iterator[JobPiece]:
        """Yield the next missing pieces, as long as few are unanswered."""
        for i in range(len(self.parcel.pieces)):
            if len(self._sent - self._have) >= WINDOW:
                return
            if i not in self._have and i not in self._sent:
                self._sent.add(i)
                yield self._piece(i)

    def _piece(self, i: int) -> JobPiece:
        pieces = self.parcel.pieces
        return JobPiece(
            *(self.stamp, self.job, self.up, self.parcel.name, self.weight),
            *(i, len(pieces), pieces[i]),
        )


class IncomingParcel:
    """A parcel that is arriving, of `most_bytes` at most; `first` is any piece of it."""

    def __init__(self, first: JobPiece, most_bytes: int) -> None:
        self.name, self.turn = first.parcel, first.stamp.seq
        self.weight, self.sender = first.weight, first.stamp.incarnation
        self._job, self._total, self._most = first.job, first.total, most_bytes
        self._pieces: dict[int, bytes] = {}
        self.held_bytes = 0

    def is_of(self, piece: JobPiece) -> bool:
        same = piece.parcel == self.name and piece.stamp.incarnation == self.sender
        return same and piece.stamp.seq == self.turn and piece.total == self._total

    def take(self, piece: JobPiece) -> None:
        """Take a piece of it; raises PeerError if the payload is larger than allowed."""
        if piece.number in self._pieces:
            return
        self.held_bytes += len(piece.data)
        if self._total > MOST_PIECES or self.held_bytes > self._most:
            raise PeerError(f"a payload has at most {self._most} bytes", kind="oversize")
        self._pieces[piece.number] = piece.data

    @property
    def have(self) -> bytes:
        """Which pieces are here, as `JobPieceTaken` says it."""
        return bits(set(self._pieces), self._total)

    @property
    def complete(self) -> bool:
        return len(self._pieces) == self._total

    def body(self) -> bytes:
        """Return the payload; raises PeerError if its content has another name."""
        body = b"".join(self._pieces[i] for i in range(self._total))
        if parcel_name(self._job, self.turn, body) != self.name:
            raise PeerError("the pieces of a payload do not belong together")
        return body


def all_of(total: int) -> bytes:
    """Return that all pieces are here, as `JobPieceTaken` says it."""
    return bits(set(range(total)), total)
