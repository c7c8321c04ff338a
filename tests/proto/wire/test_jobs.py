"""Messages of jobs as bytes: what is sent arrives; anything else is refused, by its type alone."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import example, given, settings
from hypothesis import strategies as st

from submerge import PeerError
from submerge.jobs.envelopes import ENDED, OPENING, JobAsk, JobShare
from submerge.jobs.job import MOST_PIECES, Job
from submerge.jobs.machine import JobHeard, JobPiece, JobPieceTaken, OpenJob
from submerge.jobs.parcels import Parcel, all_of
from submerge.protocol.machine import Start
from submerge.protocol.messages import Incarnation, Stamp
from submerge_proto.v1 import jobs_pb2 as pb
from submerge_proto.wire import codec, jobs, parts
from support.damage import damaged, mutate
from support.job_table import ROOT, JobTable, job

STAMP = Stamp("pump-1", "room", Incarnation(1_700_000_000_000, 7), 3)
PIECE = JobPiece(STAMP, "job-1", True, bytes(range(16)), 4, 1, 3, b"\0data")
TAKEN = JobPieceTaken(STAMP, "job-1", False, bytes(range(16)), b"\x05", True)

FOLDER = Path(__file__).parents[2] / "golden" / "v1"
GOLDEN = {"job_piece": PIECE, "job_ask": PIECE._replace(up=False, weight=0), "job_taken": TAKEN}


def heard_by(table: JobTable, name: str, piece: JobPiece, above: str) -> None:
    """Have a node hear a piece as it comes from the wire, or not at all."""
    table.step(name, JobHeard(piece, above, table.parent.get(name) == above))
    table.sent.clear()


@pytest.mark.parametrize("message", [PIECE, PIECE._replace(up=False, weight=0), TAKEN])
def test_what_is_sent_arrives(message):
    """Every field comes back."""
    assert message == jobs.decode(jobs.encode(message))


@pytest.mark.parametrize("name", GOLDEN)
def test_version_1_is_what_it_was(name, monkeypatch):
    """As `tests/golden/v1` has it, with its text; `SUBMERGE_REWRITE=1` writes what is new."""
    monkeypatch.setattr(parts, "SOFTWARE", "submerge 0.6.0")  # the version that wrote them
    path, data = FOLDER / f"{name}.bin", jobs.encode(GOLDEN[name])
    if os.environ.get("SUBMERGE_REWRITE") and not path.exists():
        path.write_bytes(data)
        text = text_format.MessageToString(pb.JobMessage.FromString(data), as_utf8=True)
        path.with_suffix(".txt").write_text(text, encoding="utf-8")
    golden, text = path.read_bytes(), path.with_suffix(".txt").read_text(encoding="utf-8")

    assert golden == data
    assert GOLDEN[name] == jobs.decode(golden)
    assert pb.JobMessage.FromString(golden) == text_format.Parse(text, pb.JobMessage())


def test_the_largest_piece_has_a_bounded_overhead():
    """Names of 64 letters, and the largest numbers: a broker's limit can be kept."""
    stamp = Stamp("n" * 64, "g" * 64, Incarnation(2**61, 2**63 - 1), 2**62)
    piece = JobPiece(stamp, "j" * 64, True, bytes(16), 4096, 4095, 4096, bytes(1 << 20))

    assert len(jobs.encode(piece)) - (1 << 20) <= jobs.OVERHEAD


def test_fields_keep_their_numbers():
    """Bytes of version 1 never change."""
    assert {"header": 1, "job": 2, "up": 3, "parcel": 4, "weight": 5} | {
        "number": 6,
        "total": 7,
        "data": 8,
    } == {each.name: each.number for each in pb.JobPiece.DESCRIPTOR.fields}
    assert {"header": 1, "job": 2, "up": 3, "parcel": 4, "have": 5, "over": 6} == {
        each.name: each.number for each in pb.JobPieceTaken.DESCRIPTOR.fields
    }


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"parcel": b"short"}, "name"),
        ({"number": 3}, "range"),
        ({"total": MOST_PIECES + 1}, "range"),
        ({"data": b""}, "oversize"),
        ({"data": bytes((1 << 20) + 1)}, "oversize"),
        ({"weight": 4097}, "range"),
        ({"up": False}, "range"),
        ({"job": "a/b"}, "name"),
        ({"stamp": STAMP._replace(node="+")}, "name"),
    ],
)
def test_a_piece_that_no_node_sends_is_refused(changes, kind):
    """With the word of what is wrong."""
    with pytest.raises(PeerError) as refused:
        jobs.decode(jobs.encode(PIECE._replace(**changes)))
    assert kind == refused.value.kind


@pytest.mark.parametrize("data", [b"", b"\0", b"\x0a\0", b"\x1a\0", bytes(64)])
def test_what_is_no_message_of_a_job_is_refused(data):
    """Nothing, an empty piece, and a kind of a later version."""
    with pytest.raises(PeerError):
        jobs.decode(data)


@pytest.mark.parametrize("message", [PIECE, TAKEN])
def test_a_watch_carries_messages_of_jobs(message):
    """They come out as they went in; what else a watch brings is left as it is."""
    data = jobs.encode(message)

    assert ("job", data) == codec.of_watch(codec.as_watched("job", data))
    assert ("watch", data) == codec.of_watch(data)
    with pytest.raises(PeerError):
        codec.decode("watch", codec.as_watched("job", data))


