"""Endpoints: the operator's socket and the status address of a running aggregator."""

from __future__ import annotations

import asyncio

from submerge import UsageError
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.http import admin
from submerge_aggregator.http.serving import Serving
from submerge_aggregator.listening import listen
from submerge_aggregator.questions.views import socket_of
from submerge_aggregator.server import Server
from submerge_client.logs import say


class Endpoints:
    """The operator's socket, and the status address if one is configured.

    Parameters
    ----------
    server : Server
        Its store is open already: this keeps a second aggregator off the socket.
    """

    def __init__(self, server: Server, config: AggregatorConfig) -> None:
        self._server = server
        self._path = socket_of(config.store)
        self._endpoint = config.status.endpoint
        self._open: list[Serving] = []

    async def start(self) -> None:
        """Begin to answer: before the server runs, so that its start can be watched.

        Raises
        ------
        UsageError
            If an address is taken. Nothing is left open then.
        """
        operator = Serving(admin.app(self._server), admin.listen(self._path))
        operator.start()
        self._open.append(operator)
        if self._endpoint is None:
            return
        try:
            listener = listen(self._endpoint, setting="status.address")
        except UsageError:
            await self.stop()
            raise
        from submerge_aggregator.http import status  # late: it brings Prometheus's client

        watched = Serving(status.app(self._server), listener)
        watched.start()
        self._open.append(watched)
        host, port, *_ = listener.getsockname()
        say("status", url=f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics")

    async def stop(self) -> None:
        """Stop answering."""
        if self._open:
            # Before the socket closes: while it listens, no other process takes its place.
            self._path.unlink(missing_ok=True)
        opened, self._open = self._open, []
        await asyncio.gather(*(each.stop() for each in opened))
