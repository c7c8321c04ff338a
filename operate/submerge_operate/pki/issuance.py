"""Shared parts of the commands that make kits: options, issuing, output."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from submerge.errors import UsageError
from submerge.protocol.names import NAME_RULE, is_name
from submerge.protocol.permission import ROLES, Permission, Role
from submerge_files.console import options
from submerge_files.console.progress import advancing
from submerge_files.console.units import ago
from submerge_operate.pki.directory import PkiDirectory
from submerge_operate.pki.issued import Entry, check_new, span, timestamp

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
HOST = click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME_OR_IP",
    help="A name or address by which others connect to it; may be repeated.",
)
LASTS = options.default_option(
    "--lasts", "90d", "How long it is valid: 90d, 1y, 10m (minutes).", type=span, metavar="DURATION"
)
AS_JSON = options.json_option()

PKI = Path("pki")

LONGEST_PASSPHRASE = 1000  # Bytes; OpenSSL accepts little more.


def pki_options(*, signs: bool = True) -> options.Decorator:
    """Return what adds --dir, and --passphrase-file where it `signs`, and passes `pki` on."""

    def add(command: Any) -> Any:
        @functools.wraps(command)
        def run(directory: Path, passphrase_file: Path | None = None, **given: Any) -> Any:
            return command(pki=PkiDirectory(directory, _passphrase(passphrase_file)), **given)

        place = options.default_option(
            "--dir", PKI, "The authority's directory.", "directory", type=options.FOLDER
        )
        passphrase = click.option(
            "--passphrase-file",
            type=options.FILE,
            help="The passphrase of the authority's key.  [default: not encrypted]",
        )
        return options.together(place, *([passphrase] if signs else []))(run)

    return add


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


def check_serving(wanted: Entry) -> None:
    """Refuse hosts of a node whose role is not a server's."""
    if wanted.hosts and wanted.role and wanted.role not in SERVERS:
        raise UsageError(
            f"{wanted.node}: only {' and '.join(f'role {each}' for each in SERVERS)} have hosts (a"
            f" broker is a reader with hosts), got role {wanted.role} and {' '.join(wanted.hosts)}"
        )


def now() -> datetime:
    """Return the time in whole seconds, as in certificates."""
    return datetime.now(UTC).replace(microsecond=0)


def make(
    pki: PkiDirectory,
    wanted: Sequence[Entry],
    entries: dict[str, Entry],
    *,
    at: datetime,
    same_key: bool = False,
) -> list[Entry]:
    """Write kits, and add them to a record (PkiDirectory.issuing); show progress on a terminal."""
    # All names are checked before anything is written.
    if not wanted:
        return []
    # A kit that exists may keep its name.
    check_new((each.node for each in wanted if each.node not in entries), entries)
    revoked = pki.revocations()
    for each in wanted:
        check_serving(each)
        if each.node in revoked.nodes:
            raise UsageError(
                f"{each.node} is revoked: submerge pki renew {each.node} --reinstate makes a kit"
            )
    authority = pki.authority()
    keys = {each.node: pki.key_of(each.node) for each in wanted} if same_key else {}
    made = []
    with advancing("kits", len(wanted)) as advance:
        for each in wanted:
            certified = authority.certify(
                *each[:2], each.permission, now=at, lasts=each.lasts, key=keys.get(each.node)
            )
            pki.put(certified, authority)
            past = entries[each.node].earlier(at) if each.node in entries else ()
            entry = each._replace(serial=certified.serial, until=certified.until, past=past)
            entries[each.node] = entry
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


def line_of(entry: Entry, path: Path, at: datetime) -> str:
    role = f"role {entry.role}" if entry.role else "no role"
    role += f", groups {' '.join(entry.groups)}" if entry.groups else ""
    role += f", serves as {' '.join(entry.hosts)}" if entry.hosts else ""
    return f"{path}: {entry.node}, {role}, until {timestamp(entry.until)} ({left(entry.until, at)})"


def left(until: datetime, at: datetime) -> str:
    """Return how long a certificate is still valid, as text."""
    seconds = (until - at).total_seconds()
    return ago(seconds) if seconds > 0 else f"ended {ago(-seconds)} ago"


def as_dict(entry: Entry, path: Path, at: datetime) -> dict[str, object]:
    return {
        "node": entry.node,
        **entry.facts,
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
