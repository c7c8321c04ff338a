"""`submerge pki`: an authority and its kits, as an operator makes, renews and sees them."""

from __future__ import annotations

import json
import os
import stat
import sys
from datetime import UTC, datetime, timedelta

import pytest

from submerge_client.kit import read_kit
from submerge_files.console import admin_client
from submerge_operate.pki import directory as pki_directory
from submerge_operate.pki import issuance
from submerge_operate.pki.directory import read_contents
from support.commands import shell

DAY = timedelta(days=1)


class Clock:
    """A clock that stands where it is set."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


@pytest.fixture(autouse=True)
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(issuance, "now", clock)
    return clock


@pytest.fixture
def submerge(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return shell(monkeypatch, capsys)


@pytest.fixture
def pki(submerge, tmp_path):
    """An authority that was just made."""
    assert 0 == submerge("pki", "init").status
    return tmp_path / "pki"


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_init_makes_a_private_directory(pki):
    """Whatever the umask: the key is its owner's alone."""
    assert [0o700, 0o600, 0o700] == [mode(p) for p in (pki, pki / "ca.key", pki / "kits")]
    assert b"PRIVATE" not in (pki / "ca.pem").read_bytes()


def test_an_empty_directory_becomes_private(submerge, tmp_path):
    """Such as a volume that was mounted for it."""
    (tmp_path / "pki").mkdir(mode=0o755)

    assert 0 == submerge("pki", "init").status
    assert 0o700 == mode(tmp_path / "pki")


def test_init_says_in_two_lines_what_to_keep_where(submerge):
    """The key stays; kits go, each to its own node."""
    ran = submerge("pki", "init", "--dir", "here/pki", "--fleet", "plant-2", "--lasts", "1y")
    key, kits = ran.out.splitlines()

    assert key.startswith("here/pki/ca.key: keep it here")
    assert "fleet plant-2, and it is not encrypted. The authority ends on 2027-03-01T12:00" in key
    assert kits.startswith("here/pki/kits: ")


def test_half_an_authority_says_what_is_missing(submerge, pki):
    """A machine that lost its power has begun one, or a file was lost: nobody else can tell."""
    (pki / "ca.pem").unlink()

    ran = submerge("pki", "init")

    assert 2 == ran.status
    assert "pki/ca.key exists without ca.pem: take that from a backup, or, if" in ran.err


def test_init_tells_machines_what_it_tells_people(submerge):
    """What there is, where, and until when."""
    reported = json.loads(submerge("pki", "init", "--fleet", "f", "--lasts", "1y", "--json").out)

    assert ("f", "2027-03-01T12:00:00Z", "pki/ca.key", "pki/kits", "pki/crl.pem") == tuple(
        reported.values()
    )


def test_an_authority_is_never_overwritten(submerge, pki):
    """It would cost every node its kit."""
    before = (pki / "ca.key").read_bytes()

    ran = submerge("pki", "init")

    assert 2 == ran.status
    assert "pki has an authority already: choose another directory with --dir" in ran.err
    assert before == (pki / "ca.key").read_bytes()


def test_init_leaves_a_directory_of_other_things_alone(submerge, tmp_path):
    """Nor does it change who may read them."""
    (tmp_path / "site").mkdir(mode=0o755)
    (tmp_path / "site/plan.txt").write_text("plan")

    ran = submerge("pki", "init", "--dir", "site")

    assert (2, 0o755) == (ran.status, mode(tmp_path / "site"))
    assert "expected a new or an empty directory, got site" in ran.err


def test_issue_makes_a_private_kit_for_each(submerge, pki):
    """Clients without hosts; 90 days."""
    ran = submerge("pki", "issue", "pump-3", "pump-4")

    assert 0 == ran.status
    assert [
        "pki/kits/pump-3.kit: pump-3, role client, until 2026-05-30T12:00:00Z (90 d)",
        "pki/kits/pump-4.kit: pump-4, role client, until 2026-05-30T12:00:00Z (90 d)",
    ] == ran.out.splitlines()
    assert 0o600 == mode(pki / "kits/pump-3.kit")
    assert "pump-4" == read_contents(pki / "kits/pump-4.kit").entry.node
    assert ["pump-3.kit", "pump-4.kit"] == sorted(os.listdir(pki / "kits"))


