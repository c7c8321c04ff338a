"""`submerge replay` as tests run it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from support.commands import shell


@pytest.fixture
def replay(monkeypatch, capsys) -> Callable[..., dict]:
    """Replay with --json; the object it prints."""
    submerge = shell(monkeypatch, capsys)

    def run(*arguments: object) -> dict:
        status, out, err = submerge("replay", *arguments, "--json")
        assert status == 0, err
        return json.loads(out)

    return run
