"""Permission: what a certificate allows its node, in alternative names that are URIs of our own.

They are `submerge:role=client` and `submerge:group=room`. None without a role: an early kit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

from submerge.errors import UsageError
from submerge.protocol.messages import Join, Report
from submerge.protocol.names import NAME_RULE, is_name

Role = Literal["client", "aggregator", "reader", "operator"]
ROLES: tuple[Role, ...] = get_args(Role)
"""It reports its own readings; it reports for all below it; it only receives models; it gives
orders, and receives models."""

ROLE_URI, GROUP_URI = "submerge:role=", "submerge:group="


class Permission(NamedTuple):
    """What a node may do, in these groups; empty: in all."""

    role: Role
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, uris: Iterable[str]) -> Permission | None:
        """Return what a certificate's URIs allow; None without a role, UsageError if wrong."""
        uris = tuple(uris)
        roles = [uri.removeprefix(ROLE_URI) for uri in uris if uri.startswith(ROLE_URI)]
        groups = [uri.removeprefix(GROUP_URI) for uri in uris if uri.startswith(GROUP_URI)]
        if not roles and not groups:
            return None
        named = [role for role in ROLES if [role] == roles]
        if not named:
            raise UsageError(f"a certificate has one role of {', '.join(ROLES)}, got {roles}")
        for group in groups:
            if not is_name(group):
                raise UsageError(f"a group's name is {NAME_RULE}, got {group!r}")
        return cls(named[0], tuple(dict.fromkeys(groups)))

    @property
    def uris(self) -> tuple[str, ...]:
        return (f"{ROLE_URI}{self.role}", *(f"{GROUP_URI}{group}" for group in self.groups))

    def objection(self, message: Join | Report) -> str | None:
        """Return why a node may not send a message; an aggregator has a fence in each."""
        if self.role not in ("client", "aggregator"):
            return f"its role is {self.role}, which sends no joins and no reports"
        if bool(message.fence) != (self.role == "aggregator"):
            got = "an aggregator's" if message.fence else "a client's"
            return f"its role is {self.role}, and this message is {got}"
        return self.objection_to(message.stamp.group)

    def objection_to(self, group: str) -> str | None:
        """Return why a node may not receive a group's schema and models; None if it may."""
        if not self.groups or group in self.groups:
            return None
        return f"its groups are {', '.join(self.groups)}, got {group}: correct one of them"
