"""The authority that signs a fleet's certificates, and their contents. Values in, PEM out.

Keys are ECDSA on P-256: small on a device, and supported by all that check them: OpenSSL, as strict
as Python 3.13 makes it (VERIFY_X509_STRICT), BoringSSL (gRPC) and Mosquitto. Hence:

1. The authority signs only nodes: CA, path length 0, no key usage but signing.
2. The common name is the node's name. Names and addresses of a server are alternative names, and
   so are role and groups, as URIs (`Permission.uris`).
3. A certificate is valid for a server only if it has hosts, or is an aggregator's. That one has
   also the name by which children know their parent (`names.server_name`).
4. Each certificate has its key's and its signer's identifier; limits are marked critical.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from submerge import UsageError
from submerge.protocol.names import SERVER_DOMAIN, server_name
from submerge.protocol.permission import Permission
from submerge.protocol.settings import check_names

LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
HOST = re.compile(rf"({LABEL}\.)*(?!\d+$){LABEL}")
"""A name in the DNS or of a container. Its last part is not a number, unlike an address's."""

LONGEST = 253  # characters of a DNS name


def host_of(text: str) -> str:
    """Return a name or an address in its normal form, as root.example.org and fe80::1."""
    if (address := _address(text)) is not None:
        return str(address)
    host = text.lower()
    if host.endswith(SERVER_DOMAIN):
        raise UsageError(f"an aggregator's kit names it as {host} by itself: take out that host")
    if len(host) > LONGEST or not HOST.fullmatch(host):
        raise UsageError(
            "expected a host's name or IP address, without scheme, port or wildcard,"
            f" got {text[:80]!r}"
        )
    return host


def hosts_of(texts: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Return the normal forms of several, each once, in their order."""
    return tuple(dict.fromkeys(host_of(text) for text in texts))


def alternative_names(
    hosts: tuple[str, ...], uris: tuple[str, ...] = ()
) -> x509.SubjectAlternativeName:
    addresses = ((host, _address(host)) for host in hosts)
    names: list[x509.GeneralName] = [
        x509.DNSName(host) if ip is None else x509.IPAddress(ip) for host, ip in addresses
    ]
    return x509.SubjectAlternativeName(names + [x509.UniformResourceIdentifier(u) for u in uris])


def hosts_in(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the hosts that a certificate is valid for; none for a client's."""
    # The name under which an aggregator's children check it is not one of them.
    names = _names_in(certificate)
    hosts = (str(each.value) for each in names if isinstance(each, x509.DNSName | x509.IPAddress))
    return tuple(host for host in hosts if not host.endswith(SERVER_DOMAIN))


def uris_in(certificate: x509.Certificate) -> tuple[str, ...]:
    names = _names_in(certificate)
    return tuple(each.value for each in names if isinstance(each, x509.UniformResourceIdentifier))


def _names_in(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return list(found.value)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        # A zone (%eth0) is only known on this machine, and not part of a certificate.
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


BEHIND = timedelta(days=1)
"""How far a device's clock may be behind. A Pi has no clock battery: it starts with the time of
its last shutdown, and may connect to its parent before the network has set its clock."""

USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)
"""Uses of a key; a certificate allows or forbids each."""


class Certified(NamedTuple):
    """A new certificate and its key, both PEM; fields as in `issued.Entry`."""

    node: str
    hosts: tuple[str, ...]
    permission: Permission | None
    serial: str
    until: datetime
    key: bytes
    certificate: bytes


@dataclass(frozen=True)
class Authority:
    """A certificate that nodes trust, and the key that signs their certificates."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, fleet: str, *, now: datetime, lasts: timedelta) -> Authority:
        check_names(fleet)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, fleet),
                # No node has this name: names of nodes have no spaces.
                x509.NameAttribute(NameOID.COMMON_NAME, "submerge authority"),
            ]
        )
        usage = _usage("key_cert_sign", "crl_sign")
        certificate = (
            _builder(name, key, now=now - BEHIND, until=now + lasts)
            .issuer_name(name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(_signer(key), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def read(cls, certificate: bytes, key: bytes, passphrase: bytes | None) -> Authority:
        found = certificate_of(certificate)
        try:
            secret = serialization.load_pem_private_key(key, passphrase)
        except TypeError:
            if passphrase is None:
                raise UsageError("the key is encrypted: use --passphrase-file") from None
            raise UsageError(
                "the authority's key is not encrypted: leave out --passphrase-file"
            ) from None
        except (ValueError, UnsupportedAlgorithm) as error:
            wrong = "" if passphrase is None else ", or the passphrase of another"
            raise UsageError(f"expected the authority's key in PEM form{wrong}: {error}") from error
        if not isinstance(secret, ec.EllipticCurvePrivateKey):
            raise UsageError("expected an ECDSA key, as `submerge pki init` makes it")
        if secret.public_key() != found.public_key():
            raise UsageError("the authority's key does not belong to its certificate")
        return cls(found, secret)

    @property
    def fleet(self) -> str:
        return fleet_of(self.certificate)

    @property
    def until(self) -> datetime:
        """Its end, which is also the latest end of all that it has signed."""
        return self.certificate.not_valid_after_utc

    @property
    def pem(self) -> bytes:
        """The certificate, which is public."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self, passphrase: bytes | None) -> bytes:
        """Return the secret key, encrypted if there is a passphrase."""
        return _key_pem(self.key, passphrase)

    def certify(
        self,
        node: str,
        hosts: tuple[str, ...],
        permission: Permission | None = None,
        *,
        now: datetime,
        lasts: timedelta,
        key: ec.EllipticCurvePrivateKey | None = None,
    ) -> Certified:
        # It begins a day before `now`, but not before the authority: such a chain would not be
        # valid. It ends with the authority at the latest. Without a permission it is one as they
        # were before there were roles.
        check_names(node)
        begins = self.certificate.not_valid_before_utc
        if not begins <= now < self.until:
            raise UsageError(
                f"expected a valid authority, got one from {begins:%Y-%m-%d} to"
                f" {self.until:%Y-%m-%d}, and this clock shows {now:%Y-%m-%d %H:%M}:"
                " set the clock, or make a new authority with `submerge pki init`"
            )
        key = key or ec.generate_private_key(ec.SECP256R1())
        until = min(now + lasts, self.until)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node)])
        serves, uris = _alternatives(node, hosts, permission)
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if serves:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)  # for its children
        builder = (
            _builder(name, key, now=max(now - BEHIND, begins), until=until)
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage("digital_signature"), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(_signer(self.key), critical=False)
        )
        if serves or uris:
            names = alternative_names(serves, uris)
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return Certified(
            *(node, hosts, permission, serial_of(certificate), until),
            key=_key_pem(key, None),
            certificate=certificate.public_bytes(serialization.Encoding.PEM),
        )


