"""What MQTT alone does: last wills, brokers that refuse, and thousands of reports at once."""

from __future__ import annotations

import math
import queue
import resource
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from submerge import UsageError
from submerge_aggregator.downlink import over_mqtt as downlinks
from submerge_aggregator.downlink.over_mqtt import MqttDownlink as Downlink
from submerge_aggregator.refusals import Refusals
from submerge_client.uplink import Opened, Parted
from submerge_client.uplink import line as lines
from submerge_client.uplink.broker import Broker, Publication, overhead, reason
from submerge_client.uplink.line import BrokerConnection
from submerge_client.uplink.over_mqtt import MqttUplink as Uplink
from submerge_client.uplink.tls import Tls
from submerge_proto.wire import topics
from support.patience import PATIENCE_S, until
from support.ways import Ear, Host

NAMES: dict[str, Any] = {"fleet": "f", "parent": "a", "limit": 100_000, "first_wait_s": 0.02}
STATE = topics.state("f", "a", "c")


def uplink(
    broker: Any,
    node: str = "c",
    login: tuple[str, str] | None = None,
    tls: Tls | None = None,
    **settings: Any,
) -> Uplink:
    at = Broker(broker.host, broker.port, *(login or (None, None)), tls)
    return Uplink(at, **{**NAMES, "node": node, "groups": ["g"], **settings})


class Notes(list[tuple[str, dict[str, object]]]):
    """What an aggregator would log."""

    def __call__(self, what: str, /, **facts: object) -> None:
        self.append((what, facts))


def downlink(
    broker: Any, notes: Notes | None = None, tls: Tls | None = None, **settings: Any
) -> Downlink:
    note = Notes() if notes is None else notes
    at = Broker(broker.host, broker.port, tls=tls)
    return Downlink(at, **{**NAMES, "note": note, **settings})


class Spy:
    """A bystander at the broker, who reads and writes what he likes."""

    def __init__(self, broker: Any, *read: str) -> None:
        self.news: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        opened = threading.Event()
        self.line = BrokerConnection(
            Broker(broker.host, broker.port),
            name="spy",
            topics=read or ("nothing",),
            will=None,
            opened=opened.set,
            parted=lambda _: None,
            came=lambda topic, data: self.news.put((topic, data)),
        )
        self.line.open()
        assert opened.wait(PATIENCE_S)

    def until(self, topic: str, data: bytes) -> None:
        while (topic, data) != self.news.get(timeout=PATIENCE_S):
            pass

    def write(self, topic: str, data: bytes, *, retain: bool = False) -> None:
        self.line.put(object(), Publication(topic, data, retain))


