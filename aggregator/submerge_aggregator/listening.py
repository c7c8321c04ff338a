"""listen(): a listening socket, or one line on why there is none."""

from __future__ import annotations

import socket

from submerge import UsageError
from submerge_client.config.links import Endpoint


def listen(endpoint: Endpoint, *, setting: str) -> socket.socket:
    try:
        (family, *_, address), *_ = socket.getaddrinfo(
            *endpoint, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listener = socket.create_server(address[:2], family=family)
    except OSError as error:
        raise UsageError(
            f"expected to listen on {endpoint.host}:{endpoint.port}, got: {error.strerror};"
            f" stop what listens there, or name another in {setting}"
        ) from error
    # Connections inherit it. An answer is two writes, and without it the second would wait 40 ms
    # for the other end's acknowledgement of the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
