"""Issuing: what the commands that make kits have in common, from their options to their words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from submerge.errors import UsageError
from submerge_fleet.console.options import FILE, FOLDER
from submerge_fleet.console.units import ago, duration, span_text
from submerge_fleet.pki.issued import Entry, check_new, stamped

if TYPE_CHECKING:
    from submerge_fleet.pki.directory import PkiDirectory

PKI = Path("pki")

SHORTEST_S, LONGEST_S = 1.0, 100 * 365 * 86400.0

LONGEST_PASSPHRASE = 1000
"""Bytes; OpenSSL takes little more."""


def span(text: str) -> timedelta:
    """Return how long a certificate is to hold: `90d`, `1y`, `10m`."""
    seconds = duration(text)
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise click.BadParameter(f"expected from {span_text(SHORTEST_S)} to 100y, got {text!r}")
    return timedelta(seconds=int(seconds))


DIRECTORY = click.option(
    "--dir",
    "directory",
    type=FOLDER,
    default=PKI,
    show_default=True,
    help="Where the authority lives.",
)
PASSPHRASE = click.option(
    "--passphrase-file",
    type=FILE,
    help="What the authority's key is encrypted with.  [default: it is not]",
)
LASTS = click.option(
    "--lasts",
    type=span,
    metavar="DURATION",
    default="90d",
    show_default=True,
    help="How long: 90d, 1y, 10m; m is minutes.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


class KitRequest(NamedTuple):
    """A kit that is to be made: whose, where it serves, for how long."""

    node: str
    hosts: tuple[str, ...]
    lasts: timedelta


def now() -> datetime:
    """Return the time, in the whole seconds of certificates."""
    return datetime.now(UTC).replace(microsecond=0)


def opened(directory: Path, passphrase_file: Path | None = None) -> PkiDirectory:
    """Return a pki directory; say what is missing if nothing here can make certificates."""
    try:
        from submerge_fleet.pki.directory import PkiDirectory
    except ModuleNotFoundError as error:
        if (error.name or "submerge").startswith("submerge"):
            raise
        raise click.UsageError(
            f"this needs {error.name}, which is not here: pip install 'submerge[pki]'"
        ) from error
    return PkiDirectory(directory, _passphrase(passphrase_file))


def make(
    pki: PkiDirectory,
    wanted: Sequence[KitRequest],
    entries: dict[str, Entry],
    *,
    at: datetime,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Entry]:
    """Write kits, and what was made into a record (PkiDirectory.issuing).

    All names are judged before anything is written.

    Raises
    ------
    UsageError
        If one is no name, or another's but for capitals, or the authority cannot sign.
    """
    check_new((each.node for each in wanted), entries)
    authority = pki.authority()
    made = []
    for node, hosts, long in wanted:
        certified = authority.certify(node, hosts, now=at, lasts=long)
        pki.put(certified, authority)
        entry = Entry(node, hosts, certified.serial, certified.until, long)
        entries[node] = entry
        made.append(entry)
        advance(1)
    if any(entry.until < at + entry.lasts for entry in made):
        click.echo(
            f"shorter than asked for: the authority itself ends on {stamped(authority.until)}",
            err=True,
        )
    return made


def line_of(entry: Entry, path: Path, at: datetime) -> str:
    """Say what a kit is."""
    role = f"serves as {' '.join(entry.hosts)}" if entry.hosts else "a client"
    return f"{path}: {entry.node}, {role}, until {stamped(entry.until)} ({left(entry.until, at)})"


def left(until: datetime, at: datetime) -> str:
    """Say how long a certificate still holds."""
    seconds = (until - at).total_seconds()
    return ago(seconds) if seconds > 0 else f"ended {ago(-seconds)} ago"


def as_dict(entry: Entry, path: Path, at: datetime) -> dict[str, object]:
    """Return a kit for a program."""
    return {
        "node": entry.node,
        "hosts": entry.hosts,
        "serial": entry.serial,
        "until": stamped(entry.until),
        "left_s": (entry.until - at).total_seconds(),
        "state": entry.state(at) or "holds",
        "kit": str(path),
    }


def print_json(pki: PkiDirectory, at: datetime, span_text: Mapping[str, Iterable[Entry]]) -> None:
    """Print what was done to whom."""
    lists = {
        what: [as_dict(each, pki.kit(each.node), at) for each in entries]
        for what, entries in span_text.items()
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