@contextmanager
def closing(*ends: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for end in ends:
            stack.callback(end.close)
        yield


@contextmanager
def answering(reply: Callable[[socket.socket], None]) -> Iterator[Any]:
    """Something that listens, and is no broker."""

    class Server:
        host, visits = "127.0.0.1", 0

    server, ended = Server(), threading.Event()
    with socket.create_server((server.host, 0)) as listener:
        server.port = listener.getsockname()[1]  # type: ignore[attr-defined]
        listener.settimeout(0.05)

        def serve() -> None:
            while not ended.is_set():
                try:
                    visitor, _ = listener.accept()
                except TimeoutError:
                    continue
                server.visits += 1
                with visitor:
                    reply(visitor)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server
        finally:
            ended.set()
            thread.join()


# -- who is there ------------------------------------------------------------------------


def test_a_broker_knows_who_is_connected(mosquitto):
    """Online while it is, offline when it has said goodbye."""
    spy, child = Spy(mosquitto, STATE), uplink(mosquitto)
    with closing(spy.line):
        child.open(Ear())
        spy.until(STATE, b"online")
        child.close()
        spy.until(STATE, b"offline")


@pytest.mark.slow
def test_a_second_process_of_a_node_chases_the_first_off_and_both_hear_of_it(mosquitto):
    """The reason names the other; and they chase each other more and more rarely."""
    spy = Spy(mosquitto, STATE)
    one, ear, two, other = uplink(mosquitto), Ear(), uplink(mosquitto), Ear()
    with closing(one, two, spy.line):
        one.open(ear)
        ear.opened()
        two.open(other)
        why = ear.parted().why
        other.parted()
        time.sleep(1.0)
        openings = sum(isinstance(heard, Opened) for heard in ear.heard + other.heard)

    assert "another process is connected as submerge:f:a:c" in why
    assert 25 > openings  # once every 20 ms would be 50; doubled, 2 * log2(1 s / 20 ms), and jitter


def test_what_a_broker_keeps_of_a_node(mosquitto):
    """A report stays for a parent that comes later; a join does not."""
    child, ear = uplink(mosquitto), Ear()
    child.open(ear)
    ear.opened()
    child.send("join", "g", b"may I")
    child.send("report", "g", b"all of it")
    child.close()
    spy = Spy(mosquitto, *topics.all_up("f", "a"))
    with closing(spy.line):
        kept = topics.up("f", "a", "c", "report", "g"), b"all of it"
        assert kept == spy.news.get(timeout=PATIENCE_S)
        assert spy.news.empty()


# -- brokers that do not let us in ---------------------------------------------------------


def test_why_nobody_is_let_in_is_said(mosquitto, tmp_path):
    """A broker that wants a name says no in its own words."""
    mosquitto.stop()
    (tmp_path / "passwords").touch()
    mosquitto.start("allow_anonymous false", f"password_file {tmp_path / 'passwords'}")
    child, ear = uplink(mosquitto, login=("c", "guess")), Ear()
    with closing(child):
        child.open(ear)
        why = ear.parted().why

    assert f"127.0.0.1:{mosquitto.port} does not let submerge:f:a:c in: not authorized" == why


@pytest.mark.slow
def test_where_nobody_listens_that_is_said(mosquitto):
    """It is neither an error nor the end, at either side."""
    mosquitto.stop()
    child, ear, notes = uplink(mosquitto), Ear(), Notes()
    host = Host(downlink(mosquitto, notes))
    with closing(child, host):
        child.open(ear)
        why = ear.parted().why
        until(lambda: [*notes], lambda: "the parent to have tried, too")
        mosquitto.start()
        ear.opened()
        host.publish("", b"hello")
        ear.came(b"hello")

    assert f"nothing listens on 127.0.0.1:{mosquitto.port}" == why
    assert ["broker unreachable, trying on", "broker reached again"] == [what for what, _ in notes]


def test_a_host_that_is_not_known_is_named():
    """The resolver's own words follow."""
    error = socket.gaierror(-2, "Name or service not known")
    why = reason(error, Broker("brocker.example", 1883))

    assert "no host 'brocker.example' is known: Name or service not known" == why


def test_a_password_is_printed_nowhere():
    """A broker may end up in a log."""
    broker = Broker("h", 1, "name", "secret")

    assert "secret" not in f"{broker} {broker!r}"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (
            b"HTTP/1.1 400 no\r\n\r\n",
            "hung up before it let us in: is it an MQTT broker, without TLS?",
        ),
        (b"\0\0", "is not MQTT"),
    ],
)
def test_what_is_no_broker_is_found_out(reply, why):
    """A web server in its place is not taken for one, and whatever it says does no harm."""
    with answering(lambda visitor: (visitor.recv(999), visitor.sendall(reply))) as server:
        child, ear = uplink(server), Ear()
        with closing(child):
            child.open(ear)

            assert why in ear.parted().why


