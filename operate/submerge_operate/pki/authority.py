"""The authority that signs a fleet's certificates, and their contents. Values in, PEM out.

Nothing here reads a clock or a file: `now` is an argument. Keys are ECDSA on P-256: small on a
device, and supported by all that check them: OpenSSL, as strict as Python 3.13 makes it
(VERIFY_X509_STRICT), BoringSSL (gRPC) and Mosquitto. Hence the rules of this file:

1. The authority signs only nodes: CA, path length 0, no key usage but signing.
2. The common name is the node's name. Names and addresses of a server are alternative names, and
   so are role and groups, as URIs (`Permission.uris`).
3. A certificate is valid for a server only if it has hosts, or is an aggregator's. That one has
   also the name by which children know their parent (`names.server_name`).
4. Each certificate has its key's and its signer's identifier; limits are marked critical.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from submerge import UsageError
from submerge.protocol.names import server_name
from submerge.protocol.permission import Permission
from submerge.protocol.settings import check_names
from submerge_operate.pki.hosts import alternative_names

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
        """Return a new authority of a fleet."""
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
        """Return the authority in PEM files.

        Raises UsageError if they are not one authority's, or the passphrase is wrong.
        """
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
        """The fleet whose nodes it signs."""
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
    ) -> Certified:
        """Return a new key and certificate of a node.

        hosts : Names and addresses of a server (`host_of` each); none for a client.
        permission : Role and groups; None for a certificate as they were before there were roles.
        now : The start of `lasts`. The certificate begins a day earlier, but not before the
            authority: such a chain would not be valid.
        lasts : How long it is valid; less if the authority ends before.

        Raises UsageError if the authority is not valid now.
        """
        check_names(node)
        begins = self.certificate.not_valid_before_utc
        if not begins <= now < self.until:
            raise UsageError(
                f"expected a valid authority, got one from {begins:%Y-%m-%d} to"
                f" {self.until:%Y-%m-%d}, and this clock shows {now:%Y-%m-%d %H:%M}:"
                " set the clock, or make a new authority with `submerge pki init`"
            )
        key = ec.generate_private_key(ec.SECP256R1())
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
    """Return the fleet whose nodes an authority signs."""
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
