"""Checks of certificates, keys and authorities: whether they are right, and for how long."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge_client.kit import read_kit
from submerge_client.uplink.tls import NodeIdentity, Tls, identity
from submerge_files.console.units import in_words, moment
from submerge_operate.doctor.findings import DAY_S, Finding, fails, ok, warning

SOON_S = 30 * DAY_S  # time before a certificate's end to warn from; at most a quarter of its life
CREDENTIALS = Path("/run/credentials")  # where systemd puts a unit's credentials by default


class ShownCertificate(NamedTuple):
    setting: str
    host: str
    tls: Tls | None  # None: no TLS
    as_node: bool = True  # its name has to be the node's
    # others connect here, so it has to contain the name or address that they use
    serves: bool = False


def check_certificates(
    links: list[ShownCertificate],
    node: str,
    now: float,
    *,
    kit: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Finding]:
    """Check the certificates of a program's links, each file once; `kit`: as configured."""
    if kit is not None and all(link.tls is None or link.tls.kit is None for link in links):
        yield warning(
            "certificate",
            f"kit {kit.name} is used by no link",
            "remove insecure (or a link's ca, cert and key), and use grpcs:// or mqtts://",
        )
    for link in _by_files(links):
        if link.tls is None:
            yield _bare(link)
        else:
            yield from _check_link(link, link.tls, node, now, environ)


def _by_files(links: list[ShownCertificate]) -> list[ShownCertificate]:
    """Combine links that show the same certificate, under all their settings."""
    found: dict[Tls | str, ShownCertificate] = {}
    for link in links:
        first = found.setdefault(link.tls or link.setting, link)
        if first is not link:
            found[link.tls or link.setting] = first._replace(
                setting=f"{first.setting}, {link.setting}",
                as_node=first.as_node or link.as_node,
                serves=first.serves or link.serves,
            )
    return list(found.values())


def ending(what: str, begins: float, until: float, now: float, *, hint: str) -> Finding:
    if now < begins:
        message = f"{what} is valid only from {moment(begins)}, but here it is {moment(now)}"
        return fails("certificate", message, "set the clock: timedatectl status")
    if now >= until:
        return fails("certificate", f"{what} ended on {moment(until)}", hint)
    message = f"{what}: {in_words(until - now)} left, until {moment(until)}"
    if until - now < min(SOON_S, (until - begins) / 4):
        return warning("certificate", message, hint)
    return ok("certificate", message)


def _bare(link: ShownCertificate) -> Finding:
    if link.host in ("localhost", "127.0.0.1", "::1"):
        return ok("certificate", f"{link.setting}: no TLS, but only within this machine")
    return warning(
        "certificate",
        f"{link.setting}: no TLS: others on the network can read and forge messages",
        "use grpcs:// or mqtts://, and a kit (submerge pki issue)",
    )


def _check_link(
    link: ShownCertificate, tls: Tls, node: str, now: float, environ: Mapping[str, str]
) -> Iterator[Finding]:
    try:
        context = tls.context()
        found = identity(tls) if tls.proves and link.as_node else None
    except UsageError as error:
        # Not readable by this user, missing, another's key, or not signed by its authority.
        yield fails(
            "certificate",
            f"{link.setting}: {error}",
            f"can this user read it? copy the kit of {node} here: submerge pki issue, or renew",
        )
        return
    if found is not None:
        yield from _own(link, found, tls, node, _renewal(tls, node, environ), now)
    elif not tls.proves:
        yield warning(
            "certificate",
            f"{link.setting}: shows no certificate, so others cannot check its name",
            "configure a kit, or cert and key",
        )
    if tls.proves:
        yield from _key(tls.kit or tls.key)
    if tls.kit is not None or tls.ca is not None:
        yield from _authorities(context, now)


def _own(
    link: ShownCertificate, found: NodeIdentity, tls: Tls, node: str, hint: str, now: float
) -> Iterator[Finding]:
    path = tls.kit or tls.cert
    if found.node != node:
        yield fails(
            "certificate",
            f"{path} is the certificate of {found.node}, but this node is {node}",
            f'copy the kit of {node} here, or set node = "{found.node}"',
        )
        return
    if tls.kit is not None and (head := read_kit(tls.kit).node) != found.node:
        yield warning(
            "certificate",
            f"{path} is for {head} by its head, but holds the certificate of {found.node}",
            "the file was edited: copy it again",
        )
    name = "" if path is None else path.name
    yield ending(f"{name} of {found.node}", found.begins, found.until, now, hint=hint)
    if not link.serves:
        return
    if found.permission is not None and found.permission.role != "aggregator":
        yield fails(
            "certificate",
            f"{link.setting}: its role is {found.permission.role}, so children will refuse it",
            f"submerge pki renew {node} --role aggregator",
        )
    elif found.permission is None and not found.hosts:
        yield fails(
            "certificate",
            f"{link.setting}: the certificate names no host, so children will refuse it",
            f"submerge pki renew {node} --host NAME_OR_IP, for each that children use",
        )


def _renewal(tls: Tls, node: str, environ: Mapping[str, str]) -> str:
    """Return how to renew the certificate, and whether the program needs a restart."""
    if tls.kit is None:
        return "renew it at its authority; files are read at the next connection"
    kit = tls.kit.absolute()
    given = environ.get("CREDENTIALS_DIRECTORY")
    if kit.is_relative_to(CREDENTIALS) or (given and kit.is_relative_to(given)):
        return (
            f"submerge pki renew {node}, copy the kit to the path in LoadCredential=, and restart"
            " the unit: it uses a copy"
        )
    return (
        f"submerge pki renew {node}, and copy the kit here: it is read at the next connection;"
        " only a unit with LoadCredential= uses a copy and needs a restart"
    )


def _key(path: Path | None) -> Iterator[Finding]:
    """Check that others on this machine cannot read a key."""
    if path is not None and (mode := path.stat().st_mode & 0o777) & 0o077:
        yield warning(
            "certificate",
            f"{path} has mode {mode:04o}: others on this machine can act as this node",
            f"chmod 600 {path}",
        )


def _authorities(context: ssl.SSLContext, now: float) -> Iterator[Finding]:
    """Check trusted authorities; yield nothing if all are valid."""
    for each in context.get_ca_certs():
        begins, until = (
            float(ssl.cert_time_to_seconds(str(each[when]))) for when in ("notBefore", "notAfter")
        )
        finding = ending(
            "the authority's own certificate",
            *(begins, until, now),
            hint="submerge pki init in a new directory, and new kits for all",
        )
        if finding.state != "ok":
            yield finding
