"""What every uplink and every downlink promises, whatever carries the bytes.

A `Way` makes both ends, cuts the way between them, and heals it. One that joins `WAYS` is
held to all of this.
"""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import pytest

from submerge import UsageError
from submerge.jobs.machine import JobPiece
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.messages import Answer, Incarnation, Reason, Stamp
from submerge_aggregator.downlink import Downlink
from submerge_client.uplink import Came, Heard, Opened, Parted, TooLarge, Uplink
from submerge_proto.wire import codec, jobs
from support.patience import PATIENCE_S
from support.programs import free_port
from support.ways import Ear, Host

LIMIT = 100_000
HELLO, MODEL = b"hello", b"model"


def unheard(*_: object, **__: object) -> None:
    """A note that nobody reads."""


class InMemory:
    """Both ends in memory; a cut is told to the hub."""

    def __init__(self, _: pytest.FixtureRequest) -> None:
        from submerge_client.uplink.in_memory import Memory

        self.memory, self.nodes = Memory("test"), set[str]()

    def uplink(self, node: str, *groups: str, limit: int = LIMIT) -> Uplink:
        self.nodes.add(node)
        return self.memory.uplink(node, groups, limit=limit)

    def downlink(self) -> Downlink:
        from submerge_aggregator.downlink.in_memory import InMemoryDownlink

        return InMemoryDownlink(self.memory, limit=LIMIT)

    def cut(self, host: Host) -> None:
        for node in self.nodes:
            self.memory.cut(node)

    def heal(self, host: Host) -> Host:
        for node in self.nodes:
            self.memory.heal(node)
        return host


