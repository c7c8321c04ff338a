"""NetworkProtocol, TlsProtocol: connections of operators over the network.

Uvicorn would make the handshake itself, and report of one that fails neither that it did nor from
where. Here it is a step of its own: bounded in time, in number, and for one address; and counted.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from submerge_aggregator.http.serving import BoundedProtocol
from submerge_aggregator.operators.identify import Denial, Peer

HANDSHAKE_S = 10.0
"""Longest time for a handshake."""

MOST_HANDSHAKES, MOST_HANDSHAKES_EACH = 64, 16
"""Handshakes under way, in all and of one address. Further connections are closed at once."""


class NetworkProtocol(BoundedProtocol):
    """HTTP with one operator; requests come with the address, and the certificate if any."""

    def connection_made(self, transport: Any) -> None:
        """Begin, and note what the connection shows."""
        super().connection_made(transport)
        shown = transport.get_extra_info("peercert") or None
        peer = Peer(address=address_of(transport), certificate=shown)
        self.app_state = self.app_state | {"peer": peer}


class TlsProtocol(asyncio.Protocol):
    """A connection until its handshake is over; then `NetworkProtocol` has it.

    failed : Called with the address and the reason of a handshake that failed.
    under_way : The address of each connection in its handshake; shared by all of a server.
    """

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext],
        failed: Callable[[str, str], None],
        under_way: dict[TlsProtocol, str],
        **server: Any,
    ) -> None:
        self._context, self._failed, self._under_way = context, failed, under_way
        self._server = server
        self._early = bytearray()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin the handshake, if there is room."""
        address = address_of(transport)
        same = sum(each == address for each in self._under_way.values())
        if len(self._under_way) >= MOST_HANDSHAKES or same >= MOST_HANDSHAKES_EACH:
            transport.abort()
            return
        self._under_way[self] = address
        self._task = asyncio.get_running_loop().create_task(self._begin(transport, address))

    def data_received(self, data: bytes) -> None:
        """Keep what comes with the end of the handshake; reading stops until it is passed on."""
        self._early += data

    async def _begin(self, transport: Any, address: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            secure = await loop.start_tls(
                transport,
                self,
                self._context(),
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_S,
            )
        except OSError as error:
            # One that hung up was no attempt: a check whether the port is open does that.
            if not isinstance(error, ConnectionResetError | BrokenPipeError):
                self._failed(address, _why(error))
            return
        finally:
            self._under_way.pop(self, None)
        if secure is None or secure.is_closing():
            return
        inner = NetworkProtocol(**self._server)
        secure.set_protocol(inner)
        inner.connection_made(secure)
        if self._early and not secure.is_closing():
            inner.data_received(bytes(self._early))


def failed_handshake(why: str) -> Denial:
    """Return how a handshake that failed is counted."""
    return Denial(403, "handshake", why)


def address_of(transport: Any) -> str:
    """Return the address at the other end, without the port."""
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) and peer else "unknown"


def _why(error: OSError) -> str:
    said = getattr(error, "verify_message", "") or getattr(error, "reason", "")
    return str(said or error or type(error).__name__)
