"""What the event loop complains of: a line of ours, and not the same again within a minute."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from submerge_aggregator.http import serving
from submerge_aggregator.http.serving import AGAIN_S, Complaints

FILES = "socket.accept() out of system resource"


@pytest.fixture
def said(monkeypatch) -> list[str]:
    """The lines that come of it."""
    lines: list[str] = []
    monkeypatch.setattr(serving, "say", lambda *_, why, **__: lines.append(why))
    return lines


def complain(ear: Complaints, at: float, what: str, **more: Any) -> None:
    """Let the event loop say something."""
    record = logging.LogRecord("asyncio", logging.ERROR, "", 0, what, (), None, **more)
    record.created = at
    ear.emit(record)


def test_a_flood_of_one_kind_is_a_line_a_minute(said):
    """Running out of files must not fill the disk as well; the other kinds are logged."""
    ear = Complaints()
    for number in range(2000):
        complain(ear, number * AGAIN_S / 2000, f"{FILES}\nsocket: {number}")
    complain(ear, 1.0, "Task exception was never retrieved")
    complain(ear, AGAIN_S, FILES)

    assert [FILES, "Task exception was never retrieved", FILES] == said
