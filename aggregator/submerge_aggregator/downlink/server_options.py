"""server_options(): how gRPC serves children, and what it allows their connections.

Limits on memory: the windows of streams, how many streams a connection has, how many connections
there are, and how long one may be idle. They hold before a certificate is seen and before a
message is read.
"""

from __future__ import annotations

from submerge_aggregator.downlink.handshakes import PATIENCE_S
from submerge_aggregator.downlink.readings import ReadingLimits
from submerge_client.config.sizes import GRPC_LIMIT

WINDOW = 16_384
"""Bytes of an unread message that come in. The rest follows when it is read: one round trip."""

IDLE_S = 60
"""A connection without a call is closed. A child's connection has a watch, or comes again."""

OPTIONS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # A child pings once a minute. One that pings sooner three times, with nothing sent to it in
    # between, loses its connection.
    ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.http2.lookahead_bytes", WINDOW),
    ("grpc.http2.bdp_probe", 0),  # it would raise the window on fast lines
    ("grpc.http2.settings_timeout", int(1000 * PATIENCE_S)),
    ("grpc.max_connection_idle_ms", 1000 * IDLE_S),
    ("grpc.so_reuseport", 0),  # a port in use is an error, not a second server
    ("grpc.server_handshake_timeout_ms", int(1000 * PATIENCE_S)),
)

AGING = (("grpc.max_connection_age_ms", 3_600_000), ("grpc.max_connection_age_grace_ms", 10_000))
"""With TLS a connection ends after an hour, and the child connects again: its certificate, checked
at the handshake, may have expired since."""


def server_options(
    limit: int, limits: ReadingLimits, *, secure: bool
) -> tuple[tuple[str, int], ...]:
    """Return the options of a server.

    limit : Most bytes of a message that comes in. What goes out is our own.
    secure : It has TLS.
    """
    return (
        *OPTIONS,
        *(AGING if secure else ()),
        ("grpc.max_concurrent_streams", limits.streams_each),
        ("grpc.max_allowed_incoming_connections", limits.max_connections),
        ("grpc.max_receive_message_length", limit),
        ("grpc.max_send_message_length", max(limit, GRPC_LIMIT)),
    )
