"""network_serving(): the admin API on the operators' address, over HTTPS."""

from __future__ import annotations

from functools import partial

from starlette.applications import Starlette

from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.http.over_tls import NetworkProtocol, TlsProtocol, failed_handshake
from submerge_aggregator.http.serving import Serving
from submerge_aggregator.listening import listen
from submerge_aggregator.operators.access import OperatorAccess
from submerge_aggregator.operators.config import OperatorsConfig, tokens_path
from submerge_aggregator.operators.identify import NetworkIdentities
from submerge_aggregator.operators.known_tokens import KnownTokens
from submerge_aggregator.operators.tls_files import TlsFiles, operators_tls
from submerge_aggregator.server import Server
from submerge_client import clock
from submerge_client.logs import say


def network_serving(
    server: Server, api: Starlette, config: AggregatorConfig, operators: OperatorsConfig
) -> Serving:
    """Return what serves operators over the network; it listens already.

    api : the admin API, which the socket beside the store serves, too

    Raises UsageError if the address is taken, or the certificate or the tokens cannot be used.
    """
    tokens = KnownTokens(tokens_path(operators, config.store), server.audit.record)
    identify = NetworkIdentities(tokens, server.worker.admission, lambda: clock.now().wall)
    app = OperatorAccess(api, identify, server.order_log)
    tls = operators_tls(operators, config.listen.grpc, config.kit)
    protocol = (
        NetworkProtocol
        if tls is None
        else partial(
            TlsProtocol,
            TlsFiles(tls).current,
            lambda address, why: server.order_log.deny(failed_handshake(why), address, "handshake"),
            {},
        )
    )
    listener = listen(operators.endpoint, setting="operators.address")
    host, port, *_ = listener.getsockname()
    scheme = "http" if tls is None else "https"
    say("operators", url=f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
    return Serving(app, listener, protocol)
