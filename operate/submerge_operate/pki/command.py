"""`submerge pki`: the authority of a fleet, and kits for its nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import click

from submerge.errors import UsageError
from submerge_files.console.options import FILE, FOLDER, default_option, flag_option
from submerge_files.console.units import duration, span_text
from submerge_operate.pki import issuing
from submerge_operate.pki.broker_rules import acl
from submerge_operate.pki.issued import SOON, Entry, timestamp
from submerge_operate.pki.issuing import AS_JSON, DIRECTORY, LASTS, PASSPHRASE, KitRequest, open_pki
from submerge_operate.pki.revoking import revoke
from submerge_operate.pki.roles import GROUP, ROLE, SERVERS, permission_of, renewed

HOST = click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME_OR_IP",
    help="A name or address by which others connect to it; may be repeated.",
)


@click.group(epilog="Example: submerge pki init && submerge pki issue pump-3")
def command() -> None:
    """Make certificates for a fleet: one authority, and one kit for each node.

    A kit is one file: the node's key, its certificate, and its authority's certificate. Keep
    the authority on a machine that is not a node.

    A certificate says what its node may do (--role), and in which groups (--group). `submerge
    pki revoke NODE` writes what shuts out a node: a list for aggregators, a CRL for brokers.
    """


command.add_command(revoke)
command.add_command(acl)


@command.command(epilog="Example: submerge pki init --fleet plant-2")
@DIRECTORY
@default_option("--fleet", "default", "The fleet's name, for people.")
@default_option(
    "--lasts",
    "10y",
    "How long it is valid (m is minutes); no certificate of a node ends later.",
    type=issuing.span,
    metavar="DURATION",
)
@PASSPHRASE
@AS_JSON
def init(
    directory: Path, fleet: str, lasts: timedelta, passphrase_file: Path | None, as_json: bool
) -> None:
    """Make the authority of a fleet, in a directory of its own.

    Its key is encrypted only if you give a passphrase; otherwise the file's mode protects it.
    """
    pki = open_pki(directory, passphrase_file)
    from submerge_operate.pki.authority import Authority

    at = issuing.now()
    authority = Authority.create(fleet, now=at, lasts=lasts)
    pki.create(authority, at)
    if as_json:
        made = {"fleet": fleet, "until": timestamp(authority.until), "key": str(pki.key)}
        click.echo(json.dumps(made | {"kits": str(pki.kits), "crl": str(pki.crl)}))
        return
    plain = "" if passphrase_file else ", and it is not encrypted"
    click.echo(
        f"{pki.key}: keep it here, and a copy under lock; its owner can act as any node of"
        f" fleet {fleet}{plain}. The authority ends on {timestamp(authority.until)}."
    )
    click.echo(
        f"{pki.kits}: kits of nodes will be here (submerge pki issue NODE); copy each to its own"
        " node only, over a secure connection."
    )


@command.command(epilog="Example: submerge pki issue root --host root.example.org --host 10.0.0.5")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@DIRECTORY
@HOST
@ROLE
@GROUP
@LASTS
@PASSPHRASE
@AS_JSON
def issue(
    nodes: tuple[str, ...],
    directory: Path,
    hosts: tuple[str, ...],
    role: str | None,
    groups: tuple[str, ...],
    lasts: timedelta,
    passphrase_file: Path | None,
    as_json: bool,
) -> None:
    """Make a kit for each NODE: DIR/kits/NODE.kit.

    With --host the role is aggregator, and otherwise client, unless --role says another: an
    aggregator whose children all come through a broker needs --role aggregator. The broker
    itself is a reader: --role reader --host NAME; then no node takes it for a parent. Children
    check an aggregator's own name, and its hosts only while their own kits have no role.
    """
    pki = open_pki(directory, passphrase_file)
    from submerge_operate.pki.hosts import hosts_of

    at = issuing.now()
    allowed = permission_of(role or "", groups, hosts=hosts)
    wanted = [KitRequest(node, hosts_of(hosts), lasts, allowed) for node in dict.fromkeys(nodes)]
    with pki.issuing() as entries:
        for node in nodes:
            if node in entries:
                raise UsageError(
                    f"{node} has a kit, until {timestamp(entries[node].until)}: for a new one,"
                    f" submerge pki renew {node}"
                )
        made = issuing.make(pki, wanted, entries, at=at)
    if as_json:
        issuing.print_json(pki, at, {"made": made})
        return
    for entry in made:
        click.echo(issuing.line_of(entry, pki.kit(entry.node), at))


@command.command(epilog="Example: submerge pki renew --all --within 20d")
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@DIRECTORY
@flag_option("--all", "All nodes that have a kit.", "all_nodes")
@click.option(
    "--within",
    type=duration,
    help=f"Only those with less than this left.  [default: {span_text(SOON.total_seconds())} with"
    " --all; else any]",
)
@HOST
@ROLE
@GROUP
@flag_option("--every-group", "In place of its groups: all.")
@flag_option("--reinstate", "Also a node that is revoked: its old certificates stay so.")
@click.option(
    "--lasts",
    type=issuing.span,
    metavar="DURATION",
    help="How long it is valid: 90d, 1y, 10m (minutes).  [default: as the one before]",
)
@PASSPHRASE
@AS_JSON
def renew(
    nodes: tuple[str, ...],
    directory: Path,
    all_nodes: bool,
    within: float | None,
    hosts: tuple[str, ...],
    role: str | None,
    groups: tuple[str, ...],
    every_group: bool,
    reinstate: bool,
    lasts: timedelta | None,
    passphrase_file: Path | None,
    as_json: bool,
) -> None:
    """Make new kits in place of those that end soon: a new key, the same name, hosts and role.

    A kit from before there were roles has none until you name a --role. A node that is revoked
    gets no kit, unless you name it with --reinstate.

    Copy each to its node, in place of the old one. A file that `kit` names is read at the next
    connection, without a restart; a unit with LoadCredential= uses a copy and needs one. Older
    certificates stay valid until they end.
    """
    _check_renewal(nodes, hosts, all_nodes=all_nodes, others=(role, groups, every_group, reinstate))
    if within is None and all_nodes:
        within = SOON.total_seconds()
    pki = open_pki(directory, passphrase_file)
    from submerge_operate.pki.hosts import hosts_of

    at, moved = issuing.now(), hosts_of(hosts)
    with pki.issuing() as entries:
        _check_known(nodes, entries)
        if reinstate:
            issuing.reinstate(pki, nodes, entries, at=at)
        out = pki.revocations().nodes if all_nodes else ()
        names = [node for node in entries if node not in out] if all_nodes else nodes
        listed = [entries[node] for node in dict.fromkeys(names)]
        due = [e for e in listed if within is None or (e.until - at).total_seconds() < within]
        left = [entry for entry in listed if entry not in due]
        wanted = []
        for entry in due:
            allowed = renewed(entry.permission, role, groups, every_group=every_group)
            # Another role than a server's has no hosts.
            kept = entry.hosts if role is None or role in SERVERS else ()
            wanted.append(KitRequest(entry.node, moved or kept, lasts or entry.lasts, allowed))
        made = issuing.make(pki, wanted, entries, at=at)
    if as_json:
        issuing.print_json(pki, at, {"renewed": made, "left": left})
        return
    issuing.print_lines(pki, "renewed", made, at)
    if all_nodes and left and within is not None:
        # One line, as a nightly run leaves nearly all: a list would hide the renewed ones.
        click.echo(f"left as they are: {len(left)}, with {span_text(within)} or more to go")
    issuing.print_lines(pki, "left", () if all_nodes else left, at)
    issuing.note_without_role(made)
    if not listed:
        click.echo(f"no node has a kit in {pki.path} yet")


def _check_known(nodes: Sequence[str], entries: Mapping[str, Entry]) -> None:
    for node in nodes:
        if node not in entries:
            raise UsageError(f"{node} has no kit yet: submerge pki issue {node}")


def _check_renewal(
    nodes: Sequence[str], hosts: Sequence[str], *, all_nodes: bool, others: Sequence[object]
) -> None:
    """Refuse options that do not fit together; `others` are about named nodes only."""
    if bool(nodes) == all_nodes:
        raise UsageError(f"expected NODE or --all, got {'both' if nodes else 'neither'}")
    if hosts and len(nodes) != 1:
        raise UsageError("expected one NODE with --host: others have hosts of their own")
    if all_nodes and any(others):
        raise UsageError("expected NODE with --role, --group or --reinstate, got --all")


@command.command(epilog="Example: submerge pki retire pump-3")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@DIRECTORY
@AS_JSON
def retire(nodes: tuple[str, ...], directory: Path, as_json: bool) -> None:
    """Make no more kits for a NODE that is out of use.

    Its kit here is deleted, and `renew --all` skips it. Its certificate stays valid until it
    ends: for a node that is lost or stolen use `submerge pki revoke NODE`.
    """
    pki, at = open_pki(directory), issuing.now()
    with pki.issuing() as entries:
        for node in nodes:
            if node not in entries:
                raise UsageError(f"{node} has no kit: submerge pki show lists nodes with kits")
        gone = [entries.pop(node) for node in dict.fromkeys(nodes)]
        for entry in gone:
            pki.discard(entry.node)
    if as_json:
        issuing.print_json(pki, at, {"retired": gone})
        return
    for entry in gone:
        serials = " ".join(f"--serial {serial}" for serial in entry.serials)
        click.echo(
            f"{entry.node} is retired; its certificate is valid until {timestamp(entry.until)}:"
            f" submerge pki revoke {entry.node} {serials} shuts it out"
        )


@command.command(epilog="Example: submerge pki show")
@click.argument("kit", required=False, type=FILE, metavar="[FILE.kit]")
@click.option(
    "--dir",
    "directory",
    type=FOLDER,
    help=f"The authority's directory.  [default: {issuing.PKI}]",
)
@AS_JSON
def show(kit: Path | None, directory: Path | None, as_json: bool) -> None:
    """Show which nodes have a kit, and until when; or the contents of one kit.

    For one kit it also checks that its key and its authority belong to its certificate. Days
    are UTC. Serial numbers and times of day are in --json.
    """
    if kit is not None and directory is not None:
        raise UsageError("--dir is for all kits of an authority, got a file as well")
    pki = open_pki(directory or issuing.PKI)
    from submerge_operate.pki import report as pki_report

    at = issuing.now()
    found = pki_report.of_kit(kit) if kit is not None else pki_report.of_all(pki)
    if as_json:
        click.echo(json.dumps(found.as_dict(at)))
    else:
        pki_report.print_kits(found, at)
