"""Operators' orders: each is logged and recorded, with the user who gave it.

The socket's mode is the authentication. Linux also says whose process is at the other end
(SO_PEERCRED, unix(7)); elsewhere the user is unknown.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from starlette.requests import Request

from submerge_aggregator.http.bounded import BoundedProtocol
from submerge_aggregator.server import Server
from submerge_client.logs import say

UCRED = struct.Struct("3i")
"""Process, user, group."""


class LocalProtocol(BoundedProtocol):
    """HTTP over a socket; a request's client is the user of the process that sends it."""

    def connection_made(self, transport: Any) -> None:
        """Begin, and ask the system who is there."""
        super().connection_made(transport)
        uid = uid_of(transport.get_extra_info("socket"))
        if uid is not None:
            self.client = (f"uid {uid}", 0)


def uid_of(connection: socket.socket | None) -> int | None:
    """Return the user of the process at the other end of a Unix socket; None if unknown."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None or connection is None or connection.family != socket.AF_UNIX:
        return None
    try:
        _, uid, _ = UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, option, UCRED.size))
    except OSError:
        return None
    return int(uid)


def note_order(server: Server, request: Request, verb: str, **facts: Any) -> None:
    """Log and record an order that was carried out."""
    say("operator command", verb=verb, **facts)
    by = request.client.host if request.client else "unknown"
    shuts_out = verb in ("ban", "unban") or bool(facts.get("ban"))
    server.audit.record("ban" if shuts_out else "order", by=by, verb=verb, **facts)
