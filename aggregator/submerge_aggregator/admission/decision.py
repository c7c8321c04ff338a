"""objection(): whether a node may join, report or watch. Values in, a decision out.

1. What is revoked may nothing.
2. A certificate with a role decides: its role and its groups.
3. Without a role, because the certificate was made before there were roles, or because a broker
   keeps the certificates, the roster decides. An operator wrote it.
4. If the roster is silent, a name keeps the role under which it stands in the store, until it is
   forgotten. A client's kit gets no rights of an aggregator by showing a fence.
5. A name that is new is a client. It may be an aggregator if [listen] aggregators lists it.
6. Without TLS there is no identity that could be proven: what a message shows is believed.
7. [listen] aggregators and [groups.X] nodes restrict further, whatever else allows.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from submerge import UsageError
from submerge.protocol.messages import Join, Report
from submerge.protocol.permission import Permission, Role
from submerge_aggregator.admission.roster import RevokedList, RosterEntry
from submerge_aggregator.downlink import PeerIdentity

NEW_AGGREGATOR = (
    "a new node without a role is a client, and this message is an aggregator's: give it a kit"
    " with the role (submerge pki issue NAME --role aggregator), or list it in the roster or in"
    " [listen] aggregators"
)

STANDING = (
    "it stands so in the store: give it a kit with its role, or list it in the roster; or forget"
    " it, and it may be the other"
)


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """What an operator has settled.

    aggregators : Patterns of the names that may be aggregators; None: any.
    nodes : Patterns of the names in a group; any in a group that is not there.
    legacy_kits : Certificates without a role are let in.
    """

    aggregators: Sequence[str] | None = None
    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    legacy_kits: bool = True
    roster: Mapping[str, RosterEntry] = field(default_factory=dict)
    revoked: RevokedList = field(default_factory=RevokedList)


class Sender(NamedTuple):
    """Who asks: the name, what stands for it, and the role of that name in the store."""

    node: str
    identity: PeerIdentity
    standing: Role | None = None


def objection(
    rules: AdmissionRules, sender: Sender, group: str, message: Join | Report | None
) -> str | None:
    """Return why a node is refused, and what to do; None if admitted. No message: it watches."""
    why = revocation(rules.revoked, sender)
    if why is not None:
        return why
    try:
        certified = Permission.of(sender.identity.uris)
    except UsageError as error:
        return f"its certificate cannot be used: {error}"
    if certified is None and sender.identity.proof == "certificate" and not rules.legacy_kits:
        return (
            "its certificate names no role, and legacy_kits = false:"
            " give it a kit with a role (submerge pki issue NAME --role ROLE)"
        )
    fenced = message is not None and bool(message.fence)
    if fenced and rules.aggregators is not None and not matches(sender.node, rules.aggregators):
        return f"[listen] aggregators does not list {sender.node}"
    patterns = rules.nodes.get(group)
    if patterns is not None and not matches(sender.node, patterns):
        return f"[groups.{group}] nodes does not list {sender.node}"
    if certified is not None:
        return _refused_by(certified, message, group, "by its certificate")
    return _uncertified(rules, sender, group, message)


def _uncertified(
    rules: AdmissionRules, sender: Sender, group: str, message: Join | Report | None
) -> str | None:
    """Return the objection to a node whose certificate names no role, or is not seen here."""
    entry = rules.roster.get(sender.node, RosterEntry(None))
    if entry.role is not None:
        return _refused_by(Permission(entry.role, entry.groups), message, group, "by the roster")
    role = sender.standing if sender.identity.proof != "none" else None
    if role is not None and message is not None:
        return _refused_by(Permission(role, entry.groups), message, group, STANDING)
    if message is None or not message.fence:
        return _refused_by(Permission("client", entry.groups), message, group, "by the roster")
    # Where aggregators are listed, it is: the others are refused already.
    if sender.identity.proof != "none" and rules.aggregators is None:
        return NEW_AGGREGATOR
    return _refused_by(Permission("aggregator", entry.groups), message, group, "by the roster")


def revocation(revoked: RevokedList, sender: Sender) -> str | None:
    """Return that a node's name or certificate is revoked; None if neither is."""
    if sender.node in revoked.nodes:
        return "revoked: its name is in [security] revoked"
    if sender.identity.proof != "certificate" or not revoked.serials:
        return None
    serial = sender.identity.serial
    if serial is None:
        return "revoked: the serial number of its certificate cannot be read"
    if serial in revoked.serials:
        return f"revoked: its certificate {serial:040X} is in [security] revoked"
    return None


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a name fits one of some patterns: * is any text, ? one letter."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _refused_by(
    permission: Permission, message: Join | Report | None, group: str, source: str
) -> str | None:
    """Return a permission's objection, and where the permission is from."""
    why = permission.objection_to(group) if message is None else permission.objection(message)
    return None if why is None else f"{why} ({source})"
