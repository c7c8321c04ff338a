"""`submerge pki`: the authority of a fleet, and kits for its nodes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import click
from click.core import ParameterSource

from submerge.errors import UsageError
from submerge.protocol.names import is_reserved
from submerge.protocol.permission import Permission
from submerge.protocol.settings import check_names
from submerge_files.console.admin_client import console_of
from submerge_files.console.options import FILE, default_option, flag_option
from submerge_files.console.tables import Column, table
from submerge_files.console.units import duration, span_text
from submerge_operate.fleet.nodes_table import ORDINARY
from submerge_operate.pki import issuance
from submerge_operate.pki.authority import Authority, certificate_of, fleet_of, hosts_of
from submerge_operate.pki.directory import (
    PUBLIC,
    PkiDirectory,
    read_contents,
    replace_file,
    serial_text,
)
from submerge_operate.pki.issuance import (
    AS_JSON,
    GROUP,
    HOST,
    LASTS,
    ROLE,
    SERVERS,
    left,
    permission_of,
    pki_options,
)
from submerge_operate.pki.issued import SOON, Entry, span, state_of, timestamp

HEAD = """\
# Made by `submerge pki acl`: a block for each kit, by its role and groups. Make it again after
# kits were made, renewed with other roles, or revoked; Mosquitto reads it again on SIGHUP.
"""

PREFIX = "submerge/v1/+"

SPECIAL = {
    "dashboard": (f"read {PREFIX}/score/+", f"read {PREFIX}/alarm/#"),
    "homeassistant": (
        f"read {PREFIX}/alarm/#",
        "read homeassistant/#",
        "write homeassistant/status",
    ),
    "broker": ("read $SYS/#",),
}
"""What three names may do beside, as in deploy/mosquitto/acl; no client has it by its name."""


def acl_text(entries: Iterable[Entry], revoked: Collection[str]) -> str:
    """Return Mosquitto's rules for the nodes that have kits, but for those that are revoked."""
    blocks = [HEAD]
    for entry in entries:
        if entry.node in revoked or is_reserved(entry.node):
            why = "revoked" if entry.node in revoked else "a word of topics, and no node's name"
            blocks.append(f"# {entry.node} is {why}.\n")
            continue
        groups = f"groups {' '.join(entry.groups)}" if entry.groups else "all groups"
        role = f"{entry.role}, {groups}" if entry.role else "none: a kit from before roles"
        lines = [f"# role {role}", f"user {entry.node}"]
        lines += [f"topic {rule}" for rule in rules_of(entry)]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def roster_text(entries: Iterable[Entry], revoked: Collection[str]) -> str:
    """Return a list of what nodes may do, for aggregators: node, role, groups; with a heading."""
    # Kits without a role are left out: what their nodes may do is decided elsewhere.
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("node", "role", "groups"))
    for entry in entries:
        if entry.role and entry.node not in revoked:
            table.writerow((entry.node, entry.role, " ".join(entry.groups)))
    return text.getvalue()


def rules_of(entry: Entry) -> Iterator[str]:
    """Yield what a node may write and read: `write submerge/v1/+/score/pump-3`."""
    if entry.role in ("", "client", "aggregator"):
        yield from _as_child(entry)
    if entry.role in ("", "aggregator"):
        # All below its own name: messages of its children, and its answers.
        yield f"readwrite {PREFIX}/{entry.node}/#"
    yield f"read {PREFIX}/+/hello"
    for group in entry.groups or ("+",):
        yield f"read {PREFIX}/+/model/{group}"
    if entry.role in ("", "reader"):
        yield from SPECIAL.get(entry.node, ())


