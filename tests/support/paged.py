"""A root with a page, in this process, on a real socket.

with Paged(tmp_path) as paged:  # somebody who may look
    paged.house.hears("c", rows)
    paged.get("/data/fleet/room").json
    paged.logs_in("operate")
    paged.post("/api/nodes/room/c/quarantine")
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from submerge.schema import Schema
from submerge_aggregator.admission import watched_file
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.http import admin
from submerge_aggregator.operators.scopes import Scope
from submerge_aggregator.operators.tokens import (
    Token,
    digest_of,
    new_secret,
    parse_tokens,
    tokens_text,
)
from submerge_aggregator.page.opening import page_serving
from submerge_client.config.tomlfile import decoded
from support.house import SCHEMA, House
from support.nodes import GROUP
from support.page_client import PageAnswer, PageClient


class Paged(PageClient):
    """One root with a page.

    Attributes
    ----------
    house : House
    recorded : list of dict
        Its audit log.
    link : str
        To its page, good once.
    """

    def __init__(
        self,
        folder: Path,
        *,
        groups: tuple[str, ...] = (GROUP,),
        history_bytes: int = 0,
        schema: Schema = SCHEMA,
        **page: Any,
    ) -> None:
        self.folder, self._page = folder, {"address": "127.0.0.1:0"} | page
        self.house = House(folder, groups=groups, schema=schema, history_bytes=history_bytes)
        self.recorded: list[dict[str, Any]] = []
        path = Path(f"{self.house.store}.tokens")
        known = parse_tokens(path.read_text()) if path.exists() else ()
        self._tokens = {each.name: each for each in known}

    def __enter__(self) -> Paged:
        self.house.__enter__()
        # Files are looked at for each request: a test does not wait for the next second.
        self._look_s, watched_file.LOOK_S = watched_file.LOOK_S, 0.0
        self.house.server.order_log._record = self._note
        self._serving = self.house.does(self._open())
        self.port = self._serving.listener.getsockname()[1]
        self.logs_in("read", "looks")
        self.recorded.clear()
        return self

    def __exit__(self, *_: object) -> None:
        watched_file.LOOK_S = self._look_s
        self.house.does(self._serving.stop())
        self.house.__exit__()

    @property
    def origin(self) -> str:
        return f"http{'s' if 'cert' in self._page else ''}://127.0.0.1:{self.port}"

    def token(
        self,
        name: str,
        scope: Scope,
        *,
        until: float | None = None,
        groups: tuple[str, ...] = (),
    ) -> str:
        """Make a token; return its text."""
        return self.accepts(name, scope, new_secret(), until=until, groups=groups)

    def accepts(
        self,
        name: str,
        scope: Scope,
        secret: str,
        *,
        until: float | None = None,
        groups: tuple[str, ...] = (),
    ) -> str:
        """Take a text as a token; return it."""
        self._tokens[name] = Token(name, scope, 0.0, until, digest_of(secret), groups)
        self._write()
        return secret

    def revokes(self, name: str) -> None:
        del self._tokens[name]
        self._write()

    def logs_in(self, scope: Scope, name: str = "night") -> PageAnswer:
        """Log in with a new token."""
        return self.begins(self.token(name, scope))

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
        log, record = server.order_log, server.audit.record
        api, page = admin.api(server), config.page
        serving, self.link = page_serving(api, log, config, page, record=record)
        serving.start()
        return serving

    def _note(self, event: str, /, **facts: Any) -> None:
        self.recorded.append({"event": event} | facts)

    def _write(self) -> None:
        path = Path(f"{self.house.store}.tokens")
        path.write_text(tokens_text(self._tokens.values()))
        path.chmod(0o600)
