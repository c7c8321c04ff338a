"""`submerge pki`: the authority of a fleet, and the kits that make its nodes known."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import click

from submerge.errors import UsageError
from submerge_fleet.console.options import FILE, FOLDER, default_option
from submerge_fleet.console.progress import advancing
from submerge_fleet.console.units import duration, span_text
from submerge_fleet.pki import issuing
from submerge_fleet.pki.issued import SOON, Entry, stamped
from submerge_fleet.pki.issuing import AS_JSON, DIRECTORY, LASTS, PASSPHRASE, KitRequest, opened

HOST = click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME_OR_IP",
    help="Where it serves, as others call it; may be given several times.",
)


@click.group(epilog="Example: submerge pki init && submerge pki issue pump-3")
def command() -> None:
    """Make certificates for a fleet: one authority, and one kit for each node.

    A kit is one file: the node's key, its certificate, and whom it trusts. Keep the
    authority on a machine that is no node.

    There is no revocation list. Whom you no longer trust, `submerge nodes forget NODE --ban`
    shuts out at once; its certificate ends by itself, so let certificates be short (--lasts)
    and renew them often (`submerge pki renew --all`).
    """


@command.command(epilog="Example: submerge pki init --fleet plant-2")
@DIRECTORY
@default_option("--fleet", "default", "Its name, for people.")
@default_option(
    "--lasts",
    "10y",
    "How long (m is minutes); no certificate of a node outlives it.",
    type=issuing.span,
    metavar="DURATION",
)
@PASSPHRASE
@AS_JSON
def init(
    directory: Path, fleet: str, lasts: timedelta, passphrase_file: Path | None, as_json: bool
) -> None:
    """Make the authority of a fleet, in a directory of its own.

    Its key is not encrypted, unless you give a passphrase: the file's mode protects it.
    """
    pki = opened(directory, passphrase_file)
    from submerge_fleet.pki.authority import Authority

    authority = Authority.founded(fleet, now=issuing.now(), lasts=lasts)
    pki.found(authority)
    if as_json:
        made = {"fleet": fleet, "until": stamped(authority.until), "key": str(pki.key)}
        click.echo(json.dumps(made | {"kits": str(pki.kits)}))
        return
    plain = "" if passphrase_file else ", and it is not encrypted"
    click.echo(
        f"{pki.key}: keep it here, and a copy under lock; whoever has it can be any node of"
        f" fleet {fleet}{plain}. The authority ends on {stamped(authority.until)}."
    )
    click.echo(
        f"{pki.kits}: a kit for each node will be there (submerge pki issue NODE); bring each to"
        " its own node alone, by a way that nobody reads."
    )


@command.command(epilog="Example: submerge pki issue root --host root.example.org --host 10.0.0.5")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@DIRECTORY
@HOST
@LASTS
@PASSPHRASE
@AS_JSON
def issue(
    nodes: tuple[str, ...],
    directory: Path,
    hosts: tuple[str, ...],
    lasts: timedelta,
    passphrase_file: Path | None,
    as_json: bool,
) -> None:
    """Make a kit for each NODE: DIR/kits/NODE.kit.

    An aggregator or a broker has children, and needs --host: the names and addresses by
    which they reach it. Whoever has no --host is a client, and cannot pose as a server.
    """
    pki = opened(directory, passphrase_file)
    from submerge_fleet.pki.hosts import hosts_of

    at = issuing.now()
    wanted = [KitRequest(node, hosts_of(hosts), lasts) for node in dict.fromkeys(nodes)]
    with pki.issuing() as entries:
        for node in nodes:
            if node in entries:
                raise UsageError(
                    f"{node} has a kit, until {stamped(entries[node].until)}: for a new one,"
                    f" submerge pki renew {node}"
                )
        with advancing("kits", len(wanted)) as advance:
            made = issuing.make(pki, wanted, entries, at=at, advance=advance)
    if as_json:
        issuing.print_json(pki, at, {"made": made})
        return
    for entry in made:
        click.echo(issuing.line_of(entry, pki.kit(entry.node), at))


@command.command(epilog="Example: submerge pki renew --all --within 20d")
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@DIRECTORY
@click.option("--all", "everyone", is_flag=True, help="All that have a kit.")
@click.option(
    "--within",
    type=duration,
    help=f"Those alone with less than this left.  [default: {span_text(SOON.total_seconds())} with"
    " --all; any, of a NODE that is named]",
)
@HOST
@click.option(
    "--lasts",
    type=issuing.span,
    metavar="DURATION",
    help="How long: 90d, 1y, 10m; m is minutes.  [default: as the one before]",
)
@PASSPHRASE
@AS_JSON
def renew(
    nodes: tuple[str, ...],
    directory: Path,
    everyone: bool,
    within: float | None,
    hosts: tuple[str, ...],
    lasts: timedelta | None,
    passphrase_file: Path | None,
    as_json: bool,
) -> None:
    """Make new kits in place of those that end soon: a new key, the same name and hosts.

    Bring each to its node, in place of the old one: a file that `kit` names is read at the
    next connection, and nothing has to be restarted. A unit that hands it over as a credential
    has a copy, and does. What was issued before still holds until it ends.
    """
    if bool(nodes) == everyone:
        raise UsageError(f"expected NODE or --all, got {'both' if nodes else 'neither'}")
    if hosts and len(nodes) != 1:
        raise UsageError("expected one NODE with --host: others have hosts of their own")
    if within is None and everyone:
        within = SOON.total_seconds()
    pki = opened(directory, passphrase_file)
    from submerge_fleet.pki.hosts import hosts_of

    at, moved = issuing.now(), hosts_of(hosts)
    with pki.issuing() as entries:
        for node in nodes:
            if node not in entries:
                raise UsageError(f"{node} has no kit yet: submerge pki issue {node}")
        asked = [entries[node] for node in (entries if everyone else dict.fromkeys(nodes))]
        due = [e for e in asked if within is None or (e.until - at).total_seconds() < within]
        spared = [entry for entry in asked if entry not in due]
        wanted = [KitRequest(e.node, moved or e.hosts, lasts or e.lasts) for e in due]
        made: list[Entry] = []
        if wanted:
            with advancing("kits", len(wanted)) as advance:
                made = issuing.make(pki, wanted, entries, at=at, advance=advance)
    if as_json:
        issuing.print_json(pki, at, {"renewed": made, "left": spared})
        return
    for entry in made:
        click.echo(f"renewed {issuing.line_of(entry, pki.kit(entry.node), at)}")
    if everyone and spared and within is not None:
        # Each night nearly all of them: one line, or nobody sees what was renewed.
        click.echo(f"left as they are: {len(spared)}, with {span_text(within)} or more to go")
    for entry in () if everyone else spared:
        click.echo(f"left {issuing.line_of(entry, pki.kit(entry.node), at)}")
    if not asked:
        click.echo(f"nobody has a kit in {pki.path} yet")


@command.command(epilog="Example: submerge pki retire pump-3")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@DIRECTORY
@AS_JSON
def retire(nodes: tuple[str, ...], directory: Path, as_json: bool) -> None:
    """Make no more kits for a NODE that is lost, stolen or out of use.

    Its kit here is deleted, and `renew --all` passes it over. The certificate that it has
    holds until it ends: submerge nodes forget NODE --ban, at its aggregator, shuts it out.
    """
    pki, at = opened(directory), issuing.now()
    with pki.issuing() as entries:
        for node in nodes:
            if node not in entries:
                raise UsageError(f"{node} has no kit: submerge pki show lists who has")
        gone = [entries.pop(node) for node in dict.fromkeys(nodes)]
        for entry in gone:
            pki.discard(entry.node)
    if as_json:
        issuing.print_json(pki, at, {"retired": gone})
        return
    for entry in gone:
        click.echo(
            f"{entry.node} is retired; its certificate holds until {stamped(entry.until)}:"
            f" submerge nodes forget {entry.node} --ban"
        )


@command.command(epilog="Example: submerge pki show")
@click.argument("kit", required=False, type=FILE, metavar="[FILE.kit]")
@click.option(
    "--dir",
    "directory",
    type=FOLDER,
    help=f"Where the authority lives.  [default: {issuing.PKI}]",
)
@AS_JSON
def show(kit: Path | None, directory: Path | None, as_json: bool) -> None:
    """Show who has a kit, and until when; or look into one.

    A kit is also put to the test: are its key and its authority those of its certificate?
    Days are UTC. Serial numbers and times of day are in --json.
    """
    if kit is not None and directory is not None:
        raise UsageError("--dir is for all kits of an authority, got a file as well")
    pki = opened(directory or issuing.PKI)
    from submerge_fleet.pki import report as pki_report

    at = issuing.now()
    found = pki_report.of_kit(kit) if kit is not None else pki_report.of_all(pki)
    if as_json:
        click.echo(json.dumps(found.as_dict(at)))
    else:
        pki_report.tell(found, at)