def test_issue_with_hosts_makes_a_server(submerge, pki):
    """Names and addresses, several, each once."""
    hosts = ("--host", "Root.Example.org", "--host", "10.0.0.5", "--host", "root.example.org")

    ran = submerge("pki", "issue", "root", *hosts, "--lasts", "10m", "--json")

    (made,) = json.loads(ran.out)["made"]
    assert ["root.example.org", "10.0.0.5"] == made["hosts"]
    assert ("2026-03-01T12:10:00Z", 600.0, "soon") == (made["until"], made["left_s"], made["state"])
    assert ("root.example.org", "10.0.0.5") == read_contents(pki / "kits/root.kit").entry.hosts


def test_a_kit_is_issued_once(submerge, pki):
    """The one that is out there would go on holding; all are judged before any is made."""
    submerge("pki", "issue", "pump-3")

    ran = submerge("pki", "issue", "pump-4", "pump-3")

    assert 2 == ran.status
    assert "pump-3 has a kit, until 2026-05-30T12:00:00Z" in ran.err
    assert "submerge pki renew pump-3" in ran.err
    assert ["pump-3.kit"] == os.listdir(pki / "kits")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pump-3", "a b"), "a name has 1 to 64 of A-Z a-z 0-9 . _ -, got 'a b'"),
        (("pump-3", "../x"), "got '../x'"),
        (("pump-3", "Pump-3"), "differ in more than capitals, got Pump-3 and pump-3"),
        (("pump-3", "--host", "a:1"), "without scheme, port or wildcard, got 'a:1'"),
        (("pump-3", "--lasts", "3x"), "or 2d, got '3x'; units are y, d, h, m, s, ms"),
        (("pump-3", "--lasts", "0s"), "expected from 1s to 100y, got '0s'"),
        (("pump-3", "--lasts", "1e9y"), "expected from 1s to 100y"),
        (("pump-3", "--dir", "none"), "expected an authority in none, got: No such file"),
        (("pump-3", "--dir", "kept"), "expected an authority in kept, got: No such file"),
        (("pump-3", "--passphrase-file", "none"), "expected a passphrase in none, got: No such"),
        (("pump-3", "--passphrase-file", "empty"), "of 1 to 1000 bytes in empty, got 0"),
    ],
)
def test_bad_input_is_one_line_and_makes_nothing(submerge, pki, tmp_path, arguments, said):
    """What was expected, what came; status 2."""
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "kept").mkdir()

    ran = submerge("pki", "issue", *arguments)

    assert (2, "") == (ran.status, ran.out)
    assert said in ran.err
    assert 1 == ran.err.count("\n")
    assert [] == os.listdir(pki / "kits")


def test_an_authority_with_a_passphrase_wants_it(submerge, tmp_path):
    """At each command that signs; for its last line's end, it makes no difference."""
    (tmp_path / "secret").write_text("open sesame\n")
    (tmp_path / "again").write_text("open sesame")
    ran = submerge("pki", "init", "--passphrase-file", "secret")

    assert "not encrypted" not in ran.out
    assert b"ENCRYPTED" in (tmp_path / "pki/ca.key").read_bytes()
    ran = submerge("pki", "issue", "pump-3")
    assert (2, True) == (ran.status, "is encrypted: use --passphrase-file" in ran.err)
    assert 0 == submerge("pki", "issue", "pump-3", "--passphrase-file", "again").status
    assert b"BEGIN PRIVATE KEY" in (tmp_path / "pki/kits/pump-3.kit").read_bytes()


def test_renew_replaces_what_ends_soon(submerge, pki, clock):
    """Same name, same hosts, same length; a new key. Others are left, and counted."""
    submerge("pki", "issue", "root", "--host", "10.0.0.5", "--lasts", "40d")
    submerge("pki", "issue", "pump-3")
    before = {each: (pki / f"kits/{each}.kit").read_bytes() for each in ("root", "pump-3")}
    clock.time += 11 * DAY

    ran = submerge("pki", "renew", "--all")

    assert [
        (
            "renewed pki/kits/root.kit: root, role aggregator, serves as 10.0.0.5,"
            " until 2026-04-21T12:00:00Z (40 d)"
        ),
        "left as they are: 1, with 30d or more to go",
    ] == ran.out.splitlines()
    assert before["pump-3"] == (pki / "kits/pump-3.kit").read_bytes()
    after = (pki / "kits/root.kit").read_bytes()
    assert before["root"].split(b"-----")[2] != after.split(b"-----")[2]
    assert (("10.0.0.5",), 0o600) == (
        read_contents(pki / "kits/root.kit").entry.hosts,
        mode(pki / "kits/root.kit"),
    )


