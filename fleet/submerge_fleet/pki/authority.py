"""Authority: who signs a fleet's certificates, and what stands in them. Values in, PEM out.

Nothing here reads a clock or a file: `now` is an argument. Keys are ECDSA on P-256: small on
a device, and known to all that check them, which are OpenSSL as strict as Python 3.13 has it
(VERIFY_X509_STRICT), BoringSSL (gRPC) and Mosquitto. Hence the rules of this file:

1. The authority signs nodes and nothing else: CA, path length 0, no key usage but signing.
2. A node's common name is the node. What it serves under stands among its alternative names.
3. A node without such names is a client: its certificate does not pass as a server's.
4. Each certificate names its own key and its signer's; what limits it is marked critical.
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
from submerge.protocol.settings import check_names
from submerge_fleet.pki.hosts import alternative_names

BEHIND = timedelta(days=1)
"""How far a device's clock may be behind. A Pi has no battery: it wakes up with the time at
which it was last shut down, and may reach its parent before the network has set its clock."""

USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)
"""Of a key; a certificate says of each whether it is meant."""


class Certified(NamedTuple):
    """A certificate that has been made, and the key to it.

    Attributes
    ----------
    node : str
        The common name.
    hosts : tuple of str
        Names and addresses that it may serve under; none for a client's.
    serial : str
        In hexadecimal digits.
    until : datetime
        When it ends, at most when its authority does.
    key, certificate : bytes
        PEM.
    """

    node: str
    hosts: tuple[str, ...]
    serial: str
    until: datetime
    key: bytes
    certificate: bytes


@dataclass(frozen=True)
class Authority:
    """A certificate that nodes trust, and the key that signs theirs."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def founded(cls, fleet: str, *, now: datetime, lasts: timedelta) -> Authority:
        """Return a new authority of a fleet."""
        check_names(fleet)
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, fleet),
                # The space keeps it apart from every node: no name of one may have any.
                x509.NameAttribute(NameOID.COMMON_NAME, "submerge authority"),
            ]
        )
        usage = _usage("key_cert_sign", "crl_sign")
        certificate = (
            _begun(name, key, now=now - BEHIND, until=now + lasts)
            .issuer_name(name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(_signer(key), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def read(cls, certificate: bytes, key: bytes, passphrase: bytes | None) -> Authority:
        """Return the authority that PEM files hold.

        Raises
        ------
        UsageError
            If they hold none, or not one, or the passphrase is not the key's.
        """
        found = certificate_of(certificate)
        try:
            secret = serialization.load_pem_private_key(key, passphrase)
        except TypeError:
            if passphrase is None:
                raise UsageError("the authority's key is encrypted: --passphrase-file") from None
            raise UsageError(
                "the authority's key is not encrypted: leave out --passphrase-file"
            ) from None
        except (ValueError, UnsupportedAlgorithm) as error:
            wrong = "" if passphrase is None else ", or the passphrase of another"
            raise UsageError(f"expected the authority's key in PEM form{wrong}: {error}") from error
        if not isinstance(secret, ec.EllipticCurvePrivateKey):
            raise UsageError("expected an ECDSA key, as `submerge pki init` makes it")
        if secret.public_key() != found.public_key():
            raise UsageError("the authority's key and its certificate are of two authorities")
        return cls(found, secret)

    @property
    def fleet(self) -> str:
        """Whose nodes it signs."""
        return fleet_of(self.certificate)

    @property
    def until(self) -> datetime:
        """When it ends, and with it all that it has signed."""
        return self.certificate.not_valid_after_utc

    @property
    def pem(self) -> bytes:
        """The certificate, for all."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self, passphrase: bytes | None) -> bytes:
        """Return the key, for nobody; encrypted if there is a passphrase."""
        return _key_pem(self.key, passphrase)

    def certify(
        self, node: str, hosts: tuple[str, ...], *, now: datetime, lasts: timedelta
    ) -> Certified:
        """Return a new key of a node, and a certificate for it.

        Parameters
        ----------
        node : str
            Its name.
        hosts : tuple of str
            Where it serves (`host_of` each); none for a client.
        now : datetime
            From when `lasts` is counted. The certificate itself begins a day earlier, but
            not before the authority: such a chain would hold for nobody.
        lasts : timedelta
            How long; less if the authority ends before.

        Raises
        ------
        UsageError
            If the authority does not hold now.
        """
        check_names(node)
        begun = self.certificate.not_valid_before_utc
        if not begun <= now < self.until:
            raise UsageError(
                f"expected an authority that holds, got one from {begun:%Y-%m-%d} to"
                f" {self.until:%Y-%m-%d}, and this clock says {now:%Y-%m-%d %H:%M}:"
                " set the clock, or make a new authority with `submerge pki init`"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        until = min(now + lasts, self.until)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node)])
        roles = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if hosts:
            roles.append(ExtendedKeyUsageOID.SERVER_AUTH)  # for its children
        builder = (
            _begun(name, key, now=max(now - BEHIND, begun), until=until)
            .issuer_name(self.certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage("digital_signature"), critical=True)
            .add_extension(x509.ExtendedKeyUsage(roles), critical=False)
            .add_extension(_signer(self.key), critical=False)
        )
        if hosts:
            builder = builder.add_extension(alternative_names(hosts), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        return Certified(
            node, hosts, serial_of(certificate), until, key=_key_pem(key, None), certificate=pem
        )


def certificate_of(pem: bytes) -> x509.Certificate:
    """Return an authority's certificate, without its key."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise UsageError(f"expected the authority's certificate in PEM form: {error}") from error


def fleet_of(authority: x509.Certificate) -> str:
    """Return whose nodes an authority signs."""
    names = authority.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if not names:
        raise UsageError("expected an authority that `submerge pki init` has made, got another")
    return str(names[0].value)


def serial_of(certificate: x509.Certificate) -> str:
    """Return a certificate's number, as OpenSSL writes it."""
    return f"{certificate.serial_number:040X}"


def _begun(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, *, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    """Begin a certificate: whose, of which key, from when to when."""
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
