"""A Mosquitto with the files of deploy/mosquitto, and peers with kits who do there what they like.

Only paths and the port are the test's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from submerge.protocol.permission import Permission
from submerge_client.uplink.broker import Broker, Publication
from submerge_client.uplink.line import BrokerConnection
from submerge_client.uplink.tls import Tls
from submerge_operate.pki.authority import Authority
from submerge_operate.pki.command import acl_text
from submerge_operate.pki.directory import text_of
from submerge_operate.pki.issued import Entry
from support.broker import Mosquitto
from support.patience import PATIENCE_S, until

SHIPPED = Path(__file__).parents[2] / "deploy" / "mosquitto"
DAY = timedelta(days=1)


ROLES = {
    **dict.fromkeys(("n1", "n2", "n3"), Permission("client", ("g",))),
    "other": Permission("client", ("other-group",)),
    **dict.fromkeys(("north", "south"), Permission("aggregator")),
    **dict.fromkeys(("dashboard", "homeassistant", "broker"), Permission("reader")),
    "operator": Permission("operator", ("g",)),
    "old": None,  # a kit from before there were roles
}
"""What nodes of a generated ACL may do."""


def generated(folder: Path, *revoked: str) -> Path:
    """Write the rules that `submerge pki acl` writes for the nodes of ROLES; return their path."""
    entries = [Entry(node, (), DAY, role) for node, role in ROLES.items()]
    path = folder / "generated.acl"
    path.write_text(acl_text(entries, revoked))
    return path


class Site(NamedTuple):
    """A broker with the shipped files, and the authority of those who may come."""

    broker: Mosquitto
    authority: Authority
    folder: Path
    rules: Path = SHIPPED / "acl"

    def kit(self, node: str, *hosts: str, authority: Authority | None = None) -> Path:
        """Make a node's kit, with its role of ROLES."""
        signer = authority or self.authority
        made = signer.certify(node, hosts, ROLES.get(node), now=datetime.now(UTC), lasts=DAY)
        path = self.folder / f"{node}.kit"
        path.write_bytes(text_of(made, signer))
        return path


def shipped(folder: Path, *, rules: Path = SHIPPED / "acl") -> list[str]:
    """Return the settings of the shipped file, but for the port and the paths.

    Without a list of revoked certificates in the folder, there is no line for it.
    """
    own = {
        "/mosquitto/kit/acl": str(rules),
        "/mosquitto/kit/": f"{folder}/",
        "/mosquitto/data/": f"{folder}/",
    }
    lines = (SHIPPED / "mosquitto.conf").read_text().splitlines()
    left_out = ("#", "listener") if (folder / "crl.pem").exists() else ("#", "listener", "crlfile")
    settings = [line for line in lines if line and not line.startswith(left_out)]
    for theirs, ours in own.items():
        settings = [line.replace(theirs, ours) for line in settings]
    return settings


class Peer:
    """Somebody with a kit, who writes and reads what he likes."""

    def __init__(self, site: Site, kit: Path, *read: str) -> None:
        self.heard: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
        opened = threading.Event()
        self._line = BrokerConnection(
            Broker(site.broker.host, site.broker.port, tls=Tls(kit=kit)),
            name=f"test {kit.stem} {id(self)}",
            topics=read or ("nothing",),
            will=None,
            opened=opened.set,
            parted=lambda _: None,
            came=lambda topic, data: self.heard.put((topic, data)),
        )
        self._line.open()
        assert opened.wait(PATIENCE_S)

    def say(self, topic: str, data: bytes = b"x", *, retain: bool = False) -> None:
        """Publish, and wait until the broker has it, or has hung up."""
        self._line.put(object(), Publication(topic, data, retain))
        until(lambda: not self._line.waiting and not self._line._unacknowledged)

    def put(self, topic: str, data: bytes) -> None:
        """Publish, and wait for nothing."""
        self._line.put(object(), Publication(topic, data, False))

    @property
    def connected(self) -> bool:
        """Whether its connection is open, as far as it knows."""
        return self._line.is_open

    def next(self) -> tuple[str, bytes]:
        """Return what is heard next."""
        return self.heard.get(timeout=PATIENCE_S)

    def close(self) -> None:
        self._line.close()


def forge(site: Site, kit: Path, topic: str, *, retain: bool = False) -> None:
    """Publish what is forbidden: Mosquitto acknowledges it, and then hangs up."""
    peer = Peer(site, kit)
    peer.say(topic, b"forged", retain=retain)
    peer.close()


@contextmanager
def peers(site: Site, *wanted: tuple[str | Path, tuple[str, ...]]) -> Iterator[list[Peer]]:
    """Connect several; all are gone in the end."""
    with ExitStack() as stack:
        found = []
        for who, read in wanted:
            kit = site.kit(who) if isinstance(who, str) else who
            found.append(Peer(site, kit, *read))
            stack.callback(found[-1].close)
        yield found


def named_kit(authority: Authority, name: str) -> bytes:
    """Return a kit of a client with a name that we would not sign."""
    made = authority.certify("wild", (), now=datetime.now(UTC), lasts=DAY)
    like = x509.load_pem_x509_certificate(made.certificate)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(like.issuer)
        .public_key(like.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(like.not_valid_before_utc)
        .not_valid_after(like.not_valid_after_utc)
    )
    for each in like.extensions:
        builder = builder.add_extension(each.value, critical=each.critical)
    signed = builder.sign(authority.key, hashes.SHA256())
    renamed = made._replace(certificate=signed.public_bytes(Encoding.PEM))
    return text_of(renamed, authority)
