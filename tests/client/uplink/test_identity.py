"""Kits and certificates: what makes a node known, and what is said of one that does not."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from submerge import UsageError
from submerge.protocol.messages import Hello, Incarnation
from submerge_client.kit import HEAD, read_kit
from submerge_client.uplink.tls import Credentials, Tls, check_name, identity
from support.certified import Certified


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Certified:
    """An authority, and kits as it makes them."""
    return Certified(tmp_path_factory.mktemp("kits"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory) -> Certified:
    """Another authority of the same name."""
    return Certified(tmp_path_factory.mktemp("stranger"))


def test_a_certificate_says_whose_it_is_and_until_when(fleet):
    """What stands in it, in words and Unix seconds."""
    now = time.time()

    found = identity(Tls(kit=fleet.kit("pump-3", lasts_s=600)))

    assert ("pump-3", ()) == (found.node, found.hosts)
    assert found.begins < now < now + 590 < found.until < now + 610


def test_one_that_serves_says_under_which_names(fleet):
    """Host names and addresses, beside the node's own name."""
    found = identity(Tls(kit=fleet.kit("north", "north.example", "10.0.0.7")))

    assert ("north", {"north.example", "10.0.0.7"}) == (found.node, set(found.hosts))


def test_one_that_has_ended_is_told_too(fleet):
    """Whoever asks wants to know when."""
    assert identity(Tls(kit=fleet.kit("old", lasts_s=-60))).until < time.time()


def test_three_files_do_what_a_kit_does(fleet):
    """A fleet may have an authority of its own."""
    kit = read_kit(fleet.kit("pump-4"))
    paths = {}
    for name in ("key", "cert", "authority"):
        paths[name] = fleet.folder / f"pump-4.{name}"
        paths[name].write_bytes(getattr(kit, name))
    by_files = Tls(paths["authority"], paths["cert"], paths["key"])

    assert identity(Tls(kit=fleet.kit("pump-4"))).node == identity(by_files).node
    assert (kit.authority, kit.key, kit.cert) == by_files.contents()


def test_anothers_name_is_refused(fleet):
    """Name and certificate must agree: two kits may be mixed up."""
    with pytest.raises(UsageError, match="expected the certificate of pump-1, got that of pump-2"):
        check_name(Tls(kit=fleet.kit("pump-2")), "pump-1")


def test_one_that_its_authority_has_not_signed_is_refused(fleet, stranger):
    """As the other end would, and with better words."""
    ours, theirs = read_kit(fleet.kit("pump-5")), read_kit(stranger.kit("pump-5"))
    mixed = fleet.write("mixed", "pump-5", ours.key, ours.cert, theirs.authority)

    with pytest.raises(UsageError, match="that its own authority has signed"):
        identity(Tls(kit=mixed))


def test_anothers_key_is_refused(fleet):
    """A kit that was put together by hand."""
    ours, theirs = read_kit(fleet.kit("pump-6")), read_kit(fleet.kit("pump-7"))
    mixed = fleet.write("wrong-key", "pump-6", theirs.key, ours.cert, ours.authority)

    with pytest.raises(UsageError, match="a certificate and its key in PEM form"):
        identity(Tls(kit=mixed))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a file that begins otherwise"),
        ("hello\n", "a file that begins otherwise"),
        (f"{HEAD}\nnode: pump-1\n", "0 keys and 0 certificates"),
        (f"{HEAD}\nnode: no such name\n", "a file that begins otherwise"),
        ("\xff", "bytes that are no text"),
    ],
)
def test_what_is_no_kit_is_refused(tmp_path: Path, text, message):
    """In one line that says where it comes from."""
    path = tmp_path / "x.kit"
    path.write_text(text, encoding="latin-1")

    with pytest.raises(UsageError, match=f"submerge pki issue.*got {message}"):
        read_kit(path)


def test_a_kit_that_is_not_there(tmp_path: Path):
    """The file is named."""
    with pytest.raises(UsageError, match=r"expected a kit to read, got .*gone.kit: No such file"):
        Tls(kit=tmp_path / "gone.kit").context()


