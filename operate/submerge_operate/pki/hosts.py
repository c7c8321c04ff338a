"""Names and addresses of servers, as certificates have them."""

from __future__ import annotations

import ipaddress
import re

from cryptography import x509

from submerge import UsageError
from submerge.protocol.names import SERVER_DOMAIN

LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
HOST = re.compile(rf"({LABEL}\.)*(?!\d+$){LABEL}")
"""A name in the DNS or of a container. Its last part is not a number, unlike an address's."""

LONGEST = 253
"""Characters of a DNS name."""


def host_of(text: str) -> str:
    """Return a name or an address in its normal form.

    Raises UsageError if it is neither, for example with a port.

    Examples
    --------
    >>> host_of("Root.Example.org"), host_of("FE80::0001")
    ('root.example.org', 'fe80::1')
    """
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
    """Return hosts and URIs as a certificate's extension."""
    addresses = ((host, _address(host)) for host in hosts)
    names: list[x509.GeneralName] = [
        x509.DNSName(host) if ip is None else x509.IPAddress(ip) for host, ip in addresses
    ]
    return x509.SubjectAlternativeName(names + [x509.UniformResourceIdentifier(u) for u in uris])


def hosts_in(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the hosts that a certificate is valid for; none for a client's.

    The name under which an aggregator's children check it is not one of them.
    """
    names = _names_in(certificate)
    hosts = (str(each.value) for each in names if isinstance(each, x509.DNSName | x509.IPAddress))
    return tuple(host for host in hosts if not host.endswith(SERVER_DOMAIN))


def uris_in(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the URIs in a certificate."""
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