def test_a_kit_may_keep_its_key(submerge, pki):
    """So its certificate alone need be brought to the node, and that is no secret."""
    submerge("pki", "issue", "pump-3", "pump-4")
    before = {each: read_kit(pki / f"kits/{each}.kit") for each in ("pump-3", "pump-4")}
    ran = submerge("pki", "renew", "pump-3", "--same-key", "--lasts", "200d")
    after = read_kit(pki / "kits/pump-3.kit")

    assert 0 == ran.status
    assert (before["pump-3"].key, before["pump-3"].authority) == (after.key, after.authority)
    assert before["pump-3"].cert != after.cert
    assert "pump-3" == read_contents(pki / "kits/pump-3.kit").entry.node
    (pki / "kits/pump-4.kit").unlink()
    ran = submerge("pki", "renew", "pump-4", "--same-key")
    assert (2, True) == (ran.status, "pump-4.kit" in ran.err)


@pytest.mark.usefixtures("pki")
def test_who_is_renewed_is_said_by_within_or_by_name(submerge):
    """A node that is named is renewed in any case, unless --within is said as well."""
    submerge("pki", "issue", "a", "b", "--lasts", "60d")

    def renewed(*arguments: str) -> list[list[str]]:
        reported = json.loads(submerge("pki", "renew", *arguments, "--json").out)
        return [[each["node"] for each in reported[what]] for what in ("renewed", "left")]

    assert [[], ["a", "b"]] == renewed("--all")
    assert [["a", "b"], []] == renewed("--all", "--within", "61d")
    assert [["b"], []] == renewed("b")
    assert [[], ["b"]] == renewed("b", "--within", "30d")


def test_a_renewed_kit_lasts_as_long_as_is_said(submerge, pki):
    """From then on: as long as the one before, unless told otherwise."""
    submerge("pki", "issue", "a")
    submerge("pki", "renew", "a", "--lasts", "10m")

    ran = submerge("pki", "renew", "--all")

    assert (
        "renewed pki/kits/a.kit: a, role client, until 2026-03-01T12:10:00Z (10 min)\n" == ran.out
    )
    assert 600 == issued(pki)["a"]["lasts_s"]


def test_a_renewed_kit_keeps_its_owner(submerge, pki, monkeypatch):
    """Root renews, and the node's user must still be able to read it."""
    submerge("pki", "issue", "pump-3")
    own = (pki / "kits/pump-3.kit").stat()
    given = []
    monkeypatch.setattr(os, "fchown", lambda _, uid, gid: given.append((uid, gid)))

    submerge("pki", "renew", "pump-3")

    assert (own.st_uid, own.st_gid) == given[0]


def test_renew_moves_a_node_to_other_hosts(submerge, pki):
    """The one way to change them; for one node at a time."""
    submerge("pki", "issue", "root", "east", "--host", "10.0.0.5")

    submerge("pki", "renew", "root", "--host", "10.0.0.6")
    ran = submerge("pki", "renew", "--all", "--host", "10.0.0.7")

    assert ("10.0.0.6",) == read_contents(pki / "kits/root.kit").entry.hosts
    assert (2, True) == (ran.status, "expected one NODE with --host" in ran.err)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected NODE or --all, got neither"),
        (("pump-3", "--all"), "expected NODE or --all, got both"),
        (("pump-9",), "pump-9 has no kit yet: submerge pki issue pump-9"),
    ],
)
def test_renew_wants_to_know_whom(submerge, pki, arguments, said):
    """One line, and nothing is renewed."""
    submerge("pki", "issue", "pump-3")
    before = (pki / "kits/pump-3.kit").read_bytes()

    ran = submerge("pki", "renew", *arguments)

    assert (2, True) == (ran.status, said in ran.err)
    assert before == (pki / "kits/pump-3.kit").read_bytes()


