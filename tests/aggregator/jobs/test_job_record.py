"""A job that is over as a file: it comes back as it was, and no damage is taken for an answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.errors import PeerError
from submerge.jobs.job import Leaver
from submerge_aggregator.jobs.record import HEAD, JobRecord, header_end, header_of, packed, unpacked
from support.house import SCHEMA
from support.jobbed import job, outcome

LEFT = {"pump-2": Leaver("silent", 0)}
RECORD = JobRecord.of(
    outcome(job(), left=LEFT, declined={"pump-9": "old software"}),
    schema=SCHEMA.canonical,
    opened_s=100.0,
    ended_s=160.5,
)
DATA = packed(RECORD)


def test_a_record_comes_back_as_it_was():
    """Every field, and each array to the bit."""
    found = unpacked(DATA)

    assert RECORD.job == found.job
    assert (SCHEMA.canonical, 100.0, 160.5, "") == (
        found.schema, found.opened_s, found.ended_s, found.failure
    )  # fmt: skip
    assert (("pump-1", "pump-3"), LEFT, {"pump-9": "old software"}) == (
        found.stayed, found.left, found.declined
    )  # fmt: skip
    assert (5, 1) == (found.rounds, found.attempts)
    assert {*RECORD.answer} == {*found.answer}
    assert all(np.array_equal(RECORD.answer[name], found.answer[name]) for name in RECORD.answer)


def test_a_failed_job_has_no_answer():
    """Its reason is kept."""
    record = JobRecord.of(
        outcome(job(), failure="no node takes part"), schema=b"", opened_s=1.0, ended_s=2.0
    )
    found = unpacked(packed(record))

    assert (None, "no node takes part") == (found.answer, found.failure)


def test_the_header_is_read_without_the_answer():
    """Its first bytes say how long it is."""
    end = header_end(DATA[:HEAD])
    found = header_of(DATA[:end])

    assert (RECORD.job, None) == (found.record.job, found.record.answer)
    assert len(DATA) == found.begins + found.answer_bytes


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_each_changed_byte_is_noticed(place, change):
    """Also one that leaves numbers and JSON as valid as they were."""
    data = bytearray(DATA)
    data[place] ^= change

    with pytest.raises(PeerError):
        unpacked(bytes(data))


@given(st.integers(0, len(DATA) - 1))
def test_each_cut_is_noticed(length):
    with pytest.raises(PeerError):
        unpacked(DATA[:length])


def test_bytes_behind_the_answer_are_noticed():
    with pytest.raises(PeerError, match="too long"):
        unpacked(DATA + b"\0")