def _alternatives(
    node: str, hosts: tuple[str, ...], permission: Permission | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names under which a node serves, none for a client; and URIs."""
    if permission is None:
        return hosts, ()
    serves = (*hosts, server_name(node)) if permission.role == "aggregator" else hosts
    return serves, permission.uris


def certificate_of(pem: bytes) -> x509.Certificate:
    """Return an authority's certificate, without its key."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise UsageError(f"expected the authority's certificate in PEM form: {error}") from error


def fleet_of(authority: x509.Certificate) -> str:
    names = authority.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if not names:
        raise UsageError("expected an authority made by `submerge pki init`, got another")
    return str(names[0].value)


def serial_of(certificate: x509.Certificate) -> str:
    """Return a certificate's serial number, as OpenSSL writes it."""
    return f"{certificate.serial_number:040X}"


def _builder(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, *, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    """Return a builder with a certificate's name, key and dates."""
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _signer(key: ec.EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def _usage(*uses: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{each: each in uses for each in USES})


def _key_pem(key: ec.EllipticCurvePrivateKey, passphrase: bytes | None) -> bytes:
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        protection = serialization.BestAvailableEncryption(passphrase)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection
    )


AFTER = timedelta(days=1)  # how long it outlives its authority


def crl_of(authority: Authority, serials: Iterable[int], *, now: datetime, number: int) -> bytes:
    """Return a list of serial numbers, in PEM form; `number` rises with each list."""
    # An authority that has ended is refused: its lists and its certificates are worth nothing.
    if now >= authority.until:
        raise UsageError(f"expected a valid authority, got one that ended on {authority.until}")
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.certificate.subject)
        # A broker's clock may be behind, as a node's may.
        .last_update(now - BEHIND)
        .next_update(authority.until + AFTER)
        .add_extension(x509.CRLNumber(number), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    for serial in sorted(serials):
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
        builder = builder.add_revoked_certificate(entry.build())
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def number_of(pem: bytes) -> int:
    """Return the number of a list; raises UsageError if it is no list of ours."""
    try:
        extensions = x509.load_pem_x509_crl(pem).extensions
        return extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except (ValueError, x509.ExtensionNotFound) as error:
        raise UsageError(f"expected a CRL in PEM form: {error}") from error