def test_nobody_sees_half_a_kit(submerge, pki, monkeypatch):
    """A disk that fails leaves the old kit as it was, and nothing beside it."""
    submerge("pki", "issue", "pump-3")
    before = (pki / "kits/pump-3.kit").read_bytes(), (pki / "issued.json").read_bytes()

    def failing(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    ran = submerge("pki", "renew", "pump-3")

    assert (2, True) == (ran.status, "cannot write pki/kits/pump-3.kit: Input/output" in ran.err)
    assert before == ((pki / "kits/pump-3.kit").read_bytes(), (pki / "issued.json").read_bytes())
    assert ["pump-3.kit"] == os.listdir(pki / "kits")


def test_an_end_on_the_way_forgets_no_kit_that_was_made(submerge, pki, monkeypatch):
    """What was written is in the record; the rest can be issued again."""
    real, puts = pki_directory.PkiDirectory.put, []

    def put(self, certified, authority):
        puts.append(certified.node)
        if len(puts) == 2:
            raise KeyboardInterrupt
        return real(self, certified, authority)

    monkeypatch.setattr(pki_directory.PkiDirectory, "put", put)
    ran = submerge("pki", "issue", "a", "b", "c")

    assert (130, ["a", "b"]) == (ran.status, puts)
    assert ["a"] == list(json.loads((pki / "issued.json").read_text())["kits"])
    assert 0 == submerge("pki", "issue", "b", "c").status


def test_what_died_between_kit_and_record_is_made_anew(submerge, pki):
    """Nobody was told of such a kit: it stands in nobody's way."""
    (pki / "kits/pump-3.kit").write_text("left behind")

    assert 0 == submerge("pki", "issue", "pump-3").status
    assert "pump-3" == read_contents(pki / "kits/pump-3.kit").entry.node


def test_a_certificate_cut_short_by_its_authority_says_so(submerge):
    """The operator asked for more than there is."""
    submerge("pki", "init", "--lasts", "30d")

    ran = submerge("pki", "issue", "pump-3")

    assert "until 2026-03-31T12:00:00Z (30 d)" in ran.out
    assert "shorter than requested: the authority itself ends on 2026-03-31T12:00:00Z" in ran.err


def test_an_authority_that_has_ended_says_so(submerge, pki, clock):
    """And signs nothing."""
    clock.time += 3651 * DAY

    ran = submerge("pki", "issue", "pump-3")

    assert (2, []) == (ran.status, os.listdir(pki / "kits"))
    assert "expected a valid authority" in ran.err


@pytest.mark.usefixtures("pki")
def test_show_marks_what_ends_soon_and_what_has_ended(submerge, clock):
    """For a person, in lines by name; the authority's own end as well."""
    submerge("pki", "issue", "c", "--lasts", "5d")
    submerge("pki", "issue", "b", "--lasts", "20d")
    submerge("pki", "issue", "a", "--host", "10.0.0.5", "--host", "root")
    clock.time += 10 * DAY

    lines = [line.split() for line in submerge("pki", "show").out.splitlines() if line.strip()]

    assert "fleet default, its authority until 2036-02-27 (3640 d)" == " ".join(lines[0])
    assert [
        ["a", "aggregator", "all", "10.0.0.5", "root", "2026-05-30", "80", "d"],
        ["b", "client", "all", "-", "2026-03-21", "10", "d", "soon"],
        ["c", "client", "all", "-", "2026-03-06", "-", "ended"],
    ] == lines[3:]


@pytest.mark.usefixtures("pki")
def test_show_fits_a_terminal_of_80_columns(submerge, monkeypatch):
    """Hosts take another line; no name, and no word, is cut."""
    monkeypatch.setattr(admin_client, "WIDE", 80)
    hosts = [f"--host=site-{i}.plant.example.org" for i in range(4)]
    submerge("pki", "issue", "compressor-house-2", *hosts, "--lasts", "20d")
    out = submerge("pki", "show").out

    assert 80 >= max(map(len, out.splitlines()))
    assert {"compressor-house-2", "2026-03-21", "soon"} <= set(out.split())
    assert "\N{HORIZONTAL ELLIPSIS}" not in out


def issued(pki) -> dict:
    return json.loads((pki / "issued.json").read_text())["kits"]


@pytest.mark.usefixtures("pki")
def test_show_says_the_same_to_a_program(submerge, clock):
    """As JSON, with seconds that are left."""
    submerge("pki", "issue", "a", "--lasts", "5d")
    clock.time += 6 * DAY

    shown = json.loads(submerge("pki", "show", "--json").out)

    assert ("default", "holds") == (shown["fleet"], shown["authority"]["state"])
    (kit,) = shown["kits"]
    assert ("a", -86400.0, "ended", "pki/kits/a.kit") == tuple(
        kit[each] for each in ("node", "left_s", "state", "kit")
    )


@pytest.mark.usefixtures("pki")
def test_show_of_nothing_says_what_to_do(submerge):
    """An authority is new once."""
    assert "no node has a kit yet: submerge pki issue NODE" in submerge("pki", "show").out


def test_show_looks_into_a_kit(submerge, pki, tmp_path):
    """Wherever it is; without its authority's directory."""
    submerge("pki", "issue", "root", "--host", "10.0.0.5")
    (pki / "kits/root.kit").rename(tmp_path / "taken.kit")

    shown = json.loads(submerge("pki", "show", "taken.kit", "--json").out)
    ran = submerge("pki", "show", "ca.key", "--dir", "pki")

    assert issued(pki)["root"]["serial"] == shown["kits"][0]["serial"]
    assert "taken.kit" == shown["kits"][0]["kit"]
    seen = submerge("pki", "show", "taken.kit").out
    assert f"serial {shown['kits'][0]['serial']}" == seen.splitlines()[-1]
    assert (2, True) == (ran.status, "--dir is for all kits" in ran.err)
    assert 2 == submerge("pki", "show", "pki/ca.pem").status


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 3, "kits": {}}', '{"version": 1, "kits": {"a": {}}}']
)
def test_a_damaged_record_is_refused(submerge, pki, text):
    """To guess would be to issue twice; nothing is written over it."""
    (pki / "issued.json").write_text(text)

    ran = submerge("pki", "issue", "pump-3")

    assert (2, text) == (ran.status, (pki / "issued.json").read_text())
    assert "expected the record of what was issued in pki/issued.json" in ran.err