def test_papers_follow_their_files(fleet):
    """Renewed in place, a kit is read again; a broken one changes nothing."""
    path = fleet.kit("pump-8", lasts_s=600)
    credentials = Credentials(None, Tls(kit=path), node="pump-8")
    first = credentials.until
    fleet.kit("pump-8", lasts_s=6000)
    renewed = credentials.until
    path.write_text("half a kit")

    assert first + 5000 < renewed == credentials.until


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ("longer", ""),
        ("as long", "ends later"),
        ("another key", "KEY_VALUES_MISMATCH|key values mismatch|PEM form"),
        ("another node", "that of pump-7"),
        ("another authority beside it", "certificate alone"),
        ("another authority", "its own authority"),
        ("no certificate", "PEM form"),
        ("nothing", "PEM form"),
    ],
)
def test_a_certificate_that_comes_over_the_wire_is_checked(tmp_path, sent, why):
    """One for the key that it has goes into its kit; with any other the kit stays as it is."""
    fleet, other = (Certified(tmp_path / name) for name in ("fleet", "other"))
    kit = fleet.kit("pump-8", lasts_s=600)
    before, credentials = kit.read_bytes(), Credentials(Tls(kit=kit), node="pump-8")
    first = credentials.until
    maker = other if sent == "another authority" else fleet
    node = "pump-7" if sent == "another node" else "pump-8"
    lasts_s = 500 if sent == "as long" else 6000
    renewed = read_kit(
        maker.kit(node, lasts_s=lasts_s, key_of=None if sent == "another key" else kit)
    )
    kit.write_bytes(before)
    data = {
        "no certificate": b"-----BEGIN no",
        "nothing": b"",
        "another authority beside it": renewed.cert + other.authority.pem,
    }.get(sent, renewed.cert)

    note = credentials.renewed(data)
    if not why:
        assert "certificate renewed" == note.what
        assert first + 5000 < credentials.until
        assert renewed == read_kit(kit)
        assert b"until" not in kit.read_bytes()
        return
    assert re.search(why, note.facts["why"])
    assert (before, first) == (kit.read_bytes(), credentials.until)
    assert ["pump-8.kit"] == [p.name for p in kit.parent.iterdir() if "pump-8" in p.name]


def test_a_kit_that_systemd_lends_is_renewed_in_the_state(tmp_path, monkeypatch):
    """It is in use at once and after a restart, until a kit with another key is brought."""
    lent, state = tmp_path / "lent", tmp_path / "state"
    fleet, maker = Certified(lent), Certified(tmp_path / "maker")
    maker.authority = fleet.authority
    state.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(lent))
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    kit = fleet.kit("pump-8", lasts_s=600)
    before, tls = kit.read_bytes(), Tls(kit=kit)
    credentials, first = Credentials(tls, node="pump-8"), tls.contents()
    sent = read_kit(maker.kit("pump-8", lasts_s=6000, key_of=kit))

    assert "certificate renewed" == credentials.renewed(sent.cert).what
    assert before == kit.read_bytes()
    assert (first[0], first[1], sent.cert) == tls.contents()
    assert credentials.until == Credentials(Tls(kit=kit), node="pump-8").until
    fleet.kit("pump-8", lasts_s=60)
    assert Credentials(Tls(kit=kit), node="pump-8").until < time.time() + 70
    assert [] == list(state.iterdir())


def test_the_first_to_end_is_told(fleet):
    """Of several links."""
    soon, late = fleet.kit("pump-9", lasts_s=600), fleet.folder / "late.kit"
    late.write_bytes(soon.read_bytes())
    fleet.kit("pump-9", lasts_s=60)

    credentials = Credentials(Tls(kit=late), Tls(kit=soon), node="pump-9")

    assert identity(Tls(kit=soon)).until == credentials.until


def test_without_certificates_nothing_is_told():
    """A message goes out as it is."""
    hello = Hello("root", Incarnation(1, 2), True, 3)

    credentials = Credentials(None, node="root")

    assert (0.0, hello) == (credentials.until, credentials.stamped(hello))


def test_a_certificate_that_has_ended_is_to_blame(fleet):
    """Whoever refuses it only hangs up; a log that says no more sends people to the network."""
    ended = Credentials(Tls(kit=fleet.kit("late", lasts_s=-60)), node="late")
    holds = Credentials(Tls(kit=fleet.kit("early", lasts_s=600)), node="early")

    said = ended.explain("Socket closed", time.time())

    assert said.startswith("the certificate of late ended on ")
    assert said.endswith("; Socket closed")
    assert "Socket closed" == holds.explain("Socket closed", time.time())


def test_a_file_that_goes_away_between_two_looks_is_bad_input(tmp_path, monkeypatch):
    """And no end of the thread that looked: a renewal is under way, and it looks again."""
    gone = tmp_path / "gone.pem"
    monkeypatch.setattr(Tls, "context", lambda _: None)

    with pytest.raises(UsageError, match=r"got .*gone\.pem: No such file"):
        Tls(gone, gone, gone).contents()
