"""Kits whose certificates name a role and groups; built beside the shipped authority.

The certificate that the authority makes is signed once more, with more alternative names.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from submerge.protocol.names import server_name
from submerge.protocol.permission import Permission
from submerge_fleet.pki.authority import Authority
from submerge_fleet.pki.hosts import host_of
from submerge_fleet.pki.kit_file import text_of


def role_kit(
    authority: Authority, folder: Path, node: str, permission: Permission | None, *hosts: str
) -> tuple[Path, int]:
    """Write a node's kit, in place of one that is there; return it, and its serial number.

    permission : None for a kit as they were made before there were roles
    """
    certified = authority.certify(
        node, tuple(map(host_of, hosts)), now=datetime.now(UTC), lasts=timedelta(hours=1)
    )
    like = x509.load_pem_x509_certificate(certified.certificate)
    builder = (
        x509.CertificateBuilder()
        .subject_name(like.subject)
        .issuer_name(like.issuer)
        .public_key(like.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(like.not_valid_before_utc)
        .not_valid_after(like.not_valid_after_utc)
    )
    more: list[x509.GeneralName] = []
    for each in like.extensions:
        if isinstance(each.value, x509.SubjectAlternativeName):
            more += each.value
            continue
        builder = builder.add_extension(each.value, critical=each.critical)
    if permission is not None:
        more += map(x509.UniformResourceIdentifier, permission.uris)
        if hosts and x509.DNSName(server_name(node)) not in more:
            more.append(x509.DNSName(server_name(node)))
    if more:
        builder = builder.add_extension(x509.SubjectAlternativeName(more), critical=False)
    signed = builder.sign(authority.key, hashes.SHA256())
    made = certified._replace(certificate=signed.public_bytes(Encoding.PEM))
    path, new = folder / f"{node}.kit", folder / f"{node}.new"
    new.write_bytes(text_of(made, authority))
    new.replace(path)
    return path, signed.serial_number
