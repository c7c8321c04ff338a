"""BoundedProtocol: an HTTP connection with a time limit for each request, and few for one address.

Uvicorn bounds how many requests are answered at once and how long a connection is idle after an
answer. It waits without end for a first request, for the rest of headers or of a body, and for a
peer that does not read its answer; and it accepts any number of connections.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 20.0
"""From the first byte of a request, or from the connection, to the end of its answer. The machine
answers within 10 s."""

MOST_OPEN, MOST_EACH = 128, 32
"""Connections in all, and of one address. Further ones are closed at once."""

MOST_HEADERS = 16_384
"""Bytes of a request's line and headers."""


class BoundedProtocol(H11Protocol):
    """One connection of a `Serving`."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin, if there is room."""
        super().connection_made(transport)
        # The operator's socket has no addresses: it is for its owner alone.
        same = [each for each in self.connections if _address(each) == _address(self)]
        if len(self.connections) > MOST_OPEN or (self.client and len(same) > MOST_EACH):
            transport.abort()
            return
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        self._begin()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for another request."""
        self._end()
        super().on_response_complete()
        if self.cycle is not None and not self.cycle.response_complete:
            self._begin()  # it had come already

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        if self._limit is None:
            self._limit = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _end(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def _address(connection: Any) -> str | None:
    return None if connection.client is None else str(connection.client[0])
