"""The certificate revocation list (CRL) for brokers: signed by the authority. Values in, PEM out.

Mosquitto reads it (`crlfile`), and refuses every certificate once its CRL has expired. Hence the
next update is a day after the authority's own end: a list that is not rewritten shuts out no node.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from submerge import UsageError
from submerge_operate.pki.authority import BEHIND, Authority

AFTER = timedelta(days=1)
"""How long it outlives its authority."""


def crl_of(authority: Authority, serials: Iterable[int], *, now: datetime, number: int) -> bytes:
    """Return a list of serial numbers, in PEM form; `number` rises with each list.

    Raises UsageError if the authority has ended: its lists and its certificates are worth nothing.
    """
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
