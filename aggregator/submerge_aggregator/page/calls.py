"""Calls to the admin API, as the page makes them for itself: inside the aggregator's process."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode

from starlette.types import ASGIApp, Message

from submerge import SubmergeError
from submerge_aggregator.operators.access import why_of
from submerge_aggregator.operators.identify import Operator

AGAIN_S, TRIES = 1.0, 5
"""Who is asked too much says so, and is asked again."""

READER = Operator("page", "inside", "read")
"""Who asks: what is shown to a browser has been allowed to it before."""


class CallRefused(SubmergeError):
    """The admin API does not answer, and says why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class AdminCalls(Protocol):
    """A way to the admin API."""

    async def get(self, path: str, /, **query: str) -> bytes:
        """Return an answer; raises CallRefused if it is none."""


class InsideCalls(NamedTuple):
    """The admin API of this process."""

    api: ASGIApp

    async def get(self, path: str, /, **query: str) -> bytes:
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": urlencode({k: v for k, v in query.items() if v}).encode(),
            "headers": [],
            "operator": READER,
        }
        status, parts = 500, list[bytes]()

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                parts.append(message.get("body", b""))

        await self.api(scope, receive, send)
        body = b"".join(parts)
        if status >= 300:
            raise CallRefused(status, why_of(body, status))
        return body


async def ask_patiently(calls: AdminCalls, path: str, /, **query: str) -> bytes:
    """Return an answer, also where so much is asked at once that a question has to wait."""
    for _ in range(TRIES - 1):
        try:
            return await calls.get(path, **query)
        except CallRefused as error:
            if "asked too much" not in str(error):
                raise
        await asyncio.sleep(AGAIN_S)
    return await calls.get(path, **query)
