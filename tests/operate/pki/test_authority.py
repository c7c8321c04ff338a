"""Certificates: real handshakes in memory, as strict as Python 3.13, with kits as files."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.kit import read_kit
from submerge_operate.pki.authority import (
    BEHIND,
    Authority,
    alternative_names,
    host_of,
    hosts_in,
    hosts_of,
)
from submerge_operate.pki.directory import read_contents, text_of

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR, DAY, YEAR = timedelta(hours=1), timedelta(days=1), timedelta(days=365)

HOSTS = ("root.example.org", "10.0.0.5", "fd00::5")

AS_313 = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
"""What Python 3.13 asks of every chain, and 3.11 does not yet."""


class Met(NamedTuple):
    """What each side has seen of the other."""

    by_client: dict
    by_server: dict


def side(kit, *, server: bool, flags: int = AS_313) -> ssl.SSLContext:
    """One end that has a kit, and nothing else: one file for all, as Mosquitto may have it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= flags
    context.load_cert_chain(kit)
    context.load_verify_locations(kit)
    return context


def meet(server: ssl.SSLContext, client: ssl.SSLContext, host: str = HOSTS[0]) -> Met:
    """Shake hands in memory; raise what the first to refuse raises."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(down, up, server_hostname=host),
        server.wrap_bio(up, down, server_side=True),
    ]
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
    assert not waiting
    return Met(*(end.getpeercert() for end in ends))


def founded(**changes) -> Authority:
    return Authority.create("plant", **{"now": NOW, "lasts": YEAR} | changes)


@pytest.fixture
def authority() -> Authority:
    return founded()


@pytest.fixture
def kit(authority, tmp_path):
    """Return what writes a node's kit, of the fleet's authority or another."""

    def write(node, *hosts, of=authority, now=NOW, lasts=90 * DAY):
        path = tmp_path / f"{node}.kit"
        path.write_bytes(text_of(of.certify(node, hosts, now=now, lasts=lasts), of))
        return path

    return write


@pytest.mark.parametrize("flags", [ssl.VERIFY_DEFAULT, AS_313], ids=["3.11", "3.13"])
@pytest.mark.parametrize("host", HOSTS)
def test_two_kits_of_one_authority_know_one_another(kit, host, flags):
    """The server proves its name or address, the client its name."""
    server = side(kit("root", *HOSTS), server=True, flags=flags)
    client = side(kit("pump-3"), server=False, flags=flags)

    met = meet(server, client, host)

    assert ((("commonName", "root"),),) == met.by_client["subject"]
    assert ((("commonName", "pump-3"),),) == met.by_server["subject"]


def test_an_aggregator_is_a_server_below_and_a_client_above(kit):
    """One kit serves both ways."""
    east, root = kit("east", "east.example.org"), kit("root", *HOSTS)

    meet(side(root, server=True), side(east, server=False))
    meet(side(east, server=True), side(kit("pump-3"), server=False), "east.example.org")


@pytest.mark.parametrize("host", ["east.example.org", "10.0.0.6", "example.org"])
def test_a_server_of_another_name_is_refused(kit, host):
    """What is not among its hosts, it cannot serve under."""
    server, client = side(kit("root", *HOSTS), server=True), side(kit("pump-3"), server=False)

    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        meet(server, client, host)


def test_a_strangers_client_is_refused(kit):
    """An authority of the same fleet's name is another one still."""
    server = side(kit("root", *HOSTS), server=True)
    stranger = side(kit("pump-3", of=founded()), server=False)
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE

    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        meet(server, stranger)


def test_a_strangers_server_is_refused(kit):
    """Nobody's readings go to a server of another authority."""
    client = side(kit("pump-3"), server=False)
    stranger = side(kit("root", *HOSTS, of=founded()), server=True)
    stranger.verify_mode = ssl.CERT_NONE

    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        meet(stranger, client)


def test_whoever_has_no_certificate_is_refused(kit):
    """A server asks for one."""
    server = side(kit("root", *HOSTS), server=True)
    nobody = ssl.create_default_context(cafile=kit("pump-3"))

    with pytest.raises(ssl.SSLError, match="peer did not return a certificate"):
        meet(server, nobody)


def test_a_clients_certificate_does_not_serve(kit):
    """Who steals a pump's kit cannot pose as its parent, even where no host is checked."""
    thief, client = side(kit("pump-4"), server=True), side(kit("pump-3"), server=False)
    client.check_hostname = False

    with pytest.raises(ssl.SSLCertVerificationError, match="unsuitable certificate purpose"):
        meet(thief, client)


