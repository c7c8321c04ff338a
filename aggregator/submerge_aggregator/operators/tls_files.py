"""TlsFiles: the server's certificate, and whose certificates it accepts; renewed in place."""

from __future__ import annotations

import ssl
from pathlib import Path

from submerge import UsageError
from submerge_aggregator.downlink.config import GrpcListen
from submerge_aggregator.operators.config import OperatorsConfig
from submerge_client.logs import say
from submerge_client.uplink.tls import Tls, served_tls


class TlsFiles:
    """What a TLS server shows and accepts, by its files as they are now."""

    # Certificates of others are asked for, and may be left out: then a token has to say who asks.
    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._seen: object = tls.stamp()
        self._context = server_context(tls)

    def current(self) -> ssl.SSLContext:
        """Return the context for a new connection: wrong files leave the last good one."""
        seen = self._tls.stamp()
        if seen != self._seen:
            self._seen = seen
            try:
                self._context = server_context(self._tls)
            except UsageError as error:
                say("certificate not read again", level="error", why=str(error))
        return self._context


def server_context(tls: Tls) -> ssl.SSLContext:
    """Return the context of a server that asks for certificates, and takes none as well."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A connection that is taken up again would bring a certificate that is not checked again.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    tls.prove(context)
    if tls.trust(context):
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def operators_tls(
    operators: OperatorsConfig, grpc: GrpcListen | None, kit: Path | None
) -> Tls | None:
    """Return the operators' certificate: its own, gRPC's or the kit's; None without TLS."""
    if operators.cert is None and not operators.insecure and grpc is not None and grpc.cert:
        return served_tls(grpc, kit)
    return served_tls(operators, kit)
