"""ParentName: under which name a gRPC parent has to prove itself.

An aggregator's kit has a DNS name of ours (`names.server_name`). A child asks for this name, not
for the host's: another node's kit does not have it, whatever host it is reached under, and a
client's kit is not valid for a server at all. There is no setting. The child's own certificate
says whether its authority issues roles:

1. Own certificate without a role, or none: the host name is checked, as with any server. This is
   so with an authority that is not ours.
2. Own certificate with a role: the parent's name is checked. If that fails, the child looks at the
   certificate that the server shows. One of our authority, for this host, and without a role was
   made before there were roles: then the host name is checked, until that connection ends. The next
   one begins with the parent's name again.

So kits may be renewed in any order, and no node is cut off meanwhile. Rule 2 accepts no more than
rule 1, and it ends by itself when the last certificate of a server without a role has ended.
"""

from __future__ import annotations

import logging
import socket
from typing import Any

from submerge import UsageError
from submerge.protocol.names import server_name
from submerge.protocol.permission import Permission
from submerge_client.logs import say
from submerge_client.uplink.identity import alternatives, common_name, identity
from submerge_client.uplink.tls import Tls

LOOK_S = 5.0
"""Seconds for one look at a server's certificate."""


class ParentName:
    """The name that a parent's certificate must have.

    parent : The configured parent; empty: only the host name is checked.
    host, port : Where it listens.

    by_host : Whether the next connection checks the host name, for the parent has an old
        certificate.
    """

    def __init__(self, parent: str, host: str, port: int, tls: Tls) -> None:
        self.by_host = False
        self._said = False
        self._parent, self._host, self._port, self._tls = parent, host, port, tls

    @property
    def expected(self) -> str:
        """The name to check in place of the host's; empty: the host's.

        Raises UsageError if our own certificate is unusable.
        """
        if self.by_host or not self._parent or not self._tls.proves:
            return ""
        return "" if identity(self._tls).permission is None else server_name(self._parent)

    def options(self) -> tuple[tuple[str, Any], ...]:
        """Return options of a gRPC channel."""
        name = self.expected
        return (("grpc.ssl_target_name_override", name),) if name else ()

    def parted(self, why: str, *, proven: bool) -> str:
        """Note that a connection has ended, and return why, with the server's name if that is it.

        Without proof of the name it looks at the server, by a connection of its own, for up to
        LOOK_S; a server counts that as a failed handshake.
        """
        if proven or self.by_host:
            self.by_host = False
            return why
        try:
            if not self.expected:
                return why
            shown = shown_by(self._host, self._port, self._tls)
            found = Permission.of(alternatives(shown, "URI"))
        except (UsageError, OSError):  # ssl.SSLError is one: nothing there, or no server of ours
            return why
        if found is None:
            self.by_host = True
            self._say_old()
            return why
        if server_name(self._parent) in alternatives(shown, "DNS"):
            return why  # it is another reason
        return f"expected aggregator {self._parent}, got {found.role} {common_name(shown)}; {why}"

    def _say_old(self) -> None:
        """Log once that the parent's certificate is from before there were roles."""
        if not self._said:
            say(
                "the parent's certificate has no role: its host name is checked",
                level=logging.WARNING,
                parent=self._parent,
                hint=f"submerge pki renew {self._parent} --role aggregator",
            )
        self._said = True


def shown_by(host: str, port: int, tls: Tls) -> dict[str, Any]:
    """Return the certificate of a server, signed by an authority that we trust, for a server.

    Its host name is not checked here; a connection that is to check it does so.

    Raises OSError if it cannot be reached, or shows another certificate; UsageError if a file of
    `tls` is unusable.
    """
    context = tls.context()
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, port), timeout=LOOK_S) as bare,
        context.wrap_socket(bare, server_hostname=host) as safe,
    ):
        return dict(safe.getpeercert() or {})
