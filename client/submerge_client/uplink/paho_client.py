"""paho_client(): a client of paho for one connection to a broker, and when that has to end."""

from __future__ import annotations

import math
import socket
import time
from typing import Any

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from submerge_client.uplink.broker import Broker, Login

RENEWED_AT = 0.8
"""Of the time that a token has left at the start of a connection, after which the next begins."""


LEAST_S = 1.0  # between two questions for a password


def paho_client(broker: Broker, login: Login, **how: Any) -> Client:
    """Return a client with a broker's protection, and the way to it."""
    client = Client(
        CallbackAPIVersion.VERSION2,
        clean_session=None if how.get("protocol") == MQTTv5 else True,
        transport="websockets" if broker.path else "tcp",
        **how,
    )
    client.on_socket_open = _without_delay
    if broker.path:
        client.ws_set_options(broker.path)
    if login.username is not None:
        client.username_pw_set(login.username, login.password)
    if broker.tls is not None:
        client.tls_set_context(broker.tls.context())
    return client


def _without_delay(_client: Client, _data: Any, connection: Any) -> None:
    """Have packets sent as they are written: an answer would wait for an acknowledgement of TCP."""
    opened = socket.socket(fileno=connection.fileno())
    try:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    finally:
        opened.detach()


def after(login: Login, share: float) -> float:
    """Return when a share of the time that a password has left is over, on the steady clock."""
    left = login.until - time.time()
    # What has ended, by this machine's clock, the broker may judge by another.
    return time.monotonic() + max(LEAST_S, share * left) if left > 0 else math.inf