def _as_child(entry: Entry) -> Iterator[str]:
    """Yield what a node needs that reports: over its parent, its scores and its alarms."""
    node = entry.node
    for group in entry.groups or ("+",):
        for kind in ("join", "report", "drill", "reply", "job"):
            yield f"write {PREFIX}/+/up/{node}/{kind}/{group}"
    yield f"write {PREFIX}/+/up/{node}/state"
    yield f"read {PREFIX}/+/down/{node}/#"
    yield f"write {PREFIX}/score/{node}"
    yield f"write {PREFIX}/alarm/{node}"
    yield f"write {PREFIX}/alarm/{node}/state"
    # It describes its alarms to Home Assistant: sensors only, no switches.
    yield f"write homeassistant/binary_sensor/{node}/+/config"
    yield f"write homeassistant/sensor/{node}/+/config"


FOR_BROKER = 0o640  # Mosquitto warns of a file that everybody can read; its group is Mosquitto's


@click.command(epilog="Example: submerge pki acl --out /etc/mosquitto/acl --roster roster.csv")
@pki_options(signs=False)
@click.option("--out", type=FILE, help="Where to write it.  [default: standard output]")
@click.option(
    "--roster",
    type=FILE,
    help="Also write a list for aggregators ([listen] roster): node, role, groups.",
)
def acl(pki: PkiDirectory, out: Path | None, roster: Path | None) -> None:
    """Write Mosquitto's access control list: a block for each kit, by its role and groups.

    A client writes below its own name, and reads answers to itself and models of its groups. An
    aggregator also owns the topics below its name. A reader and an operator read models. Kits
    without a role have what deploy/mosquitto/acl grants all nodes. Revoked nodes have nothing.
    Write it again after `issue`, `renew` and `revoke`, and send Mosquitto SIGHUP.
    """
    record, revoked = pki.record(), pki.revocations().nodes
    entries = [record[node] for node in sorted(record)]
    text = acl_text(entries, revoked)
    if out is None:
        click.echo(text, nl=False)
    else:
        replace_file(out, text.encode(), FOR_BROKER)
    if roster is not None:
        replace_file(roster, roster_text(entries, revoked).encode(), PUBLIC)


LONGEST_WHY = 200  # characters of a reason


@click.command(epilog="Example: submerge pki revoke pump-3 --why 'stolen from the north gate'")
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@pki_options()
@click.option(
    "--serial",
    "serials",
    multiple=True,
    metavar="HEX",
    help="One certificate, by its serial number; may be repeated. Its node may have a new one.",
)
@click.option("--why", default="", help="For people: it is written beside each line.")
@AS_JSON
def revoke(
    pki: PkiDirectory, nodes: tuple[str, ...], serials: tuple[str, ...], why: str, as_json: bool
) -> None:
    """Shut out each NODE: all certificates with its name.

    Writes DIR/revoked, a list for aggregators ([security] revoked), and DIR/crl.pem, the same
    for brokers (`crlfile`). Bring both to their machines, and the broker a new ACL (`submerge
    pki acl`); then send it SIGHUP. It refuses new connections of the node, and one that is open
    can do nothing more. (With deploy/mosquitto/acl restart the broker instead: that ends it.)
    Aggregators read their list by themselves. The node's kit here is deleted, and none is made
    for it any more, but for `submerge pki renew NODE --reinstate`.

    Without NODE and --serial both files are written again, for example after you edited the
    list.
    """
    at = issuance.now()
    for node in nodes:
        check_names(node)
    if len(why) > LONGEST_WHY or not why.isprintable():
        raise UsageError(f"expected --why of at most {LONGEST_WHY} printable characters")
    numbers = [serial_text(serial) for serial in serials]
    with pki.issuing() as entries:
        if not numbers:
            _expect_known(nodes, entries.keys() | pki.revocations().nodes)
        authority = pki.authority()
        given = [each for node in nodes if node in entries for each in entries[node].serials]
        comment = f"{timestamp(at)} {why}".rstrip()
        revoked = pki.revocations().adding(
            serials=[*numbers, *given], nodes=dict.fromkeys(nodes), comment=comment
        )
        pki.revoke(revoked, authority, entries, at=at)
        for node in nodes:
            pki.discard(node)
    if as_json:
        shown = {"revoked": str(pki.revoked), "crl": str(pki.crl)}
        count = {"nodes": sorted(revoked.nodes), "serials": len(revoked.serials)}
        click.echo(json.dumps(shown | count))
        return
    click.echo(
        f"{pki.revoked}: nodes: {len(revoked.nodes)}, certificates: {len(revoked.serials)}; for"
        " aggregators, [security] revoked"
    )
    click.echo(
        f"{pki.crl}: the same for brokers, crlfile; then bring the broker a new ACL (submerge pki"
        " acl), and send it SIGHUP"
    )


