"""Shared parts of the commands that make kits: options, issuing, output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from submerge.errors import UsageError
from submerge.protocol.names import NAME_RULE, is_name
from submerge.protocol.permission import ROLES, Permission, Role
from submerge_files.console.options import FILE, FOLDER, default_option, json_option
from submerge_files.console.progress import advancing
from submerge_files.console.units import ago, duration, span_text
from submerge_operate.pki.issued import Entry, check_new, groups_of, role_of, timestamp

if TYPE_CHECKING:
    from submerge_operate.pki.directory import PkiDirectory

SERVERS: tuple[Role, ...] = ("aggregator", "reader")
"""Roles of kits that may have hosts: a reader with hosts is a broker."""

ROLE = click.option(
    "--role",
    type=click.Choice(ROLES),
    help="What the node may do: client sends its own reports; aggregator has children; reader"
    " receives models (a dashboard, or with --host a broker); operator gives orders, too.",
)
GROUP = click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME",
    help="A group in which it may do so; may be repeated.  [default: all groups]",
)


def permission_of(role: str, groups: Sequence[str], *, hosts: Sequence[str]) -> Permission:
    """Return a permission; without a role, an aggregator's if there are hosts, else a client's."""
    role = role or ("aggregator" if hosts else "client")
    named = next((each for each in ROLES if each == role), None)
    if named is None:
        raise UsageError(f"expected a role, {', '.join(ROLES)}, got {role[:80]!r}")
    for group in groups:
        if not is_name(group):
            raise UsageError(f"a group's name is {NAME_RULE}, got {group[:80]!r}")
    return Permission(named, tuple(dict.fromkeys(groups)))


def renewed(
    before: Permission | None, role: str | None, groups: Sequence[str], *, every_group: bool
) -> Permission | None:
    """Return the permission of a new kit in place of an older one; both are kept by default."""
    if groups and every_group:
        raise UsageError("expected --group or --every-group, got both")
    if role is None and before is None:
        if groups or every_group:
            raise UsageError("a kit without a role has no groups: add --role")
        return None
    kept = () if before is None or every_group else before.groups
    role = role or (before.role if before is not None else "")
    return permission_of(role, groups or kept, hosts=())


def check_serving(node: str, hosts: Sequence[str], permission: Permission | None) -> None:
    """Refuse hosts of a node whose role is not a server's."""
    if hosts and permission is not None and permission.role not in SERVERS:
        raise UsageError(
            f"{node}: only {' and '.join(f'role {each}' for each in SERVERS)} have hosts (a broker"
            f" is a reader with hosts), got role {permission.role} and {' '.join(hosts)}"
        )


PKI = Path("pki")

SHORTEST_S, LONGEST_S = 1.0, 100 * 365 * 86400.0

LONGEST_PASSPHRASE = 1000
"""Bytes; OpenSSL accepts little more."""


def span(text: str) -> timedelta:
    """Return the validity of a certificate: `90d`, `1y`, `10m`."""
    seconds = duration(text)
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise click.BadParameter(f"expected from {span_text(SHORTEST_S)} to 100y, got {text!r}")
    return timedelta(seconds=int(seconds))


DIRECTORY = default_option("--dir", PKI, "The authority's directory.", "directory", type=FOLDER)
PASSPHRASE = click.option(
    "--passphrase-file",
    type=FILE,
    help="The passphrase of the authority's key.  [default: not encrypted]",
)
LASTS = default_option(
    "--lasts",
    "90d",
    "How long it is valid: 90d, 1y, 10m (minutes).",
    type=span,
    metavar="DURATION",
)
AS_JSON = json_option()


class KitRequest(NamedTuple):
    """A kit to make: the node, its hosts, its validity, its role and groups."""

    node: str
    hosts: tuple[str, ...]
    lasts: timedelta
    permission: Permission | None = None


def now() -> datetime:
    """Return the time in whole seconds, as in certificates."""
    return datetime.now(UTC).replace(microsecond=0)


def open_pki(directory: Path, passphrase_file: Path | None = None) -> PkiDirectory:
    """Return a pki directory; only now is the package for certificates imported."""
    from submerge_operate.pki.directory import PkiDirectory

    return PkiDirectory(directory, _passphrase(passphrase_file))


