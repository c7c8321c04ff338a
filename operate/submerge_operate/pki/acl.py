"""Rules of a broker and a roster of nodes, as text, made from the record of issued kits.

Mosquitto knows of a certificate no more than its common name. So the rules have a block for each
kit. What is not granted is forbidden: a name without a block may do nothing. A fleet in a topic
is +, for one broker may have several.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator

from submerge.protocol.names import is_reserved
from submerge_operate.pki.issued import Entry

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
        role = "none: a kit from before roles" if entry.permission is None else _said(entry)
        lines = [f"# role {role}", f"user {entry.node}"]
        lines += [f"topic {rule}" for rule in rules_of(entry)]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def roster_text(entries: Iterable[Entry], revoked: Collection[str]) -> str:
    """Return a list of what nodes may do, for aggregators: node, role, groups; with a heading.

    Kits without a role are left out: what their nodes may do is decided elsewhere.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("node", "role", "groups"))
    for entry in entries:
        if entry.permission is not None and entry.node not in revoked:
            table.writerow((entry.node, entry.permission.role, " ".join(entry.permission.groups)))
    return text.getvalue()


def rules_of(entry: Entry) -> Iterator[str]:
    """Yield what a node may write and read: `write submerge/v1/+/score/pump-3`."""
    permission = entry.permission
    if permission is None or permission.role in ("client", "aggregator"):
        yield from _as_child(entry)
    if permission is None or permission.role == "aggregator":
        # All below its own name: messages of its children, and its answers.
        yield f"readwrite {PREFIX}/{entry.node}/#"
    yield f"read {PREFIX}/+/hello"
    for group in _groups(entry):
        yield f"read {PREFIX}/+/model/{group}"
    if permission is None or permission.role == "reader":
        yield from SPECIAL.get(entry.node, ())


def _as_child(entry: Entry) -> Iterator[str]:
    """Yield what a node needs that reports: over its parent, its scores and its alarms."""
    node = entry.node
    for group in _groups(entry):
        yield f"write {PREFIX}/+/up/{node}/join/{group}"
        yield f"write {PREFIX}/+/up/{node}/report/{group}"
        yield f"write {PREFIX}/+/up/{node}/drill/{group}"
        yield f"write {PREFIX}/+/up/{node}/reply/{group}"
        yield f"write {PREFIX}/+/up/{node}/job/{group}"
    yield f"write {PREFIX}/+/up/{node}/state"
    yield f"read {PREFIX}/+/down/{node}/#"
    yield f"write {PREFIX}/score/{node}"
    yield f"write {PREFIX}/alarm/{node}"
    yield f"write {PREFIX}/alarm/{node}/state"
    # It describes its alarms to Home Assistant: sensors only, no switches.
    yield f"write homeassistant/binary_sensor/{node}/+/config"
    yield f"write homeassistant/sensor/{node}/+/config"


def _groups(entry: Entry) -> tuple[str, ...]:
    return (entry.permission.groups if entry.permission is not None else ()) or ("+",)


def _said(entry: Entry) -> str:
    if entry.permission is None or not entry.permission.groups:
        return "" if entry.permission is None else f"{entry.permission.role}, all groups"
    return f"{entry.permission.role}, groups {' '.join(entry.permission.groups)}"
