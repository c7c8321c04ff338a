"""PageThread: the page beside the demo's root, served by a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from submerge_aggregator import config as aggregator_config
from submerge_aggregator.audit.log import record_nothing
from submerge_aggregator.operators.config import tokens_path
from submerge_aggregator.operators.order_log import OrderLog
from submerge_aggregator.operators.tokens import Token, digest_of, new_secret, tokens_text
from submerge_aggregator.page.config import PageConfig
from submerge_aggregator.page.more_views import MoreViews
from submerge_aggregator.page.opening import page_serving
from submerge_aggregator.questions.views import socket_of
from submerge_client import clock
from submerge_files.console.ways import UnixSocket
from submerge_operate.page.forwarding import forwarding

VIEWER = "demo"
"""The name of the demo's token: the audit log of its root has it."""


def make_token(store: Path) -> str:
    """Write the list of tokens of a root that has none yet, with one; return its text."""
    secret = new_secret()
    token = Token(
        name=VIEWER, scope="operate", created=time.time(), until=None, digest=digest_of(secret)
    )
    path = tokens_path(None, store)
    path.touch(0o600)
    path.write_text(tokens_text([token]), encoding="utf-8")
    return secret


class PageThread:
    """Serves the page within a `with` block, on 127.0.0.1 alone.

    config : The root's configuration.
    more : The demo's own.

    url : Of the page.
    """

    def __init__(self, config: Path, more: MoreViews) -> None:
        root = aggregator_config.load(config, {})
        api = forwarding(UnixSocket(socket_of(root.store)))
        log = OrderLog(record_nothing, lambda: clock.now().steady)
        # Its default address: whatever the root's own configuration says.
        self._serving, self.url = page_serving(
            api, log, root, PageConfig(), record=record_nothing, more=more
        )
        self._loop = asyncio.new_event_loop()
        self._ends = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="page", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._ends.set)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        self._loop.run_until_complete(self._until_the_end())

    async def _until_the_end(self) -> None:
        self._serving.start()
        await self._ends.wait()
        await self._serving.stop()
