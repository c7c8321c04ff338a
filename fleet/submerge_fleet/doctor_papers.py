"""Papers: whether certificates, keys and authorities are what a program needs, and for how long."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge_client.kit import read_kit
from submerge_client.uplink.identity import Identity, identity
from submerge_client.uplink.tls import Tls
from submerge_fleet.doctor_findings import DAY_S, Finding, date_of, fails, in_words, ok, warning

SOON_S = 30 * DAY_S
"""Before its end somebody has to act; of a short life, the last quarter."""

RENEW = "submerge pki renew {node}, bring the kit here, and restart"


class Shown(NamedTuple):
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


def papers(links: list[Shown], node: str, now: float) -> Iterator[Finding]:
    """Look at what a program's links show, each file once."""
    seen: set[tuple[Tls, bool]] = set()
    for link in links:
        if link.tls is None:
            yield _bare(link)
        elif (link.tls, link.serves) not in seen:
            seen.add((link.tls, link.serves))
            yield from _looked_at(link, link.tls, node, now)


def ending(what: str, begins: float, until: float, now: float, *, mend: str) -> Finding:
    """Return whether a certificate holds, and for how long."""
    if now < begins:
        said = f"{what} holds only from {date_of(begins)}, and here it is {date_of(now)}"
        return fails("certificate", said, "set the clock: timedatectl status")
    if now >= until:
        return fails("certificate", f"{what} ended on {date_of(until)}", mend)
    said = f"{what}: {in_words(until - now)} left, until {date_of(until)}"
    if until - now < min(SOON_S, (until - begins) / 4):
        return warning("certificate", said, mend)
    return ok("certificate", said)


def _bare(link: Shown) -> Finding:
    if link.host in ("localhost", "127.0.0.1", "::1"):
        return ok("certificate", f"{link.setting}: no TLS, and no further than this machine")
    return warning(
        "certificate",
        f"{link.setting}: no TLS: whoever is on the way can read and forge",
        "use grpcs:// or mqtts://, and a kit (submerge pki issue)",
    )


def _looked_at(link: Shown, tls: Tls, node: str, now: float) -> Iterator[Finding]:
    try:
        context = tls.context()
        found = identity(tls) if tls.proves and link.as_node else None
    except UsageError as error:
        # Readable by none but another user, missing, another's key, not signed by its authority.
        yield fails(
            "certificate",
            f"{link.setting}: {error}",
            f"submerge pki issue {node}, and bring the kit here; can this user read it?",
        )
        return
    if found is not None:
        yield from _own(link, found, tls, node, now)
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


def _own(link: Shown, found: Identity, tls: Tls, node: str, now: float) -> Iterator[Finding]:
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
    mend = RENEW.format(node=node)
    name = "" if path is None else path.name
    yield ending(f"{name} of {found.node}", found.begins, found.until, now, mend=mend)
    if link.serves and not found.hosts:
        yield fails(
            "certificate",
            f"{link.setting}: the certificate names no host: nobody who checks it comes here",
            f"submerge pki issue {node} --host NAME_OR_IP, as children call this machine",
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
            mend="submerge pki init in a new directory, and new kits for all",
        )
        if finding.state != "ok":
            yield finding
