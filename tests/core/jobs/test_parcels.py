"""Payloads in pieces: whatever is lost, doubled or mixed up, all arrives, and within bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import PeerError, UsageError
from submerge.jobs import roster
from submerge.jobs.machine import JobPieceTaken, JobTimes
from submerge.jobs.parcels import (
    WINDOW,
    IncomingParcel,
    OutgoingParcel,
    Parcel,
    all_of,
    bits,
    numbers,
)
from submerge.protocol.machine import Now
from submerge.protocol.messages import Incarnation, Stamp
from support.job_table import job

STAMP = Stamp("pump-1", "room", Incarnation(1, 1), 2)
THERE = Stamp("pump-1", "room", Incarnation(1, 2), 2)


def outgoing(body: bytes, *, awaits_more: bool = False) -> OutgoingParcel:
    """Return a payload on its way, in pieces of 256 bytes."""
    parcel = Parcel.of(job(piece_bytes=256), 2, body)
    return OutgoingParcel(STAMP, "job-1", parcel, JobTimes(), up=True, awaits_more=awaits_more)


def taken(parcel: Parcel, have: bytes, stamp: Stamp = THERE) -> JobPieceTaken:
    """Return what the other side says."""
    return JobPieceTaken(stamp, "job-1", True, parcel.name, have)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 9000), st.floats(0.0, 0.6))
def test_everything_arrives_in_the_end(seed, size, loss):
    """Pieces and answers are lost, doubled and reordered; the content has the same bytes."""
    rng = np.random.default_rng(seed)
    body, time, incoming = rng.bytes(size), 0.0, None
    source = outgoing(body)
    while not source.settled:
        time = max(time, source.due_at)
        waiting = list(source.send_due(Now(time, 0.0), rng))
        assert len(waiting) <= WINDOW
        while waiting:
            piece = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < loss:
                continue
            incoming = incoming or IncomingParcel(piece, 1 << 20)
            for _ in range(int(rng.integers(1, 3))):
                incoming.take(piece)
                if rng.random() >= loss:
                    answer = taken(source.parcel, incoming.have)
                    waiting += source.take(answer, Now(time, 0.0), rng)

    assert body == incoming.body()
    assert size == incoming.held_bytes


def test_a_missing_piece_is_asked_for_and_sent_again_alone():
    """Of five pieces the fourth is lost: the next try is that one."""
    source, rng = outgoing(bytes(1200)), np.random.default_rng(0)
    sent = list(source.send_due(Now(0.0, 0.0), rng))
    list(source.take(taken(source.parcel, bits({0, 1, 2, 4}, 5)), Now(0.1, 0.0), rng))

    again = list(source.send_due(Now(source.due_at, 0.0), rng))

    assert [0, 1, 2, 3, 4] == [piece.number for piece in sent]
    assert [3] == [piece.number for piece in again]


def test_another_process_at_the_other_end_gets_all_again():
    """What its predecessor had is gone."""
    source, rng = outgoing(bytes(1200), awaits_more=True), np.random.default_rng(0)
    list(source.send_due(Now(0.0, 0.0), rng))
    list(source.take(taken(source.parcel, all_of(5)), Now(0.1, 0.0), rng))
    assert source.delivered

    poke = list(source.send_due(Now(source.due_at, 0.0), rng))
    restarted = THERE._replace(incarnation=Incarnation(9, 9))
    rest = list(source.take(taken(source.parcel, bits({0}, 5), restarted), Now(99.0, 0.0), rng))

    assert [0] == [piece.number for piece in poke]
    assert [1, 2, 3, 4] == [piece.number for piece in rest]


def test_pieces_of_another_content_do_not_pass():
    """The name is a hash of job, turn and content."""
    rng = np.random.default_rng(0)
    pieces = list(outgoing(bytes(600)).send_due(Now(0.0, 0.0), rng))
    incoming = IncomingParcel(pieces[0], 1 << 20)
    for piece in pieces:
        incoming.take(piece._replace(data=b"x" * len(piece.data)))

    with pytest.raises(PeerError, match="do not belong together"):
        incoming.body()


def test_a_payload_larger_than_allowed_is_refused_before_it_is_here():
    """Bytes that are held stay within the bound, but for a piece."""
    rng = np.random.default_rng(0)
    pieces = list(outgoing(bytes(4000)).send_due(Now(0.0, 0.0), rng))
    incoming = IncomingParcel(pieces[0], 1000)

    for piece in pieces[:3]:
        incoming.take(piece)

    with pytest.raises(PeerError, match="at most 1000 bytes"):
        incoming.take(pieces[3])
    assert incoming.held_bytes <= 1000 + 256


def test_a_payload_larger_than_its_job_allows_is_not_sent():
    """The line says what to raise."""
    with pytest.raises(UsageError, match="raise payload_bytes"):
        Parcel.of(job(payload_bytes=300), 2, bytes(301))


@settings(max_examples=40)
@given(st.sets(st.integers(0, 299)))
def test_bits_are_numbers(chosen):
    """There and back."""
    assert chosen == numbers(bits(chosen, 300))


names = st.sampled_from("abcdefgh")
incarnations = st.builds(Incarnation, st.integers(1, 5), st.integers(0, 5))
rosters = st.recursive(
    st.dictionaries(names, incarnations, max_size=4),
    lambda below: st.dictionaries(st.sampled_from(["x", "y", "z"]), below, max_size=3),
    max_leaves=12,
)


@settings(max_examples=40)
@given(rosters)
def test_a_roster_without_repeats_has_each_client_once(place):
    """All that there are, each in one place, at most so many; no aggregator without any."""
    once = roster.without_repeats(place)

    assert roster.names(place) == roster.names(once)
    assert roster.size(once) == len(roster.names(once))
    assert min(3, roster.size(once)) == roster.size(roster.without_repeats(place, most=3))
    assert once == roster.pruned(once, roster.names(once))


@settings(max_examples=40)
@given(rosters, st.sets(names))
def test_a_pruned_roster_has_exactly_those_who_stay(place, kept):
    """And reads back as it is written."""
    left = roster.pruned(place, kept)

    assert roster.names(place) & kept == roster.names(left)
    assert left == roster.read(roster.written(left))