class OverMqtt:
    """Both ends at one broker; a cut ends it, and it starts again with nothing kept."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.broker: Any = request.getfixturevalue("mosquitto")

    def uplink(self, node: str, *groups: str, limit: int = LIMIT) -> Uplink:
        from submerge_client.uplink.broker import Broker
        from submerge_client.uplink.over_mqtt import MqttUplink

        return MqttUplink(
            Broker(self.broker.host, self.broker.port),
            fleet="f",
            parent="a",
            node=node,
            groups=groups,
            limit=limit,
            first_wait_s=0.02,
        )

    def downlink(self) -> Downlink:
        from submerge_aggregator.downlink.over_mqtt import MqttDownlink
        from submerge_client.uplink.broker import Broker

        return MqttDownlink(
            Broker(self.broker.host, self.broker.port),
            fleet="f",
            parent="a",
            limit=LIMIT,
            note=unheard,
            first_wait_s=0.02,
        )

    def cut(self, host: Host) -> None:
        self.broker.stop()

    def heal(self, host: Host) -> Host:
        self.broker.start()
        return host


class OverGrpc:
    """A server and its clients; a cut ends the server, and another takes its port."""

    def __init__(self, _: pytest.FixtureRequest) -> None:
        self.address = f"127.0.0.1:{free_port()}"

    def uplink(self, node: str, *groups: str, limit: int = LIMIT) -> Uplink:
        from submerge_client.uplink.over_grpc import GrpcUplink

        return GrpcUplink(self.address, node=node, groups=groups, limit=limit)

    def downlink(self) -> Downlink:
        from submerge_aggregator.downlink.over_grpc import GrpcDownlink

        return GrpcDownlink(self.address, limit=LIMIT)

    def cut(self, host: Host) -> None:
        host.close()

    def heal(self, host: Host) -> Host:
        again = Host(self.downlink())
        again.publish("", HELLO)
        again.publish("g", MODEL)
        return again


WAYS: list[Any] = [
    pytest.param(way, id=way.__name__, marks=marks)
    for way, needs, marks in (
        (InMemory, "submerge_aggregator.downlink.in_memory", ()),
        (OverMqtt, "submerge_aggregator.downlink.over_mqtt", ()),
        (OverGrpc, "submerge_aggregator.downlink.over_grpc", pytest.mark.slow),
    )
    if find_spec(needs)
]


class Meeting:
    """A host and its children, all of whom are closed in the end."""

    def __init__(self, way: Any) -> None:
        self.way = way
        self.host = Host(way.downlink())
        self.uplinks: list[Uplink] = []
        self.host.publish("", HELLO)

    def child(
        self,
        node: str = "c",
        *groups: str,
        limit: int = LIMIT,
        hear: Callable[[Heard], None] | None = None,
    ) -> tuple[Uplink, Ear]:
        """A child of group g, if nothing else is said, that has heard its host.

        A broker is there before the host listens at it, and then a join is nobody's.
        """
        ear = Ear()
        uplink = self.way.uplink(node, *(groups or ("g",)), limit=limit)
        self.uplinks.append(uplink)
        uplink.open(hear or ear)
        if hear is None:
            ear.opened()
            ear.has(HELLO)
        return uplink, ear

    def answers(self, data: bytes, answer: bytes) -> None:
        """Let the host answer the next letter with certain bytes."""
        letter = self.host.letter(data)
        self.host.call(letter.answer, "joined" if letter.kind == "join" else "answer", answer)

    def cut(self) -> None:
        self.way.cut(self.host)

    def heal(self) -> None:
        self.host = self.way.heal(self.host)

    def close(self) -> None:
        for uplink in self.uplinks:
            uplink.close()
        self.host.close()


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    return request.param(request)


@pytest.fixture
def meeting(way: Any) -> Iterator[Meeting]:
    meeting = Meeting(way)
    yield meeting
    meeting.close()


# -- up and down -----------------------------------------------------------------------


def test_what_goes_up_is_answered(meeting):
    """A join and a report arrive as they were sent, and each answer comes as its kind."""
    uplink, ear = meeting.child("c")
    uplink.send("join", "g", b"may I")
    meeting.answers(b"may I", b"you may")
    joined = ear.came(b"you may")
    uplink.send("report", "g", b"all of it")
    meeting.answers(b"all of it", b"thanks")

    assert Came("joined", b"you may") == joined
    assert Came("answer", b"thanks") == ear.came(b"thanks")


def test_a_letter_names_no_one_else(meeting):
    """Where the transport says who sent a letter, it says so rightly."""
    uplink, _ = meeting.child("c")
    uplink.send("join", "g", b"may I")

    assert meeting.host.letter(b"may I").node in ("c", None)


def test_children_hear_their_own_answers_alone(meeting):
    """What one child is told, another does not hear."""
    (one, ear_of_one), (two, ear_of_two) = meeting.child("one"), meeting.child("two")
    one.send("report", "g", b"by one")
    two.send("report", "g", b"by two")
    meeting.answers(b"by one", b"to one")
    ear_of_one.came(b"to one")
    meeting.answers(b"by two", b"to two")
    ear_of_two.came(b"to two")

    assert b"to two" not in ear_of_one.all_came
    assert b"to one" not in ear_of_two.all_came


def test_answers_about_two_groups_both_arrive(meeting):
    """Answers to one child do not take each other's place."""
    uplink, ear = meeting.child("c", "g", "h")
    uplink.send("report", "g", b"of g")
    uplink.send("report", "h", b"of h")
    letters = [meeting.host.letter(b"of g"), meeting.host.letters.get(timeout=PATIENCE_S)]
    for letter in letters:
        meeting.host.call(letter.answer, "answer", b"for " + letter.data)

    assert {b"of g", b"of h"} == {letter.data for letter in letters}
    ear.has(b"for of g", b"for of h")


# -- jobs --------------------------------------------------------------------------------


def piece(number: int, *, size: int = 8, up: bool = True) -> bytes:
    """One of 500 pieces of a job's payload, as bytes."""
    stamp = Stamp("c", "g", Incarnation(1, 2), 3)
    return jobs.encode(JobPiece(stamp, "job-1", up, bytes(16), int(up), number, 500, bytes(size)))


