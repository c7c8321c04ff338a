"""A kit as a file: what one node needs to prove its name, in one text.

A few lines of head for people, which PEM readers skip, then the node's key, its certificate, and
the authority's. Devices read it with `submerge_client.kit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

from submerge import UsageError
from submerge.protocol.permission import Permission
from submerge_client.kit import HEAD, read_kit
from submerge_operate.pki.authority import Authority, Certified, fleet_of, serial_of
from submerge_operate.pki.hosts import hosts_in, uris_in
from submerge_operate.pki.issued import Entry, timestamp


class KitContents(NamedTuple):
    """A kit's certificate, and the fleet and the end of its authority."""

    entry: Entry
    fleet: str
    ends: datetime


def text_of(certified: Certified, authority: Authority) -> bytes:
    """Return a kit's text."""
    head = (
        HEAD,
        f"node: {certified.node}",
        f"fleet: {authority.fleet}",
        f"until: {timestamp(certified.until)}",
        *_allowed(certified.permission),
    )
    text = "".join(f"{line}\n" for line in head).encode()
    return text + certified.key + certified.certificate + authority.pem


def read_contents(path: Path) -> KitContents:
    """Return the contents of a kit whose parts belong together.

    Raises UsageError if it cannot be read or is not a kit, or its key or authority is of another
    certificate.
    """
    kit = read_kit(path)
    try:
        key = serialization.load_pem_private_key(kit.key, None)
        own = x509.load_pem_x509_certificate(kit.cert)
        authority = x509.load_pem_x509_certificate(kit.authority)
        (named,) = own.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except (ValueError, TypeError) as error:
        raise _unfit(path, str(error)) from error
    if key.public_key() != own.public_key():
        raise _unfit(path, "a key that is not its certificate's")
    try:
        own.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise _unfit(path, "an authority that has not signed its certificate") from error
    node = str(named.value)
    if node != kit.node:
        raise _unfit(path, f"a certificate of {node}, but a head of {kit.node}")
    until = own.not_valid_after_utc
    lasts = until - own.not_valid_before_utc
    try:
        permission = Permission.of(uris_in(own))
    except UsageError as error:
        raise _unfit(path, str(error)) from error
    entry = Entry(node, hosts_in(own), serial_of(own), until, lasts, permission)
    return KitContents(entry, fleet_of(authority), authority.not_valid_after_utc)


def _allowed(permission: Permission | None) -> Iterator[str]:
    """Yield lines of the head on role and groups; a kit without a role has none."""
    if permission is not None:
        yield f"role: {permission.role}"
        yield f"groups: {' '.join(permission.groups) or 'all'}"


def _unfit(path: Path, got: str) -> UsageError:
    return UsageError(f"expected a kit, as `submerge pki issue` writes it, got {got} in {path}")
