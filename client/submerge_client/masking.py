"""KitMasking: keys for masked sums, each signed by the kit of a client of the group."""

# Nobody between can put a key of its own in the place of another's. What that leaves: who has the
# authority's key, or the kits of clients, can be many of the participants.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID

from submerge import PeerError, UsageError
from submerge.jobs.masks import Masking
from submerge.protocol.permission import Permission
from submerge_client.uplink.tls import Tls

PURPOSE = b"submerge: a key for masked sums, 1"
LENGTH = 32  # bytes of a key; signature and certificate follow, each behind its length


class KitMasking(Masking):
    """The keys of a node, by the files with which it proves its name to its parent."""

    def __init__(self, node: str, group: str, tls: Tls) -> None:
        self._node, self._group, self._tls = node, group, tls

    def offer(self, job: str) -> tuple[X25519PrivateKey, bytes]:
        """Return a new key, and its public part with signature and certificate."""
        _, key, cert = self._tls.contents()
        signer = load_pem_private_key(key or b"", None)
        if not isinstance(signer, ec.EllipticCurvePrivateKey):
            raise UsageError("sums are masked by kits as `submerge pki issue` makes them: by ECDSA")
        secret = X25519PrivateKey.generate()
        public = secret.public_key().public_bytes_raw()
        signature = signer.sign(self._signed(job, public), ec.ECDSA(hashes.SHA256()))
        der = x509.load_pem_x509_certificate(cert or b"").public_bytes(Encoding.DER)
        parts = (len(each).to_bytes(2, "little") + each for each in (signature, der))
        return secret, b"".join((public, *parts))

    def agree(self, secret: Any, offers: Sequence[bytes], job: str) -> Mapping[str, bytes]:
        authority, _, _ = self._tls.contents()
        trusted = x509.load_pem_x509_certificates(authority or b"")
        mine, found = secret.public_key().public_bytes_raw(), dict[str, bytes]()
        for offer in offers:
            node, public = self._checked(offer, trusted, job)
            if node == self._node:
                continue
            if node in found:
                raise PeerError(f"{node} has two keys", kind="name")
            info = b"\n".join((self._signed(job, b""), *sorted((mine, public))))
            derive = HKDF(hashes.SHA256(), LENGTH, None, info)
            found[node] = derive.derive(secret.exchange(X25519PublicKey.from_public_bytes(public)))
        return found

    def stream(self, common: bytes, turn: int, length: int) -> bytes:
        # The first four bytes count blocks.
        nonce = bytes(4) + turn.to_bytes(12, "little")
        return Cipher(ChaCha20(common, nonce), None).encryptor().update(bytes(length))

    def _checked(self, offer: bytes, trusted: Sequence[Any], job: str) -> tuple[str, bytes]:
        """Return whose key it is, and the key."""
        public, name = offer[:LENGTH], "a node"
        signature, rest = _part(offer[LENGTH:])
        try:
            certificate = x509.load_der_x509_certificate(_part(rest)[0])
            [named] = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            name = str(named.value)
            if not any(_has_issued(each, certificate) for each in trusted):
                raise ValueError("no authority of this node has issued its certificate")
            key: Any = certificate.public_key()  # TypeError if it is not ECDSA
            key.verify(signature, self._signed(job, public), ec.ECDSA(hashes.SHA256()))
            self._check_allowed(certificate)
        except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound, UsageError) as why:
            said = f"the key of {name[:80]} for masked sums is false: {why!r}"
            raise PeerError(said, kind="name") from why
        return name, public

    def _check_allowed(self, certificate: x509.Certificate) -> None:
        """Refuse (ValueError) what is no client of the group now."""
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        permission = Permission.of(names.get_values_for_type(x509.UniformResourceIdentifier))
        now = datetime.now(UTC)
        if permission is None or permission.role != "client":
            raise ValueError("its certificate is not that of a client")
        if why := permission.objection_to(self._group):
            raise ValueError(why)
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            raise ValueError("its certificate is not valid now")

    def _signed(self, job: str, public: bytes) -> bytes:
        # Names have no line breaks.
        return b"\n".join((PURPOSE, job.encode(), self._group.encode(), public))


def _part(body: bytes) -> tuple[bytes, bytes]:
    end = 2 + int.from_bytes(body[:2], "little")
    return body[2:end], body[end:]


def _has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    with suppress(ValueError, TypeError, InvalidSignature):
        certificate.verify_directly_issued_by(authority)
        return True
    return False
