"""Who is at the operator's socket, and notes of the orders that are carried out.

The socket's mode is the authentication. Linux also says whose process is at the other end
(SO_PEERCRED, unix(7)); elsewhere the user is unknown.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from starlette.requests import Request

from submerge_aggregator.http.bounded import BoundedProtocol
from submerge_aggregator.operators.identify import Peer
from submerge_aggregator.server import Server

UCRED = struct.Struct("3i")
"""Process, user, group."""


class LocalProtocol(BoundedProtocol):
    """HTTP over a socket; the peer of a request is the user of the process that sends it."""

    def connection_made(self, transport: Any) -> None:
        """Begin, and ask the system who is there."""
        super().connection_made(transport)
        peer = Peer(uid=uid_of(transport.get_extra_info("socket")))
        self.app_state = self.app_state | {"peer": peer}


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
    """Log and record an order that was carried out, with who gave it."""
    server.order_log.note(request.scope["operator"], verb, **facts)
