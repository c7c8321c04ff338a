"""Issued: the record of who has a kit, kept beside the authority as JSON.

It is what `renew` renews and what `issue` will not do twice. It has no secrets; without it
the certificates go on holding, but nobody knows whose there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from submerge import UsageError
from submerge.protocol.settings import check_names

SOON = timedelta(days=30)
"""Less than this is soon enough to be told, and to be renewed."""

VERSION = 1


class Entry(NamedTuple):
    """A node's newest certificate.

    Attributes
    ----------
    node : str
        Its name.
    hosts : tuple of str
        Names and addresses that it may serve under; none for a client's.
    serial : str
        In hexadecimal digits.
    until : datetime
        When it ends.
    lasts : timedelta
        How long it was to hold when it was made: as long as the next.
    """

    node: str
    hosts: tuple[str, ...]
    serial: str
    until: datetime
    lasts: timedelta

    def state(self, now: datetime) -> str:
        """Return `ended`, `soon`, or nothing where nothing is to be done."""
        return state_of(self.until, now)


def state_of(until: datetime, now: datetime) -> str:
    """Return `ended`, `soon`, or nothing where nothing is to be done."""
    left = until - now
    return "ended" if left <= timedelta(0) else "soon" if left < SOON else ""


def stamped(time: datetime) -> str:
    """Write a time: `2027-02-20T10:00:00Z`."""
    return f"{time:%Y-%m-%dT%H:%M:%S}Z"


def written(entries: Mapping[str, Entry]) -> bytes:
    """Return a record as a file has it, by name."""
    kits = {
        node: {
            "hosts": entry.hosts,
            "serial": entry.serial,
            "until": stamped(entry.until),
            "lasts_s": entry.lasts.total_seconds(),
        }
        for node, entry in sorted(entries.items())
    }
    return (json.dumps({"version": VERSION, "kits": kits}, indent=1) + "\n").encode()


def parsed(data: bytes, whence: str) -> dict[str, Entry]:
    """Return what a record's file says.

    Raises
    ------
    UsageError
        If it says nothing that this version reads.
    """
    try:
        reported = json.loads(data)
        if reported["version"] != VERSION:
            raise ValueError(f"its version is {reported['version']}, this reads {VERSION}")
        return {node: _entry(node, fields) for node, fields in reported["kits"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise UsageError(
            f"expected the record of what was issued in {whence}, got something else"
            f" ({type(error).__name__}: {error}): take it from a backup"
        ) from error


def check_new(nodes: Iterable[str], known: Iterable[str]) -> None:
    """Refuse what is no name, or differs from another in capitals only.

    On some disks, the kits of such two were one file. And `score` is a topic of all nodes: a
    broker would let whoever is called so write everybody's scores.
    """
    taken = {name.lower(): name for name in known}
    for node in nodes:
        check_names(node)
        if node.lower() == "score":
            raise UsageError(f"expected a name that is no topic of ours, got {node}")
        other = taken.setdefault(node.lower(), node)
        if other != node:
            raise UsageError(
                f"expected names that differ in more than capitals, got {node} beside {other}"
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
