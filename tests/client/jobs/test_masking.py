"""Keys of masked sums: each is signed by its node's kit, for one job and group."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("cryptography")
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from submerge.errors import PeerError, UsageError
from submerge.jobs.masks import MOST_OFFER
from submerge.protocol.permission import Permission
from submerge_client.masking import KitMasking
from submerge_client.uplink.tls import Tls
from submerge_operate.pki.authority import Authority
from support.certified import Certified

NODES = "abcde"
CLIENT = Permission("client", ("room",))


@pytest.fixture(scope="module")
def certified(tmp_path_factory) -> Certified:
    return Certified(tmp_path_factory.mktemp("kits"))


def seat(certified: Certified, node: str, permission=CLIENT, group: str = "room") -> KitMasking:
    """A node with a kit of its own."""
    return KitMasking(node, group, Tls(kit=certified.kit(node, permission=permission)))


def padded(offer: bytes) -> bytes:
    """As it comes down."""
    return offer.ljust(MOST_OFFER, b"\0")


def test_each_pair_has_the_same_key_and_no_two_pairs(certified) -> None:
    """Nobody has one with itself; another round has another stream."""
    seats = {node: seat(certified, node) for node in NODES}
    keys = {node: each.offer("job-1") for node, each in seats.items()}
    offers = [padded(offer) for _, offer in keys.values()]
    pairs = {n: each.agree(keys[n][0], offers, "job-1") for n, each in seats.items()}

    assert all({*NODES} - {node} == {*found} for node, found in pairs.items())
    assert all(pairs[a][b] == pairs[b][a] for a in NODES for b in NODES if a != b)
    assert 10 == len({key for found in pairs.values() for key in found.values()})
    streams = [seats["a"].stream(pairs["a"][b], turn, 64) for b in "bc" for turn in range(3)]
    assert 6 == len(set(streams))
    assert streams[0] == seats["b"].stream(pairs["b"]["a"], 0, 64)
    assert streams[0][:32] != streams[0][32:]


def test_another_job_has_other_keys(certified) -> None:
    """Also where a parent hands out the key of an earlier one."""
    a, b = (seat(certified, node) for node in "ab")
    (mine, own), (_, old) = a.offer("job-2"), b.offer("job-1")

    with pytest.raises(PeerError, match="the key of b for masked sums is false"):
        a.agree(mine, [padded(own), padded(old)], "job-2")


def replaced(offer: bytes) -> bytes:
    """A parent's own key in the place of another's, whose signature stays."""
    return bytes(31) + b"\x09" + offer[32:]


def cut(offer: bytes) -> bytes:
    """Half of it."""
    return offer[: len(offer) // 2]


@pytest.mark.parametrize("change", [replaced, cut, lambda _: b"", lambda offer: offer[::-1]])
def test_a_changed_key_is_refused(certified, change) -> None:
    a, b = (seat(certified, node) for node in "ab")
    mine, theirs = a.offer("job-1")[0], b.offer("job-1")[1]

    with pytest.raises(PeerError, match="is false"):
        a.agree(mine, [padded(change(theirs))], "job-1")


@pytest.mark.parametrize(
    "permission",
    [None, Permission("aggregator"), Permission("reader"), Permission("client", ("x",))],
)
def test_a_kit_of_another_kind_counts_for_nobody(certified, permission) -> None:
    """An aggregator's owner cannot be four of five: it takes kits of clients of the group."""
    a, other = seat(certified, "a"), seat(certified, "hall", permission)
    mine, theirs = a.offer("job-1")[0], other.offer("job-1")[1]

    with pytest.raises(PeerError, match="the key of hall"):
        a.agree(mine, [padded(theirs)], "job-1")


def test_a_kit_of_another_authority_counts_for_nobody(certified, tmp_path) -> None:
    """Nor one that has ended."""
    a, stranger = seat(certified, "a"), seat(Certified(tmp_path), "b")
    mine, theirs = a.offer("job-1")[0], stranger.offer("job-1")[1]
    with pytest.raises(PeerError, match="no authority"):
        a.agree(mine, [padded(theirs)], "job-1")

    ended = Tls(kit=certified.kit("e", permission=CLIENT, lasts_s=-60))
    theirs = KitMasking("e", "room", ended).offer("job-1")[1]
    with pytest.raises(PeerError, match="not valid now"):
        a.agree(mine, [padded(theirs)], "job-1")


def test_two_keys_of_one_node_are_refused(certified) -> None:
    """They would count as two."""
    a, b = (seat(certified, node) for node in "ab")
    mine, theirs = a.offer("job-1")[0], [padded(b.offer("job-1")[1]) for _ in range(2)]

    with pytest.raises(PeerError, match="b has two keys"):
        a.agree(mine, theirs, "job-1")


def test_a_key_of_another_form_says_so(certified, tmp_path) -> None:
    """Kits of this fleet's authority are ECDSA; files of another's may be anything."""
    certificate = certified.kit("r", permission=CLIENT)
    key = rsa.generate_private_key(65537, 2048)
    now = datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "r")])
    self_signed = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    from cryptography.hazmat.primitives.hashes import SHA256

    made = self_signed.not_valid_before(now).not_valid_after(now + timedelta(hours=1))
    (tmp_path / "cert").write_bytes(made.sign(key, SHA256()).public_bytes(Encoding.PEM))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key").write_bytes(private)
    tls = Tls(certificate, tmp_path / "cert", tmp_path / "key")

    with pytest.raises(UsageError, match="ECDSA"):
        KitMasking("r", "room", tls).offer("job-1")


def test_a_renewed_authority_is_one_of_two(certified, tmp_path) -> None:
    """Both have the same name; a node may trust both for a time."""
    now = datetime.now(UTC) - timedelta(days=1)
    later = Authority.create("test", now=now, lasts=timedelta(days=10))
    b = seat(certified, "b")
    made = certified.authority.certify(
        "a", (), CLIENT, now=datetime.now(UTC), lasts=timedelta(hours=1)
    )
    for name, text in {
        "ca": later.pem + certified.authority.pem,
        "cert": made.certificate,
        "key": made.key,
    }.items():
        (tmp_path / name).write_bytes(text)
    a = KitMasking("a", "room", Tls(*(tmp_path / name for name in ("ca", "cert", "key"))))
    mine, theirs = a.offer("job-1")[0], b.offer("job-1")[1]

    assert {"b"} == {*a.agree(mine, [padded(theirs)], "job-1")}
