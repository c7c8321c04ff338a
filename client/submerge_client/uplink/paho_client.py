"""paho_client(): a client of paho for one connection to a broker, and when that has to end."""

from __future__ import annotations

import time
from typing import Any

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from submerge_client.uplink.broker import Broker, Login

RENEWED_AT = 0.8
"""Of the time that a token has left at the start of a connection, after which the next begins."""


LEAST_S = 1.0  # of a connection with a token that has ended, if a broker takes it


def paho_client(broker: Broker, login: Login, **how: Any) -> Client:
    """Return a client with a broker's protection, and the way to it."""
    client = Client(
        CallbackAPIVersion.VERSION2,
        clean_session=True,
        transport="websockets" if broker.path else "tcp",
        **how,
    )
    if broker.path:
        client.ws_set_options(broker.path)
    if login.username is not None:
        client.username_pw_set(login.username, login.password)
    if broker.tls is not None:
        client.tls_set_context(broker.tls.context())
    return client


def renewed_at(login: Login, now: float) -> float:
    """Return when a connection that begins now is replaced, on the steady clock."""
    return now + max(LEAST_S, RENEWED_AT * (login.until - time.time()))
