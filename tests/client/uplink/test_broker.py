"""When a token ends, and when a connection that rests on it is replaced."""

from __future__ import annotations

import base64
import json
import math
import socket
import time

import pytest

pytest.importorskip("paho")

from submerge_client.uplink.broker import Broker, Login, expiry
from submerge_client.uplink.paho_client import LEAST_S, RENEWED_AT, after, paho_client


def part(claims: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


SAS = "SharedAccessSignature sr=hub%2Fdevices%2Fc&sig=a%2Bb%3D&se=1800000000&skn="


@pytest.mark.parametrize(
    ("password", "until"),
    [
        (f"{part({'alg': 'RS256'})}.{part({'exp': 1_800_000_000})}.sig", 1_800_000_000.0),
        (f"{part({})}.{part({'exp': 1_800_000_000.5, 'sub': 'ä'})}.sig", 1_800_000_000.5),
        (SAS, 1_800_000_000.0),
        (f"{part({})}.{part({'sub': 'c'})}.sig", math.inf),
        (f"{part({})}.{part(['exp'])}.sig", math.inf),
        (f"{part({})}.{part({'exp': 'soon'})}.sig", math.inf),
        (f"{part({})}.{part({'exp': 10**400})}.sig", math.inf),
        ("a.password.with points", math.inf),
        ("se=1800000000", math.inf),
        ("", math.inf),
    ],
)
def test_a_token_says_when_it_ends(password, until) -> None:
    """A password that only looks like one has no end."""
    assert until == expiry(password)


def test_a_connection_is_replaced_before_its_token_ends() -> None:
    """What has ended by this machine's clock may not have by the broker's: it is not replaced."""

    def left_s(lasts_s: float) -> float:
        until = time.time() + lasts_s
        return after(Login("c", "token", until), RENEWED_AT) - time.monotonic()

    assert math.inf == after(Login("c", "secret"), RENEWED_AT)
    assert 75.0 < left_s(100.0) <= 80.0
    assert 0.0 < left_s(0.1) <= LEAST_S
    assert math.inf == left_s(-5.0)


def test_packets_leave_as_they_are_written() -> None:
    """None waits until TCP has acknowledged the one before: answers took 76 ms, and take 2."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        client = paho_client(Broker(host, port), Login(None, None))
        client.connect(host, port)
        opened = client.socket()
        assert opened is not None
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        opened.close()


def test_a_password_is_printed_nowhere() -> None:
    shown = repr(Broker("h", 1, "c", "secret", command=("print", "secret")))
    assert "secret" not in shown
