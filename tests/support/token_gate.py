"""TokenGate: what a broker of a cloud does with tokens, before a broker that knows none.

It speaks MQTT 3.1.1 alone. It takes a CONNECT whose password is a JWT that has not ended, and cuts
the connection when that ends; all else goes on to the broker behind it.
"""

from __future__ import annotations

import base64
import json
import select
import socket
import sys
import threading
import time
from contextlib import suppress

from submerge_client.uplink.broker import expiry

UNSUPPORTED, NOT_AUTHORIZED = b"\x20\x02\x00\x01", b"\x20\x02\x00\x05"


def printing(lasts_s: float) -> list[str]:
    """Return a command that prints a token."""
    program = (
        "import base64, json, sys, time;"
        "part = lambda it: base64.urlsafe_b64encode(json.dumps(it).encode()).decode().strip('=');"
        "until = time.time() + float(sys.argv[1]);"
        "print(part({'alg': 'none'}), part({'exp': until}), 'x', sep='.')"
    )
    return [sys.executable, "-c", program, str(lasts_s)]


def token(until: float) -> str:
    """Return a token that ends."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": until}).encode()).decode()
    return f"e30.{claims.rstrip('=')}.x"


class TokenGate:
    """A port before a broker.

    Attributes
    ----------
    let_in, refused, cut : int
        Connections; those whose token ended while they were open.
    """

    host = "127.0.0.1"

    def __init__(self, port: int) -> None:
        self._behind = port
        self.let_in = self.refused = self.cut = 0
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> TokenGate:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            connect = packet(client)
            if b"\x04MQTT\x04" not in connect:
                client.sendall(UNSUPPORTED)
                return
            until = expiry(password(connect))
            if not time.time() < until < float("inf"):
                self.refused += 1
                client.sendall(NOT_AUTHORIZED)
                return
            self.let_in += 1
            with socket.create_connection((self.host, self._behind)) as broker:
                broker.sendall(connect)
                self._pass_on(client, broker, until)

    def _pass_on(self, client: socket.socket, broker: socket.socket, until: float) -> None:
        other = {client: broker, broker: client}
        while (left := until - time.time()) > 0:
            for ready in select.select([client, broker], [], [], left)[0]:
                data = ready.recv(1 << 16)
                if not data:
                    return
                other[ready].sendall(data)
        self.cut += 1


def packet(client: socket.socket) -> bytes:
    """Read one packet of MQTT, which is short."""
    head = client.recv(2, socket.MSG_WAITALL)
    size, shift = head[1] & 127, 7
    while head[-1] & 128:
        head += client.recv(1, socket.MSG_WAITALL)
        size |= (head[-1] & 127) << shift
        shift += 7
    return head + client.recv(size, socket.MSG_WAITALL)


def password(connect: bytes) -> str:
    """Return the last field of a CONNECT, if it has a password."""
    body = connect[2:] if connect[1] < 128 else connect[3:]
    flags, rest = body[7], body[10:]
    fields = list[bytes]()
    while rest:
        size = int.from_bytes(rest[:2], "big")
        fields.append(rest[2 : 2 + size])
        rest = rest[2 + size :]
    return fields[-1].decode() if flags & 0x40 else ""
