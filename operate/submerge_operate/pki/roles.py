"""Roles and groups of kits, as commands and lists of nodes name them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from submerge.errors import UsageError
from submerge.protocol.names import NAME_RULE, is_name
from submerge.protocol.permission import ROLES, Permission, Role

SERVERS: tuple[Role, ...] = ("aggregator", "reader")
"""Roles of kits that may have hosts: a reader with hosts is a broker."""

ROLE = click.option(
    "--role",
    type=click.Choice(ROLES),
    help="What the node may do: client sends its own reports; aggregator has children; reader"
    " receives models (a dashboard, or with --host a broker); operator gives orders, too.",
)
GROUP = click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME",
    help="A group in which it may do so; may be repeated.  [default: all groups]",
)


def permission_of(role: str, groups: Sequence[str], *, hosts: Sequence[str]) -> Permission:
    """Return a permission; without a role, an aggregator's if there are hosts, else a client's.

    Raises UsageError if the role is unknown, or a group is no name.
    """
    role = role or ("aggregator" if hosts else "client")
    named = next((each for each in ROLES if each == role), None)
    if named is None:
        raise UsageError(f"expected a role, {', '.join(ROLES)}, got {role[:80]!r}")
    for group in groups:
        if not is_name(group):
            raise UsageError(f"a group's name is {NAME_RULE}, got {group[:80]!r}")
    return Permission(named, tuple(dict.fromkeys(groups)))


def renewed(
    before: Permission | None, role: str | None, groups: Sequence[str], *, every_group: bool
) -> Permission | None:
    """Return the permission of a new kit in place of an older one; both are kept by default.

    Raises UsageError if there are groups and no role.
    """
    if groups and every_group:
        raise UsageError("expected --group or --every-group, got both")
    if role is None and before is None:
        if groups or every_group:
            raise UsageError("a kit without a role has no groups: add --role")
        return None
    kept = () if before is None or every_group else before.groups
    role = role or (before.role if before is not None else "")
    return permission_of(role, groups or kept, hosts=())


def check_serving(node: str, hosts: Sequence[str], permission: Permission | None) -> None:
    """Refuse hosts of a node whose role is not a server's.

    Raises UsageError if there are hosts, and a role that has none.
    """
    if hosts and permission is not None and permission.role not in SERVERS:
        raise UsageError(
            f"{node}: only {' and '.join(f'role {each}' for each in SERVERS)} have hosts (a broker"
            f" is a reader with hosts), got role {permission.role} and {' '.join(hosts)}"
        )
