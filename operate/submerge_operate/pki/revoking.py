"""`submerge pki revoke`: what shuts out a node, for aggregators and for brokers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path

import click

from submerge.errors import UsageError
from submerge.protocol.settings import check_names
from submerge_operate.pki import issuing
from submerge_operate.pki.issued import timestamp
from submerge_operate.pki.issuing import AS_JSON, DIRECTORY, PASSPHRASE, open_pki
from submerge_operate.pki.revoked import serial_text

LONGEST_WHY = 200
"""Characters of a reason."""


@click.command(epilog="Example: submerge pki revoke pump-3 --why 'stolen from the north gate'")
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@DIRECTORY
@click.option(
    "--serial",
    "serials",
    multiple=True,
    metavar="HEX",
    help="One certificate, by its serial number; may be repeated. Its node may have a new one.",
)
@click.option("--why", default="", help="For people: it is written beside each line.")
@PASSPHRASE
@AS_JSON
def revoke(
    nodes: tuple[str, ...],
    directory: Path,
    serials: tuple[str, ...],
    why: str,
    passphrase_file: Path | None,
    as_json: bool,
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
    pki, at = open_pki(directory, passphrase_file), issuing.now()
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
