"""The record of issued kits, stored beside the authority as JSON.

`renew` renews the nodes in it, and `issue` refuses them. It has no secrets. Without it the
certificates stay valid, but there is no list of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from submerge import UsageError
from submerge.protocol.settings import check_names

SOON = timedelta(days=30)
"""Time before its end from which a certificate is shown as `soon`, and renewed."""

VERSION = 1


class Entry(NamedTuple):
    """A node's newest certificate.

    Attributes
    ----------
    hosts : tuple of str
        Names and addresses of a server; none for a client.
    serial : str
        In hexadecimal digits.
    until : datetime
        Its end.
    lasts : timedelta
        The requested time from its start to its end, also for the next certificate.
    """

    node: str
    hosts: tuple[str, ...]
    serial: str
    until: datetime
    lasts: timedelta

    def state(self, now: datetime) -> str:
        """Return `ended`, `soon`, or an empty string."""
        return state_of(self.until, now)


def state_of(until: datetime, now: datetime) -> str:
    """Return `ended`, `soon`, or an empty string."""
    left = until - now
    return "ended" if left <= timedelta(0) else "soon" if left < SOON else ""


def timestamp(time: datetime) -> str:
    """Return a time as text: `2027-02-20T10:00:00Z`."""
    return f"{time:%Y-%m-%dT%H:%M:%S}Z"


def record_text(entries: Mapping[str, Entry]) -> bytes:
    """Return a record as JSON, sorted by name."""
    kits = {
        node: {
            "hosts": entry.hosts,
            "serial": entry.serial,
            "until": timestamp(entry.until),
            "lasts_s": entry.lasts.total_seconds(),
        }
        for node, entry in sorted(entries.items())
    }
    return (json.dumps({"version": VERSION, "kits": kits}, indent=1) + "\n").encode()


def parse_record(data: bytes, whence: str) -> dict[str, Entry]:
    """Return the entries of a record.

    Raises
    ------
    UsageError
        If this version cannot read it.
    """
    try:
        record = json.loads(data)
        if record["version"] != VERSION:
            raise ValueError(f"its version is {record['version']}, this reads {VERSION}")
        return {node: _entry(node, fields) for node, fields in record["kits"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise UsageError(
            f"expected the record of what was issued in {whence}, got something else"
            f" ({type(error).__name__}: {error}): take it from a backup"
        ) from error


def check_new(nodes: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a bad name, or one that differs from another in capitals only.

    On some disks the kits of two such nodes would be one file. And `score` is a topic of all nodes:
    a broker would let a node of that name write the scores of all others.
    """
    taken = {name.lower(): name for name in known}
    for node in nodes:
        check_names(node)
        if node.lower() == "score":
            raise UsageError(f"expected a name other than the topic {node}")
        other = taken.setdefault(node.lower(), node)
        if other != node:
            raise UsageError(
                f"expected names that differ in more than capitals, got {node} and {other}"
            )


def _entry(node: str, fields: dict[str, Any]) -> Entry:
    check_names(node)
    if not all(isinstance(host, str) for host in fields["hosts"]):
        raise ValueError(f"hosts of {node}")
    return Entry(
        node,
        tuple(fields["hosts"]),
        str(fields["serial"]),
        datetime.strptime(fields["until"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC),
        timedelta(seconds=fields["lasts_s"]),
    )
