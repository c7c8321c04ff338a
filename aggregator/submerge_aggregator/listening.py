"""listen(): a place on the network, or in one line why it cannot be had."""

from __future__ import annotations

import socket

from submerge import UsageError
from submerge_client.config.links import Endpoint


def listen(endpoint: Endpoint, *, setting: str) -> socket.socket:
    """Return a socket that listens.

    Parameters
    ----------
    endpoint : Endpoint
    setting : str
        Where it is configured, for who has to mend it.

    Raises
    ------
    UsageError
        If the place is taken, or no place of this machine.
    """
    try:
        (family, *_, address), *_ = socket.getaddrinfo(
            *endpoint, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise UsageError(
            f"expected to listen on {endpoint.host}:{endpoint.port}, got: {error.strerror};"
            f" stop what listens there, or name another in {setting}"
        ) from error