@pytest.mark.slow
def test_a_broker_that_hangs_up_is_not_stormed(monkeypatch):
    """Each try waits twice as long as the one before, also where CONNECT was granted.

    Waits are drawn below a ceiling that doubles. Here each is the mean: a run of short ones, about
    one time in six, would allow more tries.
    """
    monkeypatch.setattr(lines.SystemEntropy, "random", lambda _: 0.5)
    granted = b"\x20\x03\x00\x00\x00"
    with answering(lambda visitor: (visitor.recv(999), visitor.sendall(granted))) as server:
        child, ear = uplink(server), Ear()
        began = time.monotonic()
        with closing(child):
            child.open(ear)
            ear.parted()
            time.sleep(1.0)
        elapsed_s = time.monotonic() - began

    # After waits of 10 ms or more, doubled: n of them take 10 (2^n - 1) ms.
    assert 1 < server.visits <= 1 + math.log2(elapsed_s / 0.010 + 1)


# -- at the aggregator ---------------------------------------------------------------------


@pytest.mark.slow
def test_ten_thousand_reports_come_back_to_an_aggregator_that_starts(mosquitto):
    """None is missing, none comes twice, and few are between the threads at once."""
    writer = Spy(mosquitto)
    sent = {f"n{number}": b"%d" % number for number in range(10_000)}
    for node, data in sent.items():
        writer.write(topics.up("f", "a", node, "report", "g"), data, retain=True)
    while writer.line.waiting:
        time.sleep(0.02)
    writer.line.close()
    host = Host(downlink(mosquitto))
    with closing(host):
        letters = [host.letters.get(timeout=PATIENCE_S) for _ in sent]
        # A queue is first in, first out: who comes after them all is the last.
        host.publish("", b"hello")

        assert sent == {letter.node: letter.data for letter in letters}
        assert all(letter.shared and letter.kind == "report" for letter in letters)
        assert host.letters.empty()


@pytest.mark.slow
def test_an_event_loop_that_stands_still_loses_nothing(mosquitto, monkeypatch):
    """The broker waits; if that lasts, the connection ends, and the next brings all again."""
    monkeypatch.setattr(downlinks, "MOST_ARRIVING", 4)
    monkeypatch.setattr(downlinks, "STALLED_S", 0.1)
    notes = Notes()
    host, writer = Host(downlink(mosquitto, notes)), Spy(mosquitto, topics.hello("f", "a"))
    with closing(host, writer.line):
        host.publish("", b"hello")
        writer.until(topics.hello("f", "a"), b"hello")
        wake = threading.Event()
        host.loop.call_soon_threadsafe(wake.wait, PATIENCE_S)
        for number in range(20):
            writer.write(
                topics.up("f", "a", f"n{number}", "report", "g"), b"%d" % number, retain=True
            )
        time.sleep(0.3)
        wake.set()
        came = set[bytes]()
        while len(came) < 20:
            came.add(host.letters.get(timeout=PATIENCE_S).data)

    assert "the event loop takes no messages" in str(notes[0][1]["why"])


def test_what_is_not_for_an_aggregator_is_counted(mosquitto):
    """Empty, too large, from nobody: none of them is a letter."""
    refusals = Refusals()
    down = downlink(mosquitto, refusals=refusals)
    host, writer = Host(down), Spy(mosquitto, topics.hello("f", "a"))
    with closing(host, writer.line):
        host.publish("", b"hello")
        writer.until(topics.hello("f", "a"), b"hello")
        topic = topics.up("f", "a", "c", "report", "g")
        writer.write(topic, bytes(100_001))
        writer.write(topic, b"")
        writer.write(topic.replace("/c/", "//"), b"from nobody")
        writer.write(topic.replace("/c/", f"/{'c' * 65}/"), b"from a name that cannot be one")
        writer.write(topic, b"fine")

        assert b"fine" == host.letters.get(timeout=PATIENCE_S).data
    counted = {reason: count for reason, count in refusals.counts.items() if count}
    assert {"foreign_topic": 2, "empty": 1, "oversize": 1} == counted


