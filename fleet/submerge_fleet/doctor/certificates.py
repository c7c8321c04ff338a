"""Papers: whether certificates, keys and authorities are what a program needs, and for how long."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge_client.kit import read_kit
from submerge_client.uplink.identity import NodeIdentity, identity
from submerge_client.uplink.tls import Tls
from submerge_fleet.console.units import in_words, moment
from submerge_fleet.doctor.findings import DAY_S, Finding, fails, ok, warning

SOON_S = 30 * DAY_S
"""Before its end somebody has to act; of a short life, the last quarter."""

CREDENTIALS = Path("/run/credentials")
"""Where systemd puts a unit's copies, if it does not say where."""


class ShownCertificate(NamedTuple):
    """What one link shows, and to whom.

    Attributes
    ----------
    setting : str
        Where it is configured.
    host : str
        Of the other end, or where it listens.
    tls : Tls or None
        None: nothing protects it.
    as_node : bool
        It is shown as a node: its name has to be the node's.
    serves : bool
        Others come here, by a name or address that it has to contain.
    """

    setting: str
    host: str
    tls: Tls | None
    as_node: bool = True
    serves: bool = False


def check_certificates(
    links: list[ShownCertificate],
    node: str,
    now: float,
    *,
    kit: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Finding]:
    """Look at what a program's links show, each file once; `kit`: the one that is configured."""
    if kit is not None and all(link.tls is None or link.tls.kit is None for link in links):
        yield warning(
            "certificate",
            f"kit {kit.name} is used by no link",
            "take out insecure (or a link's own ca, cert and key), and say grpcs:// or mqtts://",
        )
    for link in _by_files(links):
        if link.tls is None:
            yield _bare(link)
        else:
            yield from _looked_at(link, link.tls, node, now, environ)


def _by_files(links: list[ShownCertificate]) -> list[ShownCertificate]:
    """Several links that show the same are one, under all their settings."""
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
    """Return whether a certificate holds, and for how long."""
    if now < begins:
        said = f"{what} holds only from {moment(begins)}, and here it is {moment(now)}"
        return fails("certificate", said, "set the clock: timedatectl status")
    if now >= until:
        return fails("certificate", f"{what} ended on {moment(until)}", hint)
    said = f"{what}: {in_words(until - now)} left, until {moment(until)}"
    if until - now < min(SOON_S, (until - begins) / 4):
        return warning("certificate", said, hint)
    return ok("certificate", said)


def _bare(link: ShownCertificate) -> Finding:
    if link.host in ("localhost", "127.0.0.1", "::1"):
        return ok("certificate", f"{link.setting}: no TLS, and no further than this machine")
    return warning(
        "certificate",
        f"{link.setting}: no TLS: whoever is on the way can read and forge",
        "use grpcs:// or mqtts://, and a kit (submerge pki issue)",
    )


def _looked_at(
    link: ShownCertificate, tls: Tls, node: str, now: float, environ: Mapping[str, str]
) -> Iterator[Finding]:
    try:
        context = tls.context()
        found = identity(tls) if tls.proves and link.as_node else None
    except UsageError as error:
        # Readable by none but another user, missing, another's key, not signed by its authority.
        yield fails(
            "certificate",
            f"{link.setting}: {error}",
            f"can this user read it? bring the kit of {node} here: submerge pki issue, or renew",
        )
        return
    if found is not None:
        yield from _own(link, found, tls, node, _renewal(tls, node, environ), now)
    elif not tls.proves:
        yield warning(
            "certificate",
            f"{link.setting}: shows no certificate of its own: others take its word for who it is",
            "name a kit, or cert and key",
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
            f"{path} is the certificate of {found.node}, and this node calls itself {node}",
            f'bring the kit of {node} here, or say node = "{found.node}"',
        )
        return
    if tls.kit is not None and (said := read_kit(tls.kit).node) != found.node:
        yield warning(
            "certificate",
            f"{path} says that it is {said}'s, and holds the certificate of {found.node}",
            "somebody has edited it: fetch it again",
        )
    name = "" if path is None else path.name
    yield ending(f"{name} of {found.node}", found.begins, found.until, now, hint=hint)
    if link.serves and not found.hosts:
        yield fails(
            "certificate",
            f"{link.setting}: the certificate names no host: nobody who checks it comes here",
            f"submerge pki renew {node} --host NAME_OR_IP, for each by which children come here",
        )


def _renewal(tls: Tls, node: str, environ: Mapping[str, str]) -> str:
    """How a new one comes here, and whether the program has to be started again for it."""
    if tls.kit is None:
        return "have its authority renew it; files are read at the next connection"
    kit = tls.kit.absolute()
    given = environ.get("CREDENTIALS_DIRECTORY")
    if kit.is_relative_to(CREDENTIALS) or (given and kit.is_relative_to(given)):
        return (
            f"submerge pki renew {node}, bring the kit to where LoadCredential= says, and restart"
            " the unit: it has a copy"
        )
    return (
        f"submerge pki renew {node}, and bring the kit here: it is read at the next connection;"
        " only a unit with LoadCredential= has a copy, and needs a restart"
    )


def _key(path: Path | None) -> Iterator[Finding]:
    """Whether others on this machine can read a key."""
    if path is not None and (mode := path.stat().st_mode & 0o777) & 0o077:
        yield warning(
            "certificate",
            f"{path} has mode {mode:04o}: others on this machine can be this node",
            f"chmod 600 {path}",
        )


def _authorities(context: ssl.SSLContext, now: float) -> Iterator[Finding]:
    """Whether those whom it trusts still hold; nothing where all is well."""
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
