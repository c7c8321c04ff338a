"""The record of issued kits, beside the authority as JSON: what `renew` renews. No secrets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import click

from submerge import UsageError
from submerge.protocol.names import is_reserved
from submerge.protocol.permission import GROUP_URI, ROLE_URI, Permission
from submerge.protocol.settings import check_names
from submerge_files.console.units import duration, span_text

SOON = timedelta(days=30)  # time before its end from which a certificate is `soon`, and renewed

VERSION = 2

SHORTEST_S, LONGEST_S = 1.0, 100 * 365 * 86400.0

NEVER = datetime.min.replace(tzinfo=UTC)


def span(text: str) -> timedelta:
    """Return the validity of a certificate: `90d`, `1y`, `10m`."""
    seconds = duration(text)
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise click.BadParameter(f"expected from {span_text(SHORTEST_S)} to 100y, got {text!r}")
    return timedelta(seconds=int(seconds))


class Entry(NamedTuple):
    """A node's certificate: its newest one, or one that is asked for."""

    node: str
    hosts: tuple[str, ...]  # names and addresses of a server; none for a client
    lasts: timedelta  # the requested time from its start to its end, also for the next certificate
    # its role and groups; None: it was made before there were roles
    permission: Permission | None = None
    # in hexadecimal digits, and its end; of one that is asked for there are none
    serial: str = ""
    until: datetime = NEVER
    # serial numbers and ends of its earlier certificates that have not ended yet
    past: tuple[tuple[str, datetime], ...] = ()

    @property
    def role(self) -> str:
        """Its role; empty for a kit from before there were roles."""
        return "" if self.permission is None else self.permission.role

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups in which its role holds; empty for all."""
        return () if self.permission is None else self.permission.groups

    @property
    def serials(self) -> tuple[str, ...]:
        """The serial numbers of all its certificates that are known, the newest last."""
        return (*(serial for serial, _ in self.past), self.serial)

    def earlier(self, now: datetime) -> tuple[tuple[str, datetime], ...]:
        """Return `past` of the certificate that replaces this one now."""
        mine = (*self.past, (self.serial, self.until))
        return tuple((serial, until) for serial, until in mine if until > now)

    def state(self, now: datetime) -> str:
        return state_of(self.until, now)

    @property
    def facts(self) -> dict[str, Any]:
        """What the record and `--json` say of it alike."""
        return {
            "hosts": self.hosts,
            "serial": self.serial,
            "until": timestamp(self.until),
            "role": self.role,
            "groups": self.groups,
        }


def state_of(until: datetime, now: datetime) -> str:
    """Return `ended`, `soon`, or an empty string."""
    left = until - now
    return "ended" if left <= timedelta(0) else "soon" if left < SOON else ""


def timestamp(time: datetime) -> str:
    """Return a time as text: `2027-02-20T10:00:00Z`."""
    return f"{time:%Y-%m-%dT%H:%M:%S}Z"


def record_text(entries: Mapping[str, Entry]) -> bytes:
    kits = {
        node: {
            **entry.facts,
            "lasts_s": entry.lasts.total_seconds(),
            "past": [[serial, timestamp(until)] for serial, until in entry.past],
        }
        for node, entry in sorted(entries.items())
    }
    return (json.dumps({"version": VERSION, "kits": kits}, indent=1) + "\n").encode()


def parse_record(data: bytes, whence: str) -> dict[str, Entry]:
    """Return the entries of a record; raises UsageError if this version cannot read it."""
    version = None
    try:
        record = json.loads(data)
        version = record["version"]
        if version != VERSION:
            raise ValueError(f"its version is {version}, this reads {VERSION}")
        return {node: _entry(node, fields) for node, fields in record["kits"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        todo = "take it from a backup"
        if version == 1:
            todo = "submerge before 28 November 2026 wrote it; renew a kit with that of that day"
        raise UsageError(
            f"expected the record of what was issued in {whence}, got something else"
            f" ({type(error).__name__}: {error}): {todo}"
        ) from error


def check_new(nodes: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a bad name, a word of topics, or a name that differs from another in capitals only."""
    # On some disks the kits of two such nodes would be one file.
    taken = {name.lower(): name for name in known}
    for node in nodes:
        check_node(node)
        other = taken.setdefault(node.lower(), node)
        if other != node:
            raise UsageError(
                f"expected names that differ in more than capitals, got {node} and {other}"
            )


def check_node(node: str) -> None:
    check_names(node)
    if is_reserved(node):
        raise UsageError(f"{node} is a word of MQTT topics: choose another name for the node")


def _entry(node: str, fields: dict[str, Any]) -> Entry:
    check_names(node)
    if not all(isinstance(host, str) for host in fields["hosts"]):
        raise ValueError(f"hosts of {node}")
    role, groups = fields.get("role", ""), fields.get("groups", ())
    uris = (f"{ROLE_URI}{role}", *(f"{GROUP_URI}{group}" for group in groups))
    return Entry(
        node,
        tuple(fields["hosts"]),
        timedelta(seconds=fields["lasts_s"]),
        Permission.of(uris) if role else None,
        str(fields["serial"]),
        _time(fields["until"]),
        tuple((str(serial), _time(until)) for serial, until in fields.get("past", ())),
    )


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