def test_messages_of_jobs_go_both_ways(meeting):
    """Each arrives, in order: they do not replace each other. Another child hears none."""
    (uplink, ear), (_, other) = meeting.child("c"), meeting.child("d")
    for number in range(40):
        uplink.send("job", "g", piece(number))
    for number in range(40):
        letter = meeting.host.letter(piece(number))
        assert ("job", True) == (letter.kind, letter.node in ("c", None))
        meeting.host.call(letter.answer, "job", b"")
    for number in range(40):
        down = piece(number, up=False)
        meeting.host.call(meeting.host.downlink.push, "c", "g", "job", down)
    ear.has(*(piece(number, up=False) for number in range(40)))
    meeting.host.publish("g", MODEL)
    other.came(MODEL)

    came = [heard for heard in ear.heard if isinstance(heard, Came) and heard.kind == "job"]
    assert [piece(number, up=False) for number in range(40)] == [heard.data for heard in came]
    assert {HELLO, MODEL} == set(other.all_came)


def test_a_flood_of_a_job_keeps_no_report_waiting(meeting):
    """It arrives, and is answered, among 30 MB of a job."""
    uplink, ear = meeting.child("c")
    for number in range(500):
        uplink.send("job", "g", piece(number, size=60_000))
    uplink.send("report", "g", b"all of it")
    letter = meeting.host.letters.get(timeout=PATIENCE_S)
    while letter.kind == "job":
        meeting.host.call(letter.answer, "job", b"")
        letter = meeting.host.letters.get(timeout=PATIENCE_S)
    meeting.host.call(letter.answer, "answer", b"thanks")

    ear.came(b"thanks")
    assert b"all of it" == letter.data


@pytest.mark.slow
def test_messages_of_jobs_wait_in_bounded_memory(meeting):
    """Of 30 MB that go into a cut way, less than a third is held."""
    uplink, ear = meeting.child("c")
    meeting.cut()
    ear.parted()
    tracemalloc.start()
    for number in range(500):
        uplink.send("job", "g", piece(number, size=60_000))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    meeting.heal()

    assert held < 10_000_000


def test_a_child_that_reads_no_jobs_gets_its_answers(meeting):
    """Many messages of a job that a child does not read take no answer from it."""
    _, ear = meeting.child("c")
    stamp = Stamp("c", "g", Incarnation(1, 2), 3)
    answer = codec.encode(Answer(stamp, Reason.ACK))

    def push_all() -> None:
        push = meeting.host.downlink.push
        for number in range(400):
            push("c", "g", "job", piece(number, size=60_000, up=False))
        push("c", "g", "answer", answer)

    meeting.host.call(push_all)

    heard = ear.until(
        lambda heard: (
            isinstance(heard, Came)
            and heard.kind in ("answer", "watch")
            and heard.data not in (HELLO, MODEL)
        )
    )
    assert Answer(stamp, Reason.ACK) == codec.decode(heard.kind, heard.data)


# -- models ------------------------------------------------------------------------------


def test_who_comes_late_hears_the_newest_and_nothing_older(meeting):
    """A child that opens after ten models hears the hello and the tenth."""
    _, early = meeting.child("early")
    for number in range(10):
        meeting.host.publish("g", b"model %d" % number)
    early.came(b"model 9")  # so it is on its way to all
    _, ear = meeting.child("late")
    ear.came(b"model 9")

    assert {HELLO, b"model 9"} == set(ear.all_came)


def test_a_model_reaches_its_group_and_a_hello_everyone(meeting):
    """Who is not of a group hears nothing of it."""
    (_, ear_of_g), (_, ear_of_h) = meeting.child("one", "g"), meeting.child("two", "h")
    meeting.host.publish("g", b"of g")
    meeting.host.publish("", b"hello again")
    ear_of_g.came(b"of g")
    ear_of_h.came(b"hello again")

    assert b"of g" not in ear_of_h.all_came


def test_a_model_is_pushed_to_a_child_that_lacks_it(meeting):
    """It hears again what it has heard before."""
    meeting.host.publish("g", MODEL)
    _, ear = meeting.child("c")
    ear.came(MODEL)
    meeting.host.call(meeting.host.downlink.push, "c", "g", "watch", MODEL)

    assert Came("watch", MODEL) == ear.came(MODEL)


