"""AskedNode: what one node says when it is asked, and where it is in the tree."""

from __future__ import annotations

import json

from submerge_files.console.admin_client import AdminClient
from submerge_operate.fleet.nodes_found import find


class AskedNode:
    """A node that is asked, again and again if need be.

    node : Its name, or that of the aggregator that the command asks.
    group : Needed if it is in several.

    Raises
    ------
    UsageError
        If there is no such node, here or below.
    """

    def __init__(self, admin: AdminClient, node: str, group: str | None) -> None:
        self._admin, self._query = admin, dict[str, str]()
        if node == json.loads(admin.get())["node"]:
            self._group = admin.groups()[0] if group is None else group
            return
        found = find(admin, node, group)
        self._group = found.group
        self._query = {"path": f"{found.under}/{node}" if found.under else node}

    def ask(self, topic: str) -> bytes:
        """Return what it says to a topic, as JSON.

        Raises
        ------
        SubmergeError
            If it says nothing, and why.
        """
        return self._admin.get(topic, self._group, **self._query)