def _expect_known(nodes: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name that has no certificate here: it may be a slip."""
    for node in nodes:
        if node not in known:
            alike = "".join(
                f" (a name like it: {name})" for name in get_close_matches(node, known, 1)
            )
            raise UsageError(
                f"{node} is not in the record, so its certificates are not known here{alike}: add"
                " --serial HEX (openssl x509 -noout -serial) if the name is right"
            )


class ShownKits(NamedTuple):
    """Kits, each with its file, and the fleet and the end of the authority that has signed them."""

    fleet: str
    until: datetime
    kits: list[tuple[Entry, Path]]
    revoked: Collection[str] = ()


def of_all(pki: PkiDirectory) -> ShownKits:
    authority, record = certificate_of(pki.certificate()), pki.record()
    kits = [(record[node], pki.kit(node)) for node in sorted(record)]
    revoked = pki.revocations().nodes
    return ShownKits(fleet_of(authority), authority.not_valid_after_utc, kits, revoked)


def print_kits(shown: ShownKits, at: datetime, *, with_serial: bool) -> None:
    from rich.text import Text

    console = console_of(wide=False)
    ends = f"{shown.until:%Y-%m-%d} ({left(shown.until, at)})"
    console.print(Text(f"fleet {shown.fleet}, its authority until {ends}"))
    entries = [entry for entry, _ in shown.kits]
    if not entries:
        console.print("no node has a kit yet: submerge pki issue NODE")
        return

    def state(entry: Entry) -> str:
        return "revoked" if entry.node in shown.revoked else entry.state(at)

    # A long name may take a second line, but is never cut.
    long = any(len(entry.node) > ORDINARY for entry in entries)
    columns: list[Column[Entry]] = [
        Column("node", lambda entry: entry.node, folds=long),
        Column("role", lambda entry: entry.role or "-"),
        Column("groups", lambda e: " ".join(e.groups) or ("all" if e.role else "-"), folds=True),
        Column("hosts", lambda entry: " ".join(entry.hosts) or "-", folds=True),
        Column("until", lambda entry: f"{entry.until:%Y-%m-%d}"),
        Column("left", lambda e: "-" if state(e) == "ended" else left(e.until, at), right=True),
        Column("state", state),
    ]
    console.print(table(entries, columns))
    if with_serial:
        console.print(Text(f"serial {entries[0].serial}"))


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
@pki_options()
@default_option("--fleet", "default", "The fleet's name, for people.")
@default_option(
    "--lasts",
    "10y",
    "How long it is valid (m is minutes); no certificate of a node ends later.",
    type=span,
    metavar="DURATION",
)
@AS_JSON
def init(pki: PkiDirectory, fleet: str, lasts: timedelta, as_json: bool) -> None:
    """Make the authority of a fleet, in a directory of its own.

    Its key is encrypted only if you give a passphrase; otherwise the file's mode protects it.
    """
    at = issuance.now()
    authority = Authority.create(fleet, now=at, lasts=lasts)
    pki.create(authority, at)
    if as_json:
        made = {"fleet": fleet, "until": timestamp(authority.until), "key": str(pki.key)}
        click.echo(json.dumps(made | {"kits": str(pki.kits), "crl": str(pki.crl)}))
        return
    plain = "" if pki.is_encrypted else ", and it is not encrypted"
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
@pki_options()
@HOST
@ROLE
@GROUP
@LASTS
@AS_JSON
def issue(
    pki: PkiDirectory,
    nodes: tuple[str, ...],
    hosts: tuple[str, ...],
    role: str | None,
    groups: tuple[str, ...],
    lasts: timedelta,
    as_json: bool,
) -> None:
    """Make a kit for each NODE: DIR/kits/NODE.kit.

    With --host the role is aggregator, and otherwise client, unless --role says another: an
    aggregator whose children all come through a broker needs --role aggregator. The broker
    itself is a reader: --role reader --host NAME; then no node takes it for a parent. Children
    check an aggregator's own name, and its hosts only while their own kits have no role.
    """
    at = issuance.now()
    allowed = permission_of(role or "", groups, hosts=hosts)
    wanted = [Entry(node, hosts_of(hosts), lasts, allowed) for node in dict.fromkeys(nodes)]
    with pki.issuing() as entries:
        for node in nodes:
            if node in entries:
                raise UsageError(
                    f"{node} has a kit, until {timestamp(entries[node].until)}: for a new one,"
                    f" submerge pki renew {node}"
                )
        made = issuance.make(pki, wanted, entries, at=at)
    if as_json:
        issuance.print_json(pki, at, {"made": made})
        return
    for entry in made:
        click.echo(issuance.line_of(entry, pki.kit(entry.node), at))


@command.command(epilog="Example: submerge pki renew --all --within 20d")
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@pki_options()
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
@flag_option("--same-key", "Keep its key: `submerge nodes renew` sends the certificate alone.")
@flag_option("--reinstate", "Also a node that is revoked: its old certificates stay so.")
@click.option(
    "--lasts",
    type=span,
    metavar="DURATION",
    help="How long it is valid: 90d, 1y, 10m (minutes).  [default: as the one before]",
)
@AS_JSON
def renew(
    pki: PkiDirectory,
    nodes: tuple[str, ...],
    all_nodes: bool,
    within: float | None,
    hosts: tuple[str, ...],
    role: str | None,
    groups: tuple[str, ...],
    every_group: bool,
    same_key: bool,
    reinstate: bool,
    lasts: timedelta | None,
    as_json: bool,
) -> None:
    """Make new kits in place of those that end soon: a new key, the same name, hosts and role.

    A kit from before there were roles has none until you name a --role. A node that is revoked
    gets no kit, unless you name it with --reinstate.

    With --same-key, `submerge nodes renew` sends each to its node. Else copy it there: a file that
    `kit` names is read at the next connection, and a unit with LoadCredential= needs a restart.
    Older certificates stay valid until they end.
    """
    _check_renewal(nodes, hosts, all_nodes=all_nodes, others=(role, groups, every_group, reinstate))
    if within is None and all_nodes:
        within = SOON.total_seconds()
    at, moved = issuance.now(), hosts_of(hosts)
    with pki.issuing() as entries:
        _check_known(nodes, entries)
        if reinstate:
            _reinstate(pki, nodes, entries, at=at)
        out = pki.revocations().nodes if all_nodes else ()
        names = [node for node in entries if node not in out] if all_nodes else nodes
        listed = [entries[node] for node in dict.fromkeys(names)]
        due = [e for e in listed if within is None or (e.until - at).total_seconds() < within]
        left = [entry for entry in listed if entry not in due]
        wanted = []
        for entry in due:
            allowed = _renewed(entry, role, groups, every_group=every_group)
            kept = entry.hosts if role is None or role in SERVERS else ()  # others have none
            wanted.append(Entry(entry.node, moved or kept, lasts or entry.lasts, allowed))
        made = issuance.make(pki, wanted, entries, at=at, same_key=same_key)
    if as_json:
        issuance.print_json(pki, at, {"renewed": made, "left": left})
        return
    for what, kits in {"renewed": made, "left": [] if all_nodes else left}.items():
        for entry in kits:
            click.echo(f"{what} {issuance.line_of(entry, pki.kit(entry.node), at)}")
    if all_nodes and left and within is not None:
        # One line, as a nightly run leaves nearly all: a list would hide the renewed ones.
        click.echo(f"left as they are: {len(left)}, with {span_text(within)} or more to go")
    names = [entry.node for entry in made if not entry.role]
    if names:
        click.echo(
            f"without a role, as before: {len(names)}, the first is {names[0]}:"
            f" submerge pki renew {names[0]} --role ROLE gives it one",
            err=True,
        )
    if not listed:
        click.echo(f"no node has a kit in {pki.path} yet")


def _renewed(
    before: Entry, role: str | None, groups: Sequence[str], *, every_group: bool
) -> Permission | None:
    """Return the permission of a new kit in place of an older one; both are kept by default."""
    if groups and every_group:
        raise UsageError("expected --group or --every-group, got both")
    if role is None and not before.role:
        if groups or every_group:
            raise UsageError("a kit without a role has no groups: add --role")
        return None
    kept = () if every_group else before.groups
    return permission_of(role or before.role, groups or kept, hosts=())


def _reinstate(
    pki: PkiDirectory, nodes: Iterable[str], entries: Mapping[str, Entry], *, at: datetime
) -> None:
    """Take nodes off the list of what is revoked; certificates that they were given stay on it."""
    revoked = pki.revocations()
    for node in nodes:
        if node not in revoked.nodes:
            raise UsageError(f"{node} is not revoked: leave out --reinstate")
        revoked = revoked.reinstating(node).adding(
            serials=entries[node].serials,
            comment=f"{timestamp(at)} of {node}, reinstated with a new certificate",
        )
    pki.revoke(revoked, pki.authority(), entries, at=at)


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
@pki_options(signs=False)
@AS_JSON
def retire(pki: PkiDirectory, nodes: tuple[str, ...], as_json: bool) -> None:
    """Make no more kits for a NODE that is out of use.

    Its kit here is deleted, and `renew --all` skips it. Its certificate stays valid until it
    ends: for a node that is lost or stolen use `submerge pki revoke NODE`.
    """
    at = issuance.now()
    with pki.issuing() as entries:
        for node in nodes:
            if node not in entries:
                raise UsageError(f"{node} has no kit: submerge pki show lists nodes with kits")
        gone = [entries.pop(node) for node in dict.fromkeys(nodes)]
        for entry in gone:
            pki.discard(entry.node)
    if as_json:
        issuance.print_json(pki, at, {"retired": gone})
        return
    for entry in gone:
        serials = " ".join(f"--serial {serial}" for serial in entry.serials)
        click.echo(
            f"{entry.node} is retired; its certificate is valid until {timestamp(entry.until)}:"
            f" submerge pki revoke {entry.node} {serials} shuts it out"
        )


@command.command(epilog="Example: submerge pki show")
@click.argument("kit", required=False, type=FILE, metavar="[FILE.kit]")
@pki_options(signs=False)
@AS_JSON
@click.pass_context
def show(ctx: click.Context, pki: PkiDirectory, kit: Path | None, as_json: bool) -> None:
    """Show which nodes have a kit, and until when; or the contents of one kit.

    For one kit it also checks that its key and its authority belong to its certificate. Days
    are UTC. Serial numbers and times of day are in --json.
    """
    if kit is not None and ctx.get_parameter_source("directory") is ParameterSource.COMMANDLINE:
        raise UsageError("--dir is for all kits of an authority, got a file as well")
    at = issuance.now()
    if kit is None:
        shown = of_all(pki)
    else:
        entry, fleet, ends = read_contents(kit)
        shown = ShownKits(fleet, ends, [(entry, kit)])
    if not as_json:
        print_kits(shown, at, with_serial=kit is not None)
        return
    authority = {
        "until": timestamp(shown.until),
        "left_s": (shown.until - at).total_seconds(),
        "state": state_of(shown.until, at) or "holds",
    }
    kits = [
        issuance.as_dict(each, path, at) | {"revoked": each.node in shown.revoked}
        for each, path in shown.kits
    ]
    click.echo(json.dumps({"fleet": shown.fleet, "authority": authority, "kits": kits}))