def test_an_answer_is_pushed_to_one_child(meeting):
    """It arrives as it was, by whatever kind of message; no other child hears it."""
    (_, ear), (_, other) = meeting.child("c"), meeting.child("d")
    stamp = Stamp("c", "g", Incarnation(1, 2), 3)
    ordered = Answer(stamp, Reason.ACK, desired_states=(DesiredState("c", 4, paused=True),))
    meeting.host.call(meeting.host.downlink.push, "c", "g", "answer", codec.encode(ordered))
    meeting.host.publish("g", MODEL)

    answer = ear.until(lambda heard: isinstance(heard, Came) and heard.data not in (HELLO, MODEL))
    assert ordered == codec.decode(answer.kind, answer.data)
    other.came(MODEL)
    assert {HELLO, MODEL} == set(other.all_came)


def test_models_come_in_the_order_of_their_publication(meeting):
    """Some may be left out, but no older one follows a newer."""
    _, ear = meeting.child("c")
    for number in range(200):
        meeting.host.publish("g", b"%04d" % number)
    ear.came(b"0199")

    models = [data for data in ear.all_came if data != HELLO]
    assert sorted(models) == models


# -- when there is no way -----------------------------------------------------------------


@pytest.mark.slow
def test_a_way_that_was_cut_opens_again(meeting):
    """Parted says why; Opened follows; hello and model come again; letters go as before."""
    meeting.host.publish("g", MODEL)
    uplink, ear = meeting.child("c")
    ear.came(MODEL)
    meeting.cut()
    parted = ear.parted()
    meeting.heal()
    ear.opened()
    heard = set[bytes]()
    while {HELLO, MODEL} != heard:
        heard.add(ear.until(lambda heard: isinstance(heard, Came)).data)
    uplink.send("report", "g", b"here again")
    meeting.answers(b"here again", b"welcome")

    assert parted.why
    ear.came(b"welcome")


