"""`submerge pki revoke`: the list for aggregators and the CRL for brokers, and who is on them."""

from __future__ import annotations

import json
import re
import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_operate.pki import issuance
from submerge_operate.pki.directory import RevocationList, parse_revoked, serial_text
from support.commands import shell

DAY = timedelta(days=1)


class Clock:
    """A clock that stands where it is set."""

    time = datetime(2026, 3, 1, 12, tzinfo=UTC)

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


def lines(pki) -> list[str]:
    """What is on the list, without its head."""
    return (pki / "revoked").read_text().splitlines()[1:]


def crl(pki) -> x509.CertificateRevocationList:
    return x509.load_pem_x509_crl((pki / "crl.pem").read_bytes())


def listed(pki) -> set[str]:
    return {f"{each.serial_number:040X}" for each in crl(pki)}


def serial(pki, node) -> str:
    return json.loads((pki / "issued.json").read_text())["kits"][node]["serial"]


def number(pki) -> int:
    return crl(pki).extensions.get_extension_for_class(x509.CRLNumber).value.crl_number


def test_a_new_authority_has_revoked_nothing(pki):
    """Both files are there, for whoever reads them; they are no secrets."""
    assert ([], set()) == (lines(pki), listed(pki))
    assert [0o644] * 2 == [
        stat.S_IMODE((pki / each).stat().st_mode) for each in ("revoked", "crl.pem")
    ]


def test_the_crl_is_the_authoritys_and_outlives_it(pki, clock):
    """An expired one would shut out everybody; a broker's clock may be a day behind."""
    authority = x509.load_pem_x509_certificate((pki / "ca.pem").read_bytes())

    assert crl(pki).is_signature_valid(authority.public_key())
    assert authority.subject == crl(pki).issuer
    assert authority.not_valid_after_utc < crl(pki).next_update_utc
    assert clock.time - DAY == crl(pki).last_update_utc


def test_a_revoked_node_is_on_both_lists(submerge, pki):
    """Its name, and the certificates that it has been given; it has no kit any more."""
    submerge("pki", "issue", "pump-1", "pump-2")
    first = serial(pki, "pump-1")
    submerge("pki", "renew", "pump-1")

    ran = submerge("pki", "revoke", "pump-1", "--why", "stolen, from the north gate")

    told = "# 2026-03-01T12:00:00Z stolen, from the north gate"
    both = [first, serial(pki, "pump-1")]
    assert [*(f"serial {each} {told}" for each in both), f"node pump-1 {told}"] == lines(pki)
    assert set(both) == listed(pki)
    assert ["pump-2.kit"] == [path.name for path in (pki / "kits").iterdir()]
    assert ran.out.splitlines() == [
        "pki/revoked: nodes: 1, certificates: 2; for aggregators, [security] revoked",
        (
            "pki/crl.pem: the same for brokers, crlfile; then bring the broker a new ACL"
            " (submerge pki acl), and send it SIGHUP"
        ),
    ]
    assert "revoked" == submerge("pki", "show").out.split("pump-1")[1].split("\n")[0].split()[-1]


def test_a_certificate_that_has_ended_is_not_remembered(submerge, pki, clock):
    """The record keeps those that still hold, for a later revocation."""
    submerge("pki", "issue", "pump-1", "--lasts", "10d")
    first = serial(pki, "pump-1")
    clock.time += 5 * DAY
    submerge("pki", "renew", "pump-1")
    second = serial(pki, "pump-1")
    clock.time += 7 * DAY
    submerge("pki", "renew", "pump-1")

    submerge("pki", "revoke", "pump-1")

    assert {second, serial(pki, "pump-1")} == listed(pki)
    assert first not in listed(pki)


def test_no_kit_is_made_for_a_revoked_node(submerge, pki, tmp_path):
    """Not by name, not by a list, and a nightly renewal passes it over."""
    submerge("pki", "issue", "pump-1", "pump-2", "--lasts", "10d")
    submerge("pki", "revoke", "pump-1", "pump-3", "--serial", "AB")
    (tmp_path / "nodes.csv").write_text("node\npump-1\npump-3\n")

    assert 0 == submerge("pki", "renew", "--all").status
    ran = submerge("pki", "kits", "nodes.csv", "--renew")
    assert "pump-3 is revoked, and gets no kit: take it out of the list" in ran.err
    for command in (("renew", "pump-1"), ("issue", "pump-3")):
        ran = submerge("pki", *command)
        assert (2, True) == (ran.status, "is revoked: submerge pki renew" in ran.err)
    assert ["pump-2.kit"] == [path.name for path in (pki / "kits").iterdir()]


def test_a_reinstated_node_gets_a_new_kit_and_its_old_one_stays_revoked(submerge, pki):
    """The thief has the old one."""
    submerge("pki", "issue", "pump-1")
    old = serial(pki, "pump-1")
    submerge("pki", "revoke", "pump-1")

    assert 0 == submerge("pki", "renew", "pump-1", "--reinstate").status

    assert {old} == listed(pki)
    assert [f"serial {old}"] == [line.split(" #")[0] for line in lines(pki)]
    assert old != serial(pki, "pump-1")
    ran = submerge("pki", "renew", "pump-1", "--reinstate")
    assert (2, True) == (ran.status, "pump-1 is not revoked" in ran.err)


