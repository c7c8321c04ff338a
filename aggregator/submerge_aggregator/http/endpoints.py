"""Endpoints: the operator's socket, the operators' address, the page, and the status address."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.applications import Starlette

from submerge import SubmergeError, UsageError
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.http import admin
from submerge_aggregator.http.serving import Serving, protocol_of
from submerge_aggregator.listening import listen
from submerge_aggregator.operators.access import OperatorAccess
from submerge_aggregator.operators.config import OperatorsConfig, tokens_path
from submerge_aggregator.operators.identify import NetworkIdentities, at_socket
from submerge_aggregator.operators.tls_files import operators_tls
from submerge_aggregator.operators.tokens import KnownTokens
from submerge_aggregator.page.config import PageConfig
from submerge_aggregator.questions.views import socket_of
from submerge_aggregator.server import Server
from submerge_client import clock
from submerge_client.config.links import Endpoint
from submerge_client.files import is_same, stat_of
from submerge_client.logs import say


def network_serving(
    server: Server, api: Starlette, config: AggregatorConfig, operators: OperatorsConfig
) -> Serving:
    """Return what serves operators over the network; it listens already."""
    tokens = KnownTokens(tokens_path(operators, config.store), server.audit.record)
    identify = NetworkIdentities(tokens, server.worker.admission, lambda: clock.now().wall)
    app = OperatorAccess(api, identify, server.order_log)
    tls = operators_tls(operators, config.listen.grpc, config.kit)
    listener = listen(operators.endpoint, setting="operators.address")
    host, port, *_ = listener.getsockname()
    scheme = "http" if tls is None else "https"
    say("operators", url=f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
    return Serving(app, listener, protocol_of(tls, server.order_log))


LOOK_S = 10.0  # between two looks at files that programs hold open, and people see by their names


class Endpoints:
    """The operator's socket; operators' address, page and status address, if configured."""

    # The server's store is open already: this keeps a second aggregator off the socket.
    def __init__(self, server: Server, config: AggregatorConfig) -> None:
        self._server = server
        self._path = socket_of(config.store)
        self._endpoint, self._config = config.status.endpoint, config
        self._open: list[Serving] = []
        self.page: str | None = None

    async def start(self) -> None:
        """Begin to answer: before the server runs, so that its start can be watched."""
        api = admin.api(self._server)
        self._listen_at_socket(api)
        self._looks = asyncio.create_task(self._look(api))
        try:
            if self._config.operators is not None:
                self._start(
                    network_serving(self._server, api, self._config, self._config.operators)
                )
            if self._config.page is not None:
                serving, self.page = _page(self._server, api, self._config, self._config.page)
                self._start(serving)
            if self._endpoint is not None:
                self._start_status(self._endpoint)
        except UsageError:
            await self.stop()
            raise

    def _listen_at_socket(self, api: Starlette) -> None:
        app = OperatorAccess(api, at_socket, self._server.order_log)
        self._operator = Serving(app, admin.listen(self._path))
        self._start(self._operator)
        self._there = stat_of(self._path)

    async def _look(self, api: Starlette) -> None:
        """See to it that an idle aggregator notices when its files lose their names."""
        while True:
            await asyncio.sleep(LOOK_S)
            if stat_of(self._path) is None:
                before = self._operator
                with suppress(UsageError):  # its folder may be away as well: the store says so
                    self._listen_at_socket(api)
                    say("socket made again: it was removed", level="warning", path=str(self._path))
                    self._open.remove(before)
                    await before.stop()
            with suppress(SubmergeError):
                await self._server.ask(lambda *_: None)  # each batch looks at the store

    def _start(self, serving: Serving) -> None:
        serving.start()
        self._open.append(serving)

    def _start_status(self, endpoint: Endpoint) -> None:
        listener = listen(endpoint, setting="status.address")
        from submerge_aggregator.http import metrics  # late: it brings Prometheus's client

        self._start(Serving(metrics.app(self._server), listener))
        host, port, *_ = listener.getsockname()
        say("status", url=f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics")

    async def stop(self) -> None:
        self._looks.cancel()
        if self._open and is_same(self._there, stat_of(self._path)):
            # Before the socket closes: while it listens, no other process takes its place.
            with suppress(OSError):
                self._path.unlink()
        opened, self._open = self._open, []
        await asyncio.gather(*(each.stop() for each in opened))


def _page(
    server: Server, api: Starlette, config: AggregatorConfig, page: PageConfig
) -> tuple[Serving, str]:
    """Return what serves the page, and its url; without one, nothing of it is loaded."""
    from submerge_aggregator.page.opening import page_serving

    return page_serving(api, server.order_log, config, page, record=server.audit.record)
