"""A root with a page, in this process, on a real socket.

with Paged(tmp_path) as paged:
    paged.house.hears("c", rows)
    paged.get("/data/fleet/room").json
    paged.logs_in("operate")
    paged.post("/api/nodes/room/c/quarantine")
"""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from submerge_aggregator.admission import watched_file
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.http import admin
from submerge_aggregator.operators.scopes import Scope
from submerge_aggregator.operators.tokens import Token, digest_of, new_secret, tokens_text
from submerge_aggregator.page.opening import page_serving
from submerge_client.config.decoding import decoded
from support.house import House
from support.nodes import GROUP
from support.patience import PATIENCE_S


class PageAnswer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Paged:
    """One root with a page.

    Attributes
    ----------
    house : House
    recorded : list of dict
        Its audit log.
    origin : str
        The page's own: http://127.0.0.1:PORT.
    cookie : str
        Of the session; empty without one.
    """

    def __init__(self, folder: Path, *, groups: tuple[str, ...] = (GROUP,), **page: Any) -> None:
        self.folder, self._page = folder, {"address": "127.0.0.1:0"} | page
        self.house = House(folder, groups=groups)
        self.recorded: list[dict[str, Any]] = []
        self.cookie = self.proof = ""
        self._tokens: dict[str, Token] = {}

    def __enter__(self) -> Paged:
        self.house.__enter__()
        # Files are looked at for each request: a test does not wait for the next second.
        self._look_s, watched_file.LOOK_S = watched_file.LOOK_S, 0.0
        self.house.server.order_log._record = self._note
        self._serving = self.house.does(self._open())
        self.port = self._serving.listener.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_: object) -> None:
        watched_file.LOOK_S = self._look_s
        self.house.does(self._serving.stop())
        self.house.__exit__()

    def token(self, name: str, scope: Scope, *, until: float | None = None) -> str:
        """Make a token; return its text."""
        secret = new_secret()
        self._tokens[name] = Token(name, scope, 0.0, until, digest_of(secret))
        self._write()
        return secret

    def revokes(self, name: str) -> None:
        del self._tokens[name]
        self._write()

    def logs_in(self, scope: Scope, name: str = "night") -> PageAnswer:
        """Log in with a new token, as the form does."""
        answer = self.enters(self.token(name, scope))
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.proof = self.get("/").body.decode().split('submerge-proof" content="')[1][:64]
        return answer

    def enters(self, secret: str, **headers: str) -> PageAnswer:
        """Send the form of the login."""
        form = urlencode({"token": secret, "back": "/fleet"}).encode()
        return self.ask("POST", "/login", form, {"origin": self.origin} | headers)

    def get(self, path: str, **headers: str) -> PageAnswer:
        return self.ask("GET", path, b"", headers)

    def post(self, path: str, **headers: str) -> PageAnswer:
        """Give an order as the page's scripts do."""
        own = {"origin": self.origin, "x-submerge-proof": self.proof}
        return self.ask("POST", path, b"", own | headers)

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> PageAnswer:
        """Send a request; a header whose value is empty is left out."""
        mine = {"cookie": self.cookie} | {k.replace("_", "-"): v for k, v in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host="host" in mine)
            for name, value in mine.items():
                if value:
                    connection.putheader(name, value)
            connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return PageAnswer(answer.status, named, answer.read())
        finally:
            connection.close()

    async def _open(self) -> Any:
        server, room = self.house.server, {"schema": {"channels": list("abcdef")}}
        raw = {
            "node": "root",
            "store": str(self.house.store),
            "listen": {"grpc": {"address": "127.0.0.1:0", "insecure": True}},
            "groups": {GROUP: room},
            "page": self._page,
            "status": {"address": ""},
        }
        config: AggregatorConfig = decoded(raw, AggregatorConfig)
        assert config.page is not None
        serving = page_serving(server, admin.api(server), config, config.page)
        serving.start()
        return serving

    def _note(self, event: str, /, **facts: Any) -> None:
        self.recorded.append({"event": event} | facts)

    def _write(self) -> None:
        path = Path(f"{self.house.store}.tokens")
        path.write_text(tokens_text(self._tokens.values()))
        path.chmod(0o600)