def test_a_model_is_pushed_to_all_at_most_once_in_ten_seconds(mosquitto):
    """Each that lacks it asks for it; each hears every one."""
    hello, models = topics.hello("f", "a"), topics.model("f", "a", "+")
    host, spy = Host(downlink(mosquitto)), Spy(mosquitto, hello, models)
    with closing(host, spy.line):
        host.publish("", b"hello")
        spy.until(hello, b"hello")
        host.publish("g", b"model")
        spy.until(topics.model("f", "a", "g"), b"model")
        heard = []
        for number in range(20):
            host.call(host.downlink.push, "c", "g", "watch", b"model")
            host.publish("h", b"%d" % number)
            while (topics.model("f", "a", "h"), b"%d" % number) not in heard:
                heard.append(spy.news.get(timeout=PATIENCE_S))
        # A topic's messages come in order; those of two may overtake each other.
        host.publish("g", b"the next")
        while (topics.model("f", "a", "g"), b"the next") not in heard:
            heard.append(spy.news.get(timeout=PATIENCE_S))

    assert 1 == heard.count((topics.model("f", "a", "g"), b"model"))


@pytest.mark.slow
def test_what_has_not_changed_is_published_again(mosquitto, monkeypatch):
    """A broker that forgot what it should keep is told again."""
    monkeypatch.setattr(downlinks, "REPEAT_S", 0.05)
    host, spy = Host(downlink(mosquitto)), Spy(mosquitto, topics.hello("f", "a"))
    with closing(host, spy.line):
        host.publish("", b"hello")
        for _ in range(3):
            spy.until(topics.hello("f", "a"), b"hello")


def test_a_model_too_large_for_the_broker_is_not_published(mosquitto):
    """It is said, and the line lives: a broker would hang up on whoever sent it."""
    notes = Notes()
    host, child, ear = Host(downlink(mosquitto, notes)), uplink(mosquitto), Ear()
    with closing(host, child):
        child.open(ear)
        ear.opened()
        host.publish("g", bytes(100_000))
        host.publish("g", b"small")
        ear.came(b"small")

    assert [("not published: too large", {"group": "g", "size": 100_000, "most": 100_000})] == notes


# -- the line --------------------------------------------------------------------------------