def make(
    pki: PkiDirectory,
    wanted: Sequence[KitRequest],
    entries: dict[str, Entry],
    *,
    at: datetime,
) -> list[Entry]:
    """Write kits, and add them to a record (PkiDirectory.issuing); show progress on a terminal."""
    # All names are checked before anything is written.
    if not wanted:
        return []
    # A kit that exists may keep its name.
    check_new((each.node for each in wanted if each.node not in entries), entries)
    revoked = pki.revocations()
    for each in wanted:
        check_serving(each.node, each.hosts, each.permission)
        if each.node in revoked.nodes:
            raise UsageError(
                f"{each.node} is revoked: submerge pki renew {each.node} --reinstate makes a kit"
            )
    authority = pki.authority()
    made = []
    with advancing("kits", len(wanted)) as advance:
        for node, hosts, long, permission in wanted:
            certified = authority.certify(node, hosts, permission, now=at, lasts=long)
            pki.put(certified, authority)
            past = entries[node].earlier(at) if node in entries else ()
            entry = Entry(node, hosts, certified.serial, certified.until, long, permission, past)
            entries[node] = entry
            made.append(entry)
            advance(1)
    # Also in a directory from before there was a CRL.
    pki.revoke(revoked, authority, entries, at=at)
    if any(entry.until < at + entry.lasts for entry in made):
        click.echo(
            f"shorter than requested: the authority itself ends on {timestamp(authority.until)}",
            err=True,
        )
    return made


def reinstate(
    pki: PkiDirectory, nodes: Iterable[str], entries: Mapping[str, Entry], *, at: datetime
) -> None:
    """Take nodes off the list of what is revoked; certificates that they were given stay on it."""
    revoked = pki.revocations()
    for node in nodes:
        if node not in revoked.nodes:
            raise UsageError(f"{node} is not revoked: leave out --reinstate")
        given = entries[node].serials
        revoked = revoked.reinstating(node).adding(
            serials=given, comment=f"{timestamp(at)} of {node}, reinstated with a new certificate"
        )
    pki.revoke(revoked, pki.authority(), entries, at=at)


def note_without_role(made: Iterable[Entry]) -> None:
    """Print how many new kits have no role, as those that they replace."""
    names = [entry.node for entry in made if entry.permission is None]
    if names:
        click.echo(
            f"without a role, as before: {len(names)}, the first is {names[0]}:"
            f" submerge pki renew {names[0]} --role ROLE gives it one",
            err=True,
        )


def line_of(entry: Entry, path: Path, at: datetime) -> str:
    """Return a kit's description, a line."""
    role = f"role {entry.permission.role}" if entry.permission is not None else "no role"
    groups = groups_of(entry.permission)
    role += f", groups {' '.join(groups)}" if groups else ""
    role += f", serves as {' '.join(entry.hosts)}" if entry.hosts else ""
    return f"{path}: {entry.node}, {role}, until {timestamp(entry.until)} ({left(entry.until, at)})"


def print_lines(pki: PkiDirectory, what: str, entries: Iterable[Entry], at: datetime) -> None:
    """Print what was done with kits, a line each."""
    for entry in entries:
        click.echo(f"{what} {line_of(entry, pki.kit(entry.node), at)}")


def left(until: datetime, at: datetime) -> str:
    """Return how long a certificate is still valid, as text."""
    seconds = (until - at).total_seconds()
    return ago(seconds) if seconds > 0 else f"ended {ago(-seconds)} ago"


def as_dict(entry: Entry, path: Path, at: datetime) -> dict[str, object]:
    """Return a kit's fields for JSON."""
    return {
        "node": entry.node,
        "hosts": entry.hosts,
        "role": role_of(entry.permission),
        "groups": groups_of(entry.permission),
        "serial": entry.serial,
        "until": timestamp(entry.until),
        "left_s": (entry.until - at).total_seconds(),
        "state": entry.state(at) or "holds",
        "kit": str(path),
    }


def print_json(pki: PkiDirectory, at: datetime, kits: Mapping[str, Iterable[Entry]]) -> None:
    """Print kits as one JSON object: a list for each action."""
    lists = {
        what: [as_dict(each, pki.kit(each.node), at) for each in entries]
        for what, entries in kits.items()
    }
    click.echo(json.dumps(lists))


def _passphrase(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        text = path.read_bytes().rstrip(b"\r\n")
    except OSError as error:
        raise UsageError(f"expected a passphrase in {path}, got: {error.strerror}") from error
    if not 0 < len(text) <= LONGEST_PASSPHRASE:
        raise UsageError(
            f"expected a passphrase of 1 to {LONGEST_PASSPHRASE} bytes in {path}, got {len(text)}"
        )
    return text