def test_a_serial_revokes_one_certificate(submerge, pki):
    """In OpenSSL's forms; its node may have a new one, without further ado."""
    submerge("pki", "issue", "pump-1")
    old = serial(pki, "pump-1")
    dotted = ":".join(old[i : i + 2] for i in range(0, 40, 2)).lower()

    submerge("pki", "revoke", "--serial", dotted)
    assert {old} == listed(pki)
    assert 0 == submerge("pki", "renew", "pump-1").status
    assert {old} == listed(pki)
    assert 2 == submerge("pki", "revoke", "--serial", "pump-1").status


def test_a_name_that_is_not_in_the_record_is_refused_and_its_likeness_named(submerge, pki):
    """It may be a slip, and the thief would stay in; with a serial number it is meant."""
    submerge("pki", "issue", "pump-1")
    before = lines(pki)

    slip = submerge("pki", "revoke", "pmup-1")
    assert (2, True) == (slip.status, "not in the record" in slip.err)
    assert "(a name like it: pump-1)" in slip.err
    assert before == lines(pki)

    ran = submerge("pki", "revoke", "pump-9", "--serial", "AB", "--json")
    assert {"nodes": ["pump-9"], "serials": 1} == {
        key: json.loads(ran.out)[key] for key in ("nodes", "serials")
    }
    assert 0 == submerge("pki", "revoke", "pump-9").status, "it is on the list already"


def test_a_retired_node_is_revoked_by_the_command_that_retire_names(submerge, pki):
    """Its certificates have left the record, but that line has them."""
    submerge("pki", "issue", "pump-1")
    number = serial(pki, "pump-1")

    named = re.search(r"submerge (pki revoke .*) shuts", submerge("pki", "retire", "pump-1").out)
    assert named is not None
    assert 0 == submerge(*named[1].split()).status

    assert {number} == listed(pki)


def test_each_crl_has_a_higher_number(submerge, pki):
    """Each command that issues or revokes writes one."""
    numbers = [number(pki)]
    for command in (("issue", "a"), ("renew", "a"), ("revoke", "a"), ("revoke",)):
        submerge("pki", *command)
        numbers.append(number(pki))

    assert [1, 2, 3, 4, 5] == numbers


def test_a_directory_from_before_there_were_lists_gets_them(submerge, pki):
    """At the next kit, or by `revoke` without a name: a broker needs a CRL to start."""
    for command in (("issue", "a"), ("revoke",)):
        (pki / "revoked").unlink()
        (pki / "crl.pem").unlink()
        submerge("pki", *command)

        assert ([], set()) == (lines(pki), listed(pki))


def test_a_list_that_a_person_has_edited_is_kept_as_it_is(submerge, pki):
    """With comments, and names without a serial number; the CRL follows at the next command."""
    submerge("pki", "issue", "pump-1")
    path = pki / "revoked"
    path.write_text("# ours\n\nnode pump-1   # Tuesday\n  serial 00:ab\n")

    submerge("pki", "issue", "pump-2")

    assert "# ours\n\nnode pump-1   # Tuesday\n  serial 00:ab\n" == path.read_text()
    assert {serial(pki, "pump-1"), f"{0xAB:040X}"} == listed(pki)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("pump-1", "expected serial HEX or node NAME, got 'pump-1'"),
        ("node", "expected serial HEX or node NAME, got 'node'"),
        ("node a b", "expected serial HEX or node NAME, got 'node a b'"),
        ("nodes a", "expected serial HEX or node NAME, got 'nodes a'"),
        ("serial xyz", "expected a serial number, hexadecimal, got 'xyz'"),
        ("node a/b", "a name is "),
    ],
)
def test_a_list_that_is_half_understood_is_refused(submerge, pki, line, why):
    """To pass over a line would let somebody in."""
    (pki / "revoked").write_text(f"# head\n{line}\n")

    ran = submerge("pki", "issue", "pump-2")

    assert (2, True) == (ran.status, f"pki/revoked, line 2: {why}" in ran.err)
    assert [] == list((pki / "kits").iterdir())


NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)
SERIALS = st.integers(1, 2**159 - 1).map(lambda number: f"{number:040X}")


@settings(max_examples=40)
@given(st.sets(NAMES, max_size=4), st.sets(SERIALS, max_size=4), NAMES)
def test_a_list_reads_back_and_grows_by_what_is_new(nodes, serials, other):
    """What is on it twice is on it once; a node that is taken off takes nothing else along."""
    once = RevocationList().adding(serials=serials, nodes=nodes, comment="why # ever")
    twice = once.adding(serials=serials, nodes=nodes, comment="again")

    assert once == twice == parse_revoked(once.text.decode(), "a file")
    assert (nodes, {int(each, 16) for each in serials}) == (once.nodes, once.serials)
    assert nodes - {other} == once.reinstating(other).nodes
    assert once.serials == once.reinstating(other).serials


@given(st.text())
def test_a_line_is_understood_or_refused(text):
    """Nothing else is raised, and nothing of it is lost."""
    try:
        read = parse_revoked(text, "a file")
    except UsageError:
        return
    assert read == parse_revoked(read.text.decode(errors="surrogatepass"), "a file")


@pytest.mark.parametrize("text", ["", "0x", "-1", "g", "1_0", "F" * 41])
def test_what_is_no_serial_number_is_refused(text):
    """Python's own reader would take some of them."""
    with pytest.raises(UsageError, match="expected a serial number in hexadecimal digits"):
        serial_text(text)
