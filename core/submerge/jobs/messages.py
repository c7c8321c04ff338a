"""The two messages of a job: a piece of a payload, and that it has arrived.

    down   an ask: the job, the turn, what the round needs     `envelopes.JobAsk`
    up     a share: what those below contribute                `envelopes.JobShare`

Either goes in numbered pieces. A piece is sent again until it is taken; the same piece may come
twice, late, or in any order.
"""

from __future__ import annotations

from typing import NamedTuple

from submerge.protocol.messages import Stamp

PARCEL = 16
"""Bytes of a payload's name: a hash of the job, the turn and the content."""


class JobPiece(NamedTuple):
    """One piece of a payload.

    stamp : the child that it is from, or for; the *sender's* incarnation; seq is the turn
    job : the job's id
    up : from the child; otherwise for it
    parcel : the payload's name
    weight : clients whose contributions a share holds; 0 in an ask
    number, total : which piece, from 0, of how many
    data : its bytes
    """

    stamp: Stamp
    job: str
    up: bool
    parcel: bytes
    weight: int
    number: int
    total: int
    data: bytes


class JobPieceTaken(NamedTuple):
    """Which pieces of a payload have arrived.

    stamp : the child's name; the incarnation of *who took it*; seq is the turn
    up : of the pieces that were taken
    have : a bit a piece, the lowest first
    over : the receiver wants no more of this job: it is over, or it takes no part
    """

    stamp: Stamp
    job: str
    up: bool
    parcel: bytes
    have: bytes
    over: bool = False


JobMessage = JobPiece | JobPieceTaken
