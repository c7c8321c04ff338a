"""AdmissionControl: the decisions of one running aggregator, asked from several threads."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from submerge import UsageError
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.ledger import Ledger
from submerge.protocol.messages import (
    Answer,
    DrillReport,
    DrillTaken,
    FromBelow,
    Join,
    Joined,
    QuestionReply,
    Reason,
    ReplyTaken,
    Report,
)
from submerge.protocol.permission import ROLE_URI, Permission, Role
from submerge_aggregator.admission.roster import (
    RevokedList,
    RosterEntry,
    parse_revoked,
    parse_roster,
)
from submerge_aggregator.admission.watched_file import WatchedFile
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.downlink import PeerIdentity
from submerge_client.logs import say


def standing_of(node: AggregatorNode, name: str) -> Role | None:
    """Return the role of a name by what is held of it in any group; None if nothing is."""
    # A fence makes it an aggregator's. A node that was forgotten stands for nothing.
    standing: Role | None = None
    for group in node.groups:
        ledger = node.ledger(group)
        if ledger is None or not ledger.knows(name):
            continue
        live = ledger.live(name)
        if ledger.member(name).fences or any(
            not ledger.rows[name, incarnation].from_client for incarnation in live
        ):
            return "aggregator"
        if live or _is_sealed(ledger, name):
            standing = "client"
    return standing


def _is_sealed(ledger: Ledger, name: str) -> bool:
    """Return whether closed incarnations of a node have left readings."""
    if (name, ledger.fingerprint) in ledger.sealed:
        return True
    # Of another schema: rare, and only of names that have been here.
    return any(node == name for node, _ in ledger.sealed)


MOST_COUNTED = 65_536  # most names with legacy kits that are counted: as many as there are watches


class AdmissionControl:
    """Who may do what, now; roster and revoked list are what the files say."""

    def __init__(
        self,
        rules: AdmissionRules | None = None,
        *,
        roster: WatchedFile[Mapping[str, RosterEntry]] | None = None,
        revoked: WatchedFile[RevokedList] | None = None,
    ) -> None:
        self._rules = AdmissionRules() if rules is None else rules
        self._roster, self._revoked = roster, revoked
        self._banned: Mapping[str, frozenset[str]] = {}
        self._revision = 0
        self._lock = threading.Lock()
        self._legacy: set[str] = set()

    @property
    def legacy_kits(self) -> int:
        """How many names have shown a certificate without a role."""
        return len(self._legacy)

    @property
    def revision(self) -> int:
        self._current()
        return self._revision

    def set_banned(self, banned: Mapping[str, frozenset[str]]) -> None:
        """Take over which nodes are banned, by group: nothing that they watch stays open."""
        if banned != self._banned:
            with self._lock:
                self._banned, self._revision = banned, self._revision + 1

    def objection(
        self, message: FromBelow, identity: PeerIdentity, node: AggregatorNode
    ) -> str | None:
        """Return why a message of a child is refused; None if the machine may take it."""
        name, group = message.stamp.node, message.stamp.group
        # It needs no more than to watch: the machine takes these of those who report.
        if isinstance(message, DrillReport | QuestionReply):
            return self.objection_to_watch(identity, name, group)
        self._count(name, identity)
        sender = Sender(name, identity, standing_of(node, name))
        return objection(self._current(), sender, group, message)

    def objection_to_watch(self, identity: PeerIdentity, name: str, group: str) -> str | None:
        self._count(name, identity)
        why = objection(self._current(), Sender(name, identity), group, None)
        if why is None and name in self._banned.get(group, ()):
            return "an operator has banned it"
        return why

    def objection_to_orders(self, identity: PeerIdentity, name: str) -> str | None:
        """Return why a certificate is worth nothing any more, whatever its role; None if it is."""
        why = revocation(self._current().revoked, Sender(name, identity))
        if why is None and any(name in banned for banned in self._banned.values()):
            return "an operator has banned it"
        return why

    def _current(self) -> AdmissionRules:
        rules = self._rules
        roster = rules.roster if self._roster is None else self._roster.current()
        revoked = rules.revoked if self._revoked is None else self._revoked.current()
        if roster is not rules.roster or revoked is not rules.revoked:
            with self._lock:
                self._rules = replace(self._rules, roster=roster, revoked=revoked)
                self._revision += 1
        return self._rules

    def _count(self, name: str, identity: PeerIdentity) -> None:
        if identity.proof != "certificate" or name in self._legacy:
            return
        if any(uri.startswith(ROLE_URI) for uri in identity.uris):
            return
        if len(self._legacy) < MOST_COUNTED:
            self._legacy.add(name)
            say("kit without a role", level="debug", node=name)


def denial_of(
    message: FromBelow, why: str, node: AggregatorNode
) -> Joined | Answer | DrillTaken | ReplyTaken:
    """Return the answer to a message that is not admitted: it hands out no schema."""
    if isinstance(message, DrillReport):
        return DrillTaken(message.stamp, Reason.DENIED)
    if isinstance(message, QuestionReply):
        return ReplyTaken(message.stamp, Reason.DENIED)
    pinned = node.incarnation if node.settled else None
    stamp, fence = message.stamp, message.fence
    if isinstance(message, Join):
        return Joined(stamp._replace(seq=0), Reason.DENIED, fence, pinned, node.top, 0, b"", (why,))
    return Answer(stamp, Reason.DENIED, fence, pinned, node.top)


def make_admission(config: AggregatorConfig) -> AdmissionControl:
    listen, revoked = config.listen, config.security.revoked
    rules = AdmissionRules(
        listen.aggregators,
        {name: each.nodes for name, each in config.groups.items() if each.nodes is not None},
        listen.legacy_kits,
    )
    control = AdmissionControl(
        rules,
        roster=None
        if listen.roster is None
        else WatchedFile(listen.roster, parse_roster, setting="listen.roster"),
        revoked=None
        if revoked is None
        else WatchedFile(revoked, parse_revoked, setting="security.revoked"),
    )
    _say_how(config)
    return control


def _say_how(config: AggregatorConfig) -> None:
    """Say how nodes without a role are treated, where there is a proof of who they are."""
    listen, grpc, mqtt = config.listen, config.listen.grpc, config.listen.mqtt
    listed = listen.roster is not None or listen.aggregators is not None
    if grpc is not None and not grpc.insecure and (grpc.cert is None or grpc.ca is not None):
        if listen.legacy_kits:
            todo = "nothing now; legacy_kits = false in [listen] once submerge_legacy_kits is 0"
            say("kits from before there were roles are let in", link="listen.grpc", todo=todo)
        else:
            say("kits without a role are refused", link="listen.grpc")
    if mqtt is not None and not mqtt.insecure and not listed:
        meaning = "a broker shows no certificates: names keep their role in the store"
        todo = "a new aggregator needs listen.roster or listen.aggregators"
        say("no roster", level="warning", link="listen.mqtt", meaning=meaning, todo=todo)


# objection(): whether a node may join, report or watch. Values in, a decision out.
#
# 1. What is revoked may nothing.
# 2. A certificate with a role decides: its role and its groups.
# 3. Without a role, because the certificate was made before there were roles, or because a broker
#    keeps the certificates, the roster decides. An operator wrote it.
# 4. If the roster is silent, a name keeps the role under which it stands in the store, until it is
#    forgotten. A client's kit gets no rights of an aggregator by showing a fence.
# 5. A name that is new is a client. It may be an aggregator if [listen] aggregators lists it.
# 6. Without TLS there is no identity that could be proven: what a message shows is believed.
# 7. [listen] aggregators and [groups.X] nodes restrict further, whatever else allows.

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
    aggregators: Sequence[str] | None = None  # patterns of names; None: any
    nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # patterns, by group; else any
    legacy_kits: bool = True  # certificates without a role are let in
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