@pytest.mark.parametrize("signer", ["pump-4", "root"])
def test_a_nodes_certificate_signs_nobody(kit, tmp_path, signer):
    """Neither does a client's key make nodes, nor that of the very server that is asked."""
    kits = {"pump-4": kit("pump-4"), "root": kit("root", *HOSTS)}
    own = x509.load_pem_x509_certificates(kits[signer].read_bytes())[0]
    key = serialization.load_pem_private_key(kits[signer].read_bytes(), None)
    forged = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pump-3")]))
        .issuer_name(own.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - HOUR)
        .not_valid_after(NOW + HOUR)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = kits[signer].read_text()
    first = text.index("-----BEGIN CERT")
    chain = tmp_path / "forged.kit"
    pem = forged.public_bytes(serialization.Encoding.PEM).decode()
    chain.write_text(text[:first] + pem + text[first:])

    with pytest.raises(ssl.SSLCertVerificationError, match=r"invalid CA|lacks .*sign|key usage"):
        meet(side(kits["root"], server=True), side(chain, server=False))


def test_a_certificate_that_has_ended_is_refused(kit):
    """Ten minutes are ten minutes."""
    server = side(kit("root", *HOSTS), server=True)
    late = kit("pump-3", now=NOW - HOUR, lasts=timedelta(minutes=10))

    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        meet(server, side(late, server=False))


def test_a_device_whose_clock_is_behind_takes_its_kit(authority):
    """A certificate and its authority began a day ago: a Pi wakes up in its own past."""
    certified = authority.certify("pump-3", (), now=NOW, lasts=DAY)
    own = x509.load_pem_x509_certificate(certified.certificate)

    assert NOW - BEHIND == own.not_valid_before_utc
    assert NOW - BEHIND == authority.certificate.not_valid_before_utc
    assert NOW + DAY == own.not_valid_after_utc == certified.until


def test_no_certificate_begins_before_its_authority(authority):
    """Even where the clock that makes it was set back since."""
    certified = authority.certify("pump-3", (), now=NOW - HOUR, lasts=DAY)
    own = x509.load_pem_x509_certificate(certified.certificate)

    assert authority.certificate.not_valid_before_utc == own.not_valid_before_utc


def test_no_certificate_outlives_its_authority(authority):
    """Whatever was asked for."""
    assert authority.until == authority.certify("pump-3", (), now=NOW, lasts=2 * YEAR).until


@pytest.mark.parametrize("now", [NOW - 2 * DAY, NOW + YEAR, NOW + 2 * YEAR])
def test_an_authority_that_does_not_hold_signs_nothing(authority, now):
    """One that has ended, or a clock that says that it has not begun."""
    with pytest.raises(UsageError, match=r"a valid authority, got one from .*set the clock"):
        authority.certify("pump-3", (), now=now, lasts=DAY)


def test_the_authority_signs_nodes_and_nothing_else(authority):
    """No authority below it, and its key is for signing alone."""
    extensions = authority.certificate.extensions
    basic = extensions.get_extension_for_class(x509.BasicConstraints)
    usage = extensions.get_extension_for_class(x509.KeyUsage)

    assert (True, 0, True) == (basic.value.ca, basic.value.path_length, basic.critical)
    assert (True, True, False, True) == (
        usage.value.key_cert_sign,
        usage.value.crl_sign,
        usage.value.digital_signature,
        usage.critical,
    )


@pytest.mark.parametrize("hosts", [(), HOSTS])
def test_a_node_signs_what_it_says_and_nobody_else(authority, hosts):
    """Two bars where a strict reader and a lax one look for one each."""
    certified = authority.certify("root", hosts, now=NOW, lasts=DAY)
    extensions = x509.load_pem_x509_certificate(certified.certificate).extensions
    basic = extensions.get_extension_for_class(x509.BasicConstraints)
    usage = extensions.get_extension_for_class(x509.KeyUsage)

    assert (False, True) == (basic.value.ca, basic.critical)
    assert (True, False, False, True) == (
        usage.value.digital_signature,
        usage.value.key_cert_sign,
        usage.value.key_agreement,
        usage.critical,
    )


def test_each_renewal_has_a_key_and_a_number_of_its_own(authority):
    """An old key is good for nothing with a new certificate."""
    one, two = (authority.certify("pump-3", (), now=NOW, lasts=DAY) for _ in range(2))

    assert one.key != two.key
    assert one.serial != two.serial