@pytest.mark.parametrize("name", ["issued.json", "ca.key"])
def test_a_lost_file_is_named(submerge, pki, name):
    """The rest of the authority is there: it is no case for another one."""
    (pki / name).unlink()

    ran = submerge("pki", "issue", "pump-3")

    assert (2, True) == (ran.status, f"expected pki/{name}, got none: take it from" in ran.err)


def test_without_cryptography_one_line_says_what_to_install(submerge, monkeypatch):
    """It is an extra: a device has none."""
    for name in [each for each in sys.modules if each.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("directory", "authority", "hosts", "kit_file"):
        monkeypatch.delitem(sys.modules, f"submerge_operate.pki.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)

    ran = submerge("pki", "init")

    assert (2, True) == (ran.status, "pip install 'submerge[pki]'" in ran.err)


def test_whoever_is_retired_gets_no_new_kit(submerge, pki, clock):
    """A nightly renewal must not make one for the thief."""
    submerge("pki", "issue", "pump-1", "pump-2")
    ran = submerge("pki", "retire", "pump-1")
    clock.time += 80 * DAY
    submerge("pki", "renew", "--all")

    assert ran.out.startswith(
        "pump-1 is retired; its certificate is valid until 2026-05-30T12:00:00Z"
    )
    assert ["pump-2.kit"] == [path.name for path in (pki / "kits").iterdir()]


def test_only_who_has_a_kit_can_be_retired(submerge, pki):
    """And nobody is, if one of those named has none."""
    submerge("pki", "issue", "pump-1")

    ran = submerge("pki", "retire", "pump-1", "pump-9")

    assert (2, "pump-9 has no kit") == (ran.status, ran.err.removeprefix("submerge: ")[:17])
    assert (pki / "kits" / "pump-1.kit").exists()


def test_no_node_is_called_as_a_topic_of_all(submerge, pki):
    """A broker would let it write everybody's scores."""
    assert 2 == submerge("pki", "issue", "score").status
    assert [] == list((pki / "kits").iterdir())