def test_a_line_works_above_file_1024(mosquitto):
    """An aggregator has more connections than `select` can count."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("this machine allows no more files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    try:
        with ExitStack() as files:
            for _ in range(1100):
                files.enter_context(Path("/dev/null").open("rb"))
            child, ear = uplink(mosquitto), Ear()
            with closing(child):
                child.open(ear)
                ear.opened()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_a_broker_that_will_not_bear_a_message_is_rid_of_it(mosquitto):
    """It hangs up once; the message does not go again by itself, and others do."""
    mosquitto.stop()
    mosquitto.start("max_packet_size 1000")
    child, ear, spy = uplink(mosquitto), Ear(), Spy(mosquitto, "submerge/v1/f/a/up/+/join/g")
    with closing(child, spy.line):
        child.open(ear)
        ear.opened()
        child.send("report", "g", bytes(2000))
        ear.parted()
        ear.opened()
        child.send("join", "g", b"small")
        spy.until(topics.up("f", "a", "c", "join", "g"), b"small")

    assert 1 == sum(isinstance(heard, Parted) for heard in ear.heard)


def test_a_broker_that_acknowledges_nothing_is_left(monkeypatch):
    """It answers whatever else is asked; a message that waits for it must not wait for ever."""
    monkeypatch.setattr(lines, "UNACKNOWLEDGED_S", 0.05)
    monkeypatch.setattr(lines, "LOOK_S", 0.02)

    def deaf(visitor: socket.socket) -> None:
        visitor.recv(999)
        visitor.sendall(b"\x20\x02\x00\x00")
        visitor.recv(999)
        visitor.sendall(b"\x90\x0a\x00\x01" + 8 * b"\x01")  # eight topics, granted
        while visitor.recv(999):
            pass

    with answering(deaf) as server:
        child, ear = uplink(server), Ear()
        with closing(child):
            child.open(ear)
            ear.opened()
            why = ear.parted().why

    assert f"127.0.0.1:{server.port} no longer acknowledges messages" == why


def test_overhead_is_what_a_packet_has_beside_its_payload(mosquitto):
    """A message as large as is allowed passes a broker that allows just that."""
    mosquitto.stop()
    mosquitto.start("max_packet_size 1000")
    topic = topics.up("f", "a", "c", "report", "g")
    child, ear, spy = uplink(mosquitto, limit=1000), Ear(), Spy(mosquitto, topic)
    with closing(child, spy.line):
        child.open(ear)
        ear.opened()
        child.send("report", "g", bytes(1000 - overhead(topic)))

        assert 1000 - overhead(topic) == len(spy.news.get(timeout=PATIENCE_S)[1])
    assert not [heard for heard in ear.heard if isinstance(heard, Parted)]


# -- TLS ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, and certificates of a broker and a node that it signed."""
    folder = tmp_path_factory.mktemp("papers")

    def openssl(*arguments: str) -> None:
        try:
            subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)  # noqa: S607
        except FileNotFoundError:
            pytest.skip("openssl is not installed")

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    openssl(*new, "-x509", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem")
    for name in ("broker", "c"):
        openssl(
            *(*new, "-x509", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-addext", "basicConstraints=critical,CA:FALSE", "-CA", "ca.pem", "-CAkey", "ca.key"),
            *("-keyout", f"{name}.key", "-out", f"{name}.pem"),
        )
    return folder


@pytest.fixture
def safe(mosquitto: Any, credentials: Path) -> Any:
    """A broker that shows its certificate, and wants to see one."""
    mosquitto.stop()
    mosquitto.start(
        f"cafile {credentials / 'ca.pem'}",
        f"certfile {credentials / 'broker.pem'}",
        f"keyfile {credentials / 'broker.key'}",
        "require_certificate true",
        "use_identity_as_username true",
    )
    return mosquitto


@pytest.mark.slow
def test_both_ends_prove_who_they_are(safe, credentials):
    """With certificates of one CA, letters and answers pass; also large ones."""
    host = Host(
        downlink(safe, tls=Tls(*(credentials / name for name in ("ca.pem", "c.pem", "c.key"))))
    )
    child, ear = (
        uplink(safe, tls=Tls(credentials / "ca.pem", credentials / "c.pem", credentials / "c.key")),
        Ear(),
    )
    with closing(host, child):
        host.publish("g", bytes(90_000))
        child.open(ear)
        ear.came(bytes(90_000))
        child.send("report", "g", b"r" * 90_000)
        host.call(host.letter(b"r" * 90_000).answer, "answer", b"thanks")
        ear.came(b"thanks")


# paho drops the socket of a handshake that failed, and leaves the rest to Python.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
@pytest.mark.slow
def test_a_broker_that_nobody_vouches_for_is_not_spoken_to(safe, credentials):
    """Its certificate is of another CA than the one that is trusted."""
    child, ear = (
        uplink(safe, tls=Tls(credentials / "c.pem", credentials / "c.pem", credentials / "c.key")),
        Ear(),
    )
    with closing(child):
        child.open(ear)
        why = ear.parted().why

    assert f"the certificate of 127.0.0.1:{safe.port} is not trusted" in why


@pytest.mark.slow
def test_a_broker_that_wants_a_certificate_hangs_up_without(safe, credentials):
    """That is all that it says."""
    child, ear = uplink(safe, tls=Tls(credentials / "ca.pem")), Ear()
    with closing(child):
        child.open(ear)

        assert "hung up before it let us in" in ear.parted().why


def test_files_of_no_use_are_said_at_once(mosquitto, credentials):
    """Before anything is tried, by name."""
    with pytest.raises(
        UsageError, match=r"expected ca in PEM form, got .*nowhere\.pem: No such file"
    ):
        uplink(mosquitto, tls=Tls(credentials / "nowhere.pem"))
    with pytest.raises(UsageError, match=r"expected cert and key in PEM form, got .*broker\.key"):
        uplink(
            mosquitto,
            tls=Tls(credentials / "ca.pem", credentials / "c.pem", credentials / "broker.key"),
        )
