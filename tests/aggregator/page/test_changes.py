"""The stream of what changes: it ends with the aggregator, and delays no stop."""

from __future__ import annotations

import asyncio

from submerge_aggregator.page.watched import Changes


class Calls:
    """An admin API that says one mark."""

    async def get(self, path: str, /, **query: str) -> bytes:
        return b'"1"'


def test_a_stream_ends_when_the_page_closes():
    """It has fifteen seconds left then: an aggregator that stops would wait for it, and fail it."""

    async def listens() -> list[bytes]:
        changes = Changes(Calls(), dict)
        said = []
        async for part in changes.stream():
            said.append(part)
            if b"marks" in part:
                changes.end()
        return said

    retry, marks = asyncio.run(asyncio.wait_for(listens(), 10.0))
    assert b"retry: 1000\n\n" == retry
    assert b'event: marks\ndata: {"alarms":"1","link":"up"}\n\n' == marks
