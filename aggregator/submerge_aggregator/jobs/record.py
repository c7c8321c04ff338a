"""JobRecord: a job that is over, as a file and back: how it ended, and its answer.

SMJR1, hash of what follows up to the answer, length of the header, the header as JSON (with the
length and the hash of the answer), the answer as `submerge.jobs.arrays` packs it
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from submerge.errors import PeerError
from submerge.jobs import roster
from submerge.jobs.arrays import Arrays, pack, unpack
from submerge.jobs.job import MOST_PAYLOAD, Job, JobOutcome, Leaver

MAGIC = b"SMJR1\n"
HASH_BYTES, LENGTH_BYTES = 32, 4
HEAD = len(MAGIC) + HASH_BYTES + LENGTH_BYTES

MOST_HEADER = 64 << 20  # bytes of a header: most are those of a schema with many channels

DEEP_OR_LARGE = (RecursionError, OverflowError)
"""What JSON with absurd nesting, or absurd numbers, ends in."""

MOST_BYTES = HEAD + MOST_HEADER + MOST_PAYLOAD


@dataclass(frozen=True, slots=True, eq=False)
class JobRecord:
    job: Job
    # the canonical text of its group's schema, for who reads the answer; empty if not known
    schema: bytes
    # Unix seconds by the root's clock; `opened_s` is 0 where a root that restarted ended it
    opened_s: float
    ended_s: float
    failure: str  # why there is no answer; empty where there is one
    stayed: tuple[str, ...]  # whose rows the answer is of
    left: Mapping[str, Leaver]
    declined: Mapping[str, str]  # who took no part, and why
    rounds: int
    attempts: int
    answer: Arrays | None = None

    @classmethod
    def of(
        cls, outcome: JobOutcome, *, schema: bytes, opened_s: float, ended_s: float
    ) -> JobRecord:
        stayed = tuple(sorted(roster.names(outcome.stayed)))
        return cls(
            *(outcome.job, schema, opened_s, ended_s, outcome.failure, stayed),
            *(outcome.left, outcome.declined, outcome.rounds, outcome.attempts, outcome.answer),
        )


class RecordHeader(NamedTuple):
    record: JobRecord
    begins: int
    answer_bytes: int
    answer_hash: str


def packed(record: JobRecord) -> bytes:
    answer = b"" if record.answer is None else pack({}, record.answer)
    header = {
        "job": record.job.written(),
        "schema": record.schema.decode(),
        "opened_s": record.opened_s,
        "ended_s": record.ended_s,
        "failure": record.failure,
        "stayed": list(record.stayed),
        "left": {name: list(each) for name, each in record.left.items()},
        "declined": dict(record.declined),
        "rounds": record.rounds,
        "attempts": record.attempts,
        "answer_bytes": len(answer),
        "answer_hash": hashlib.sha256(answer).hexdigest() if answer else "",
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    hashed = len(text).to_bytes(LENGTH_BYTES, "little") + text
    return b"".join((MAGIC, hashlib.sha256(hashed).digest(), hashed, answer))


def header_end(data: bytes) -> int:
    """Return where the header of a record's bytes ends; the first `HEAD` bytes say it."""
    if not data.startswith(MAGIC) or len(data) < HEAD:
        raise PeerError("expected the record of a job, got something else")
    length = int.from_bytes(data[HEAD - LENGTH_BYTES : HEAD], "little")
    if length > MOST_HEADER:
        raise PeerError(f"a header has at most {MOST_HEADER:,} bytes", kind="oversize")
    return HEAD + length


def header_of(data: bytes) -> RecordHeader:
    """Return the header of a record's bytes, of which the answer may be missing."""
    end = header_end(data)
    hashed = data[HEAD - LENGTH_BYTES : end]
    if len(data) < end:
        raise PeerError("the record of a job is cut short", kind="shape")
    if hashlib.sha256(hashed).digest() != data[len(MAGIC) : len(MAGIC) + HASH_BYTES]:
        raise PeerError("the record of a job is damaged")
    try:
        return _header(json.loads(hashed[LENGTH_BYTES:]), end)
    except (ValueError, KeyError, TypeError, AttributeError, *DEEP_OR_LARGE) as error:
        raise PeerError("the record of a job has another form") from error


def unpacked(data: bytes) -> JobRecord:
    """Return the record that bytes hold, with its answer."""
    found = header_of(data)
    record, body = found.record, data[found.begins :]
    if len(body) != found.answer_bytes:
        raise PeerError("the answer of a job is cut short, or too long", kind="shape")
    if not body:
        return record
    if hashlib.sha256(body).hexdigest() != found.answer_hash:
        raise PeerError("the answer of a job is damaged")
    return replace(record, answer=unpack(body)[1])


def _header(value: Any, begins: int) -> RecordHeader:
    """Return a header from values of JSON whose hash was right: our own."""
    record = JobRecord(
        Job.read(value["job"]),
        str(value["schema"]).encode(),
        float(value["opened_s"]),
        float(value["ended_s"]),
        str(value["failure"]),
        tuple(map(str, value["stayed"])),
        {str(name): Leaver(str(why), int(n)) for name, (why, n) in value["left"].items()},
        {str(name): str(why) for name, why in value["declined"].items()},
        int(value["rounds"]),
        int(value["attempts"]),
    )
    return RecordHeader(record, begins, int(value["answer_bytes"]), str(value["answer_hash"]))