@pytest.mark.slow
def test_nothing_grows_while_there_is_no_way(meeting):
    """Ten thousand reports into a cut way are, at most, one that waits; it is the newest."""
    uplink, ear = meeting.child("c")
    meeting.cut()
    ear.parted()
    tracemalloc.start()
    for number in range(10_000):
        uplink.send("report", "g", b"%05d" % number + bytes(1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    meeting.heal()
    ear.came(HELLO)  # before that, a broker is there, and perhaps nobody else
    uplink.send("join", "g", b"last")
    meeting.host.letter(b"last")
    reports = []
    while not meeting.host.letters.empty():
        reports.append(meeting.host.letters.get())

    assert peak < 1_000_000
    assert {b"09999" + bytes(1000)} >= {letter.data for letter in reports}


@pytest.mark.slow
def test_each_parting_is_told_once(meeting):
    """However often it is tried in vain, the same reason is not given twice in a row."""
    _, ear = meeting.child("c")
    meeting.cut()
    ear.parted()
    meeting.heal()
    ear.opened()

    whys = [heard.why if isinstance(heard, Parted) else "" for heard in ear.heard]
    assert not [why for why, again in pairwise(whys) if why and why == again]


@pytest.mark.slow
def test_a_child_that_is_first_waits_for_its_parent(way):
    """Nobody is there: that is said, and when somebody comes, what was sent may go."""
    host, uplink, ear = Host(way.downlink()), way.uplink("c", "g"), Ear()
    way.cut(host)
    uplink.open(ear)
    parted = ear.parted()
    host = way.heal(host)
    host.publish("", HELLO)
    ear.opened()
    ear.came(HELLO)
    uplink.send("join", "g", b"at last")
    letter = host.letter(b"at last")
    uplink.close()
    host.close()

    assert parted.why
    assert "join" == letter.kind


# -- what must not go, and what must not break ---------------------------------------------


def test_what_is_too_large_is_refused_before_it_is_sent(meeting):
    """The caller is told, with the numbers; and what is small enough goes as before."""
    uplink, ear = meeting.child("c")
    with pytest.raises(TooLarge, match=f"a report of {LIMIT + 1} bytes is over the limit of"):
        uplink.send("report", "g", bytes(LIMIT + 1))
    uplink.send("report", "g", b"small")
    meeting.answers(b"small", b"fine")

    ear.came(b"fine")
    assert not [heard for heard in ear.heard if isinstance(heard, Parted)]


def test_a_letter_above_the_hosts_limit_never_becomes_one(meeting):
    """Its sender believes in a larger limit; the host does not, and serves the others."""
    large, _ = meeting.child("large", limit=10 * LIMIT)
    large.send("report", "g", bytes(LIMIT + 1))
    small, _ = meeting.child("small")
    small.send("join", "g", b"small")

    assert b"small" == meeting.host.letters.get(timeout=PATIENCE_S).data


def test_the_largest_that_may_go_arrives(meeting):
    """The limit that a child keeps to is one that its host keeps to as well."""
    uplink, _ = meeting.child("c")
    data = bytes(LIMIT - 300)
    uplink.send("report", "g", data)

    assert len(data) == len(meeting.host.letters.get(timeout=PATIENCE_S).data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Opened, Came])
def test_an_ear_that_fails_is_not_the_end(meeting, kind):
    """What `hear` raises costs that message, or a short parting, and never the uplink."""
    ear, failed = Ear(), threading.Event()

    def hear(heard: Heard) -> None:
        if isinstance(heard, kind) and not failed.is_set():
            failed.set()
            raise ValueError("an ear that fails")
        ear(heard)

    meeting.child("c", hear=hear)
    assert failed.wait(PATIENCE_S)
    meeting.host.publish("g", MODEL)

    ear.came(MODEL)


def test_a_child_that_does_not_listen_holds_up_nobody(way, meeting):
    """One hangs in its `hear`; the other is answered, and models pass."""
    if isinstance(way, InMemory):
        pytest.skip("in memory a child hears on its parent's loop, and must not block it")
    wake, hung = threading.Event(), threading.Event()

    def hear(_: Heard) -> None:
        hung.set()
        wake.wait(PATIENCE_S)

    meeting.child("hangs", hear=hear)
    assert hung.wait(PATIENCE_S)
    uplink, ear = meeting.child("c")
    for number in range(100):
        meeting.host.publish("g", b"%d" % number)
    uplink.send("report", "g", b"and I")
    meeting.answers(b"and I", b"you too")

    ear.has(b"you too", b"99")
    wake.set()


@pytest.mark.slow
def test_after_close_no_thread_is_left_and_nothing_is_heard(way):
    """Both ends end what they began, also while the way is cut."""
    before = set(threading.enumerate())
    meeting = Meeting(way)
    _, ear = meeting.child("c")
    meeting.child("d")
    meeting.uplinks[0].close()
    heard = len(ear.heard)
    meeting.host.publish("g", MODEL)
    meeting.cut()
    meeting.close()

    assert heard == len(ear.heard)
    began = set(threading.enumerate()) - before
    # gRPC has a thread of its own, from its first use to the process's end.
    ours = [thread for thread in began if "_poll_wrapper" not in thread.name]
    assert not [thread for thread in ours if thread.is_alive()]


def test_what_was_sent_last_goes_out_before_the_end(meeting):
    """A child that closes right after its last report is still heard."""
    uplink, _ = meeting.child("c")
    uplink.send("report", "g", b"my last")
    uplink.close()

    assert b"my last" == meeting.host.letter(b"my last").data


def test_a_place_that_is_taken_is_the_callers_mistake(way, meeting):
    """A second parent at one place is refused, in one line that says what to do."""
    if isinstance(way, OverMqtt):
        pytest.skip("a broker bears many: they part one another, which is heard")
    assert meeting.host
    with pytest.raises(
        UsageError, match=r"expected no parent .* close the first|already in use.* name another"
    ):
        Host(way.downlink())


# -- in memory alone ------------------------------------------------------------------------


def test_a_hub_loses_what_it_is_told_to(meeting, way):
    """Two answers are dropped, the third arrives."""
    if not isinstance(way, InMemory):
        pytest.skip("only a hub can be told")
    uplink, ear = meeting.child("c")
    way.memory.drop("c", "answer", times=2)
    for number in range(3):
        uplink.send("report", "g", b"%d" % number)
        meeting.answers(b"%d" % number, b"answer %d" % number)

    ear.came(b"answer 2")
    assert {HELLO, b"answer 2"} == set(ear.all_came)


def test_a_name_means_one_hub_while_it_is_in_use():
    """Those who say memory://site meet; who says something else does not."""
    from submerge_client.uplink.in_memory import hub

    site = hub("site")

    assert site is hub("site")
    assert site is not hub("field")
