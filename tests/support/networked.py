"""A root whose operators may be on other machines, with an authority of its own and tokens.

with Networked(tmp_path) as site:
    site.token("night", "judge")          # a file with the token
    site.kit("anna", Permission("operator"))
    site.status("GET", "/nodes", token=...)
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from submerge.protocol.permission import Permission
from submerge_aggregator.admission import watched_file
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.http.endpoints import Endpoints
from submerge_aggregator.operators.scopes import Scope
from submerge_aggregator.operators.tokens import Token, digest_of, new_secret, tokens_text
from submerge_client.config.tomlfile import decoded
from submerge_files.console.ways import Https
from support.certified import LOOPBACK, Certified
from support.house import House
from support.patience import PATIENCE_S

GROUPS = ("room", "hall")


class Networked:
    """One root with an operators' address, in this process.

    Attributes
    ----------
    house : House
    fleet : Certified
        Its authority.
    recorded : list of dict
        Its audit log.
    """

    def __init__(self, folder: Path, *, insecure: bool = False) -> None:
        self.folder, self.insecure = folder, insecure
        self.fleet = Certified(folder)
        self.root = self.fleet.kit("root", LOOPBACK, permission=Permission("aggregator"))
        self.house = House(folder, groups=GROUPS)
        self.recorded: list[dict[str, Any]] = []
        self._tokens: dict[str, Token] = {}

    def __enter__(self) -> Networked:
        self.house.__enter__()
        # Files are looked at for each request: a test does not wait for the next second.
        self._look_s, watched_file.LOOK_S = watched_file.LOOK_S, 0.0
        try:
            self.house.server.order_log._record = self._note
            self._endpoints = self.house.does(self._open())
        except BaseException:
            watched_file.LOOK_S = self._look_s
            self.house.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        watched_file.LOOK_S = self._look_s
        self.house.does(self._endpoints.stop())
        self.house.__exit__()

    async def _open(self) -> Endpoints:
        endpoints = Endpoints(self.house.server, self.config)
        await endpoints.start()
        return endpoints

    def _note(self, event: str, /, **facts: object) -> None:
        self.recorded.append({"event": event, **facts})

    @property
    def config(self) -> AggregatorConfig:
        """The root's; ports are free ones."""
        how = {"insecure": True} if self.insecure else {}
        table = {
            "node": "root",
            "store": str(self.house.store),
            "kit": str(self.root),
            "listen": {"grpc": {"address": "127.0.0.1:0"}},
            "groups": {
                name: {"summary": {"rank": 1}, "schema": {"channels": ["a", "b"]}}
                for name in GROUPS
            },
            "status": {"address": ""},
            "operators": {"address": f"{LOOPBACK}:0", **how},
        }
        return decoded(table, AggregatorConfig)

    @property
    def tokens(self) -> Path:
        """The file of its tokens."""
        return Path(f"{self.house.store.resolve()}.tokens")

    @property
    def place(self) -> tuple[str, int]:
        """Host and port of the operators' address."""
        return self._endpoints._open[1].listener.getsockname()

    @property
    def url(self) -> str:
        """The operators' address."""
        host, port = self.place
        return f"http{'' if self.insecure else 's'}://{host}:{port}"

    def token(self, name: str, scope: Scope, *, lasts_s: float | None = None) -> Path:
        """Make a token; return the file that holds it."""
        secret, now = new_secret(), time.time()
        until = None if lasts_s is None else now + lasts_s
        self._tokens[name] = Token(name, scope, now, until, digest_of(secret))
        self._write()
        path = self.folder / f"{name}.token"
        path.write_text(secret)
        path.chmod(0o600)
        return path

    def revoke(self, name: str) -> None:
        """Take a token back."""
        del self._tokens[name]
        self._write()

    def _write(self) -> None:
        new = self.tokens.with_suffix(".new")
        new.write_text(tokens_text(self._tokens.values()))
        new.replace(self.tokens)

    def kit(self, name: str, permission: Permission | None, **more: Any) -> Path:
        """Make a kit of its fleet."""
        return self.fleet.kit(name, permission=permission, **more)

    def way(self, **shown: Path) -> Https:
        """Return how a command reaches it."""
        return Https(self.url, **{"kit": self.root, **shown} if not self.insecure else shown)

    def ask(self, method: str, target: str, **shown: Path) -> tuple[int, Any]:
        """Send a request as a command would; return the status and the answer."""
        connection, headers = self.way(**shown).connect()
        with closing(connection):
            connection.request(method, target, b"" if method == "POST" else None, headers)
            response = connection.getresponse()
            body = response.read()
        return response.status, json.loads(body) if body[:1] in b"{[" else body

    def bare(self) -> tuple[int, Any]:
        """Ask without anything that says who asks."""
        context = ssl.create_default_context(cafile=self.root)
        connection = http.client.HTTPSConnection(*self.place, timeout=PATIENCE_S, context=context)
        with closing(connection):
            connection.request("GET", "/")
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    @contextmanager
    def raw(self) -> Iterator[ssl.SSLSocket]:
        """Return a connection with TLS for bytes of one's own, without a certificate."""
        context = ssl.create_default_context(cafile=self.root)
        with (
            socket.create_connection(self.place, timeout=PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=LOOPBACK) as secure,
        ):
            yield secure