def test_an_authority_reads_back(authority):
    """As it was written; with a passphrase, with no other and not without."""
    again = Authority.read(authority.pem, authority.key_pem(b"secret"), b"secret")

    assert "plant" == again.fleet
    assert authority.pem == again.pem
    assert b"ENCRYPTED" in authority.key_pem(b"secret")
    for key, passphrase, match in (
        (authority.key_pem(b"secret"), b"guess", "passphrase of another"),
        (authority.key_pem(b"secret"), None, "is encrypted: use --passphrase-file"),
        (authority.key_pem(None), b"secret", "is not encrypted"),
        (founded().key_pem(None), None, "does not belong to its certificate"),
        (b"nothing", None, "expected the authority's key in PEM form"),
    ):
        with pytest.raises(UsageError, match=match):
            Authority.read(authority.pem, key, passphrase)
    with pytest.raises(UsageError, match="expected the authority's certificate"):
        Authority.read(b"nothing", authority.key_pem(None), None)


def test_a_kit_is_what_devices_read(kit):
    """The reader on the devices takes what is written here."""
    path = kit("root", *HOSTS)
    found, own = read_kit(path), read_contents(path)

    assert "root" == found.node == own.entry.node
    assert HOSTS == own.entry.hosts
    assert ("plant", NOW + 90 * DAY) == (own.fleet, own.entry.until)
    assert path.read_text().startswith(
        f"submerge kit 1\nnode: root\nfleet: plant\nuntil: {NOW + 90 * DAY:%Y-%m-%dT%H:%M:%SZ}\n"
        "-----BEGIN PRIVATE KEY-----\n"
    )
    assert found.authority.decode() in path.read_text()


def parts(path) -> list[str]:
    """Head and key, certificate, authority."""
    first, own, authority = path.read_text().split("-----BEGIN CERTIFICATE-----")
    return [first, *(f"-----BEGIN CERTIFICATE-----{each}" for each in (own, authority))]


def test_a_kit_of_parts_that_do_not_belong_together_is_refused(kit, tmp_path):
    """Half replaced, mixed up, cut short, or something else."""
    one, two = parts(kit("pump-3")), parts(kit("pump-4"))
    other = parts(kit("pump-5", of=founded()))
    path = tmp_path / "mixed.kit"
    for text, match in (
        (one[0] + two[1] + one[2], "a key that is not its certificate's"),
        (one[0] + one[1] + other[2], "an authority that has not signed"),
        (one[0] + one[1], "got 1 keys and 1 certificates"),
        (
            one[0].replace("pump-3", "pump-4") + one[1] + one[2],
            "a certificate of pump-3, but a head of pump-4",
        ),
        (one[0][:300] + one[1] + one[2], "expected a kit"),
        (one[0] + one[1].replace("M", "N", 1) + one[2], "expected a kit"),
        (one[1] + one[2], "a file that begins otherwise"),
        ("", "a file that begins otherwise"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=match):
            read_contents(path)
    with pytest.raises(UsageError, match="No such file"):
        read_contents(tmp_path / "none.kit")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Root.Example.org", "root.example.org"),
        ("mosquitto", "mosquitto"),
        ("submerge_root-1", "submerge_root-1"),
        ("10.0.0.5", "10.0.0.5"),
        ("FD00::0005", "fd00::5"),
        ("3com.example", "3com.example"),
        ("x" * 63, "x" * 63),
    ],
)
def test_hosts_are_names_or_addresses(text, expected):
    """As they are compared."""
    assert expected == host_of(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "a b", "root:50051", "grpc://root", "*.example.org", "10.0.0.300", "10.0.0"),
        *("-a", "a-", "a..b", "a.", ".a", "fe80::1%eth0", "[::1]", "naïve.example", "a\n"),
        *("x" * 64, ".".join(["x" * 60] * 5)),
    ],
)
def test_what_is_no_host_is_refused(text):
    """Before it gets into a certificate that fits nobody."""
    with pytest.raises(UsageError, match="expected a host's name or IP address"):
        host_of(text)


@settings(max_examples=30)
@given(st.lists(st.ip_addresses().map(str) | st.sampled_from(["root", "a.example.org"])))
def test_hosts_come_back_from_a_certificate(texts):
    """Each once, in their order, IPv6 as well."""
    hosts = hosts_of(texts)

    assert tuple(dict.fromkeys(texts)) == hosts
    assert list(hosts) == [str(name.value) for name in alternative_names(hosts)]


def test_a_client_has_no_hosts(authority):
    """Nothing that a server's name could be compared with."""
    certified = authority.certify("pump-3", (), now=NOW, lasts=DAY)

    assert () == hosts_in(x509.load_pem_x509_certificate(certified.certificate))


@pytest.mark.parametrize("node", ["", "a b", "a/b", "x" * 65, "ü", "a\n"])
def test_what_is_no_nodes_name_is_never_certified(authority, node):
    """A name fits a topic and a file."""
    with pytest.raises(UsageError, match="a name has 1 to 64"):
        authority.certify(node, (), now=NOW, lasts=DAY)