def test_another_version_is_refused_as_such():
    """Its remedy is an update."""
    message = pb.JobMessage.FromString(jobs.encode(PIECE))
    message.piece.header.version = 2

    with pytest.raises(PeerError, match="update the older"):
        jobs.decode(message.SerializeToString())


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(0, 2**32), st.sampled_from([PIECE, TAKEN]), st.booleans())
def test_damaged_messages_raise_nothing_but_the_refusal(seed, message, by_field):
    """Field by field, or bit by bit: decoded, or a PeerError."""
    rng = np.random.default_rng(seed)
    data = jobs.encode(message)
    if by_field:
        form = pb.JobMessage.FromString(data)
        mutate(form, rng)
        data = form.SerializeToString()
    else:
        data = damaged(data, rng)
    try:
        found = jobs.decode(data)
    except PeerError:
        return
    assert found == jobs.decode(jobs.encode(found))


ASKS = [
    JobAsk(job(), 0, 60.0, None, OPENING, {}),
    JobAsk(job("moments"), 1, 60.0, {"a": Incarnation(1, 2)}, "sums", {}, 1, 0),
    JobAsk(job(), 2, 60.0, Incarnation(1, 2), "lloyd", {"centers": np.ones((2, 2))}, 1, 1),
    JobAsk(job(), 9, 60.0, None, ENDED, {"centers": np.ones((2, 2))}, 1, 7, "why"),
]
SHARES = [
    JobShare(Incarnation(1, 2), {}, {}),
    JobShare({"hall": {"a": Incarnation(1, 2)}}, {"b": "silent"}, {"counts": np.ones(2)}),
    JobShare(
        Incarnation(1, 2),
        {},
        {"keys": np.ones(2), "weights": np.ones(2), "points": np.ones((2, 2))},
    ),
]


@pytest.mark.parametrize("value", [*ASKS, *SHARES], ids=repr)
def test_payloads_come_back_as_they_were(value):
    """Their bytes are the same when they are packed again."""
    assert value.pack() == type(value).unpack(value.pack()).pack()


def edited(body: bytes, rng: np.random.Generator) -> bytes:
    """Damage the header of a payload where a text or a number stands, or any bytes of it."""
    if rng.random() < 0.5:
        return damaged(body, rng)
    length = int.from_bytes(body[4:8], "little")
    header = body[8 : 8 + length]
    olds = [b"1", b"2", b"60.0", b'"room"', b"null", b'"', b"{", b"]", b"true", b'"f8"', b"0"]
    news = [b"-1", b"1e999", b"9" * 400, b"NaN", b"{}", b"[]", b'"x"', b"null", b"[" * 3000, b""]
    old, new = olds[int(rng.integers(len(olds)))], news[int(rng.integers(len(news)))]
    header = header.replace(old, new, int(rng.integers(1, 3)))
    return body[:4] + len(header).to_bytes(4, "little") + header + body[8 + length :]


@pytest.mark.slow
@settings(max_examples=300)
@given(st.integers(0, 2**32), st.sampled_from([*ASKS, *SHARES]))
@example(0, ASKS[0])
def test_damaged_payloads_raise_nothing_but_the_refusal(seed, value):
    """Another payload, or a PeerError."""
    with contextlib.suppress(PeerError):
        type(value).unpack(edited(value.pack(), np.random.default_rng(seed)))


def table_in_a_round() -> JobTable:
    """A root, an aggregator and two clients, in the second turn of a job."""
    rows = np.random.default_rng(0).standard_normal((20, 2))
    table = JobTable({"hall": {"a": rows}, "b": rows})
    table.loses = lambda source, send: source != ROOT and send.message.stamp.seq == 2
    table.step(ROOT, OpenJob(job()))
    table.deliver()
    return table


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_role_raises_for_what_a_liar_sends_in_whole_parcels(seed):
    """Damaged asks to a client and an aggregator, damaged shares to both parents, mid-job."""
    rng, table = np.random.default_rng(seed), table_in_a_round()
    sent = [s for _, s in table.heard if isinstance(s.message, JobPiece)]
    bodies = [s.message.data for s in sent if s.message.total == 1]
    for _ in range(250):
        body = edited(bodies[int(rng.integers(len(bodies)))], rng)
        turn = int(rng.choice([0, 1, 2, 2, 2, 3, 50]))
        up = bool(rng.random() < 0.6)
        name = ROOT if up and rng.random() < 0.5 else "hall" if up or rng.random() < 0.5 else "a"
        other = {ROOT: ("hall", "b"), "hall": ("a",)}.get(name, ()) if up else (table.parent[name],)
        sender = other[int(rng.integers(len(other)))]
        child = sender if up else name
        weight = int(rng.choice([0, 1, 1, 2])) if up else 0
        parcel = Parcel.of(job(), turn, body or b"x")
        stamp = Stamp(child, "room", table.roles[sender].incarnation, turn)
        for number, data in enumerate(parcel.pieces):
            piece = JobPiece(
                stamp, "job-1", up, parcel.name, weight, number, len(parcel.pieces), data
            )
            heard_by(table, name, piece, sender)
        if rng.random() < 0.05:
            have = all_of(int(rng.integers(1, 40)))
            taken = JobPieceTaken(stamp, "job-1", not up, parcel.name, have, rng.random() < 0.2)
            table.step(name, JobHeard(taken, sender, not up))
        if rng.random() < 0.02:
            table = table_in_a_round()
    table.step("a", Start({}))


def test_a_job_names_itself_in_json():
    """A record in a root's store, and the head of an ask."""
    made = job(settings={"clusters": 3, "held_out": 0.5, "seed": 7})

    assert made == Job.read(made.written())
