"""The kits that an authority has issued, as a table or for JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from submerge_files.console.admin_client import console_of
from submerge_operate.fleet.nodes_table import ORDINARY
from submerge_operate.pki.authority import certificate_of, fleet_of
from submerge_operate.pki.directory import PkiDirectory
from submerge_operate.pki.issued import Entry, groups_of, role_of, state_of, timestamp
from submerge_operate.pki.issuing import as_dict, left
from submerge_operate.pki.kit_file import read_contents


class IssuedKits(NamedTuple):
    """Kits, and the authority that has signed them.

    until : The authority's end.
    entries : By name.
    place : Returns the path of a node's kit.
    serial : Of a single kit; empty for a list.
    revoked : Nodes that are revoked, as far as is known here.
    """

    fleet: str
    until: datetime
    entries: list[Entry]
    place: Callable[[str], Path]
    serial: str = ""
    revoked: Collection[str] = ()

    def as_dict(self, at: datetime) -> dict[str, object]:
        """Return all fields for JSON."""
        return {
            "fleet": self.fleet,
            "authority": {
                "until": timestamp(self.until),
                "left_s": (self.until - at).total_seconds(),
                "state": state_of(self.until, at) or "holds",
            },
            "kits": [
                as_dict(entry, self.place(entry.node), at) | {"revoked": entry.node in self.revoked}
                for entry in self.entries
            ],
        }


def of_all(pki: PkiDirectory) -> IssuedKits:
    """Return all kits of an authority."""
    authority = certificate_of(pki.certificate())
    entries = pki.record()
    return IssuedKits(
        fleet_of(authority),
        authority.not_valid_after_utc,
        [entries[node] for node in sorted(entries)],
        pki.kit,
        revoked=pki.revocations().nodes,
    )


def of_kit(path: Path) -> IssuedKits:
    """Return one kit, from its file."""
    kit = read_contents(path)
    return IssuedKits(kit.fleet, kit.ends, [kit.entry], lambda _: path, kit.entry.serial)


def print_kits(shown: IssuedKits, at: datetime) -> None:
    """Print kits as a table."""
    console = console_of(wide=False)
    ends = f"{shown.until:%Y-%m-%d} ({left(shown.until, at)})"
    console.print(Text(f"fleet {shown.fleet}, its authority until {ends}"))
    if not shown.entries:
        console.print("no node has a kit yet: submerge pki issue NODE")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    # A long name may take a second line, but is never cut.
    whole = all(len(entry.node) <= ORDINARY for entry in shown.entries)
    table.add_column("node", no_wrap=whole, overflow="fold")
    table.add_column("role", no_wrap=True)
    table.add_column("groups", overflow="fold")
    table.add_column("hosts", overflow="fold")
    table.add_column("until", no_wrap=True)
    table.add_column("left", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for entry in shown.entries:
        state = "revoked" if entry.node in shown.revoked else entry.state(at)
        groups = " ".join(groups_of(entry.permission)) or "all"
        cells = (
            entry.node,
            role_of(entry.permission) or "-",
            groups if entry.permission is not None else "-",
            " ".join(entry.hosts) or "-",
            f"{entry.until:%Y-%m-%d}",
            "-" if state == "ended" else left(entry.until, at),
            state,
        )
        table.add_row(*map(Text, cells))
    console.print(table)
    if shown.serial:
        console.print(Text(f"serial {shown.serial}"))
