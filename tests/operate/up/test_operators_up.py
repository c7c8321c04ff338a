"""Operators of one machine: from another machine by a token, as at an aggregator."""

from __future__ import annotations

import json
import subprocess

import pytest

pytest.importorskip("starlette")

from submerge import UsageError
from submerge_client.config.tomlfile import decoded
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import Https
from submerge_operate.up.config import BoxConfig
from support.boxes import Box, rows_of
from support.patience import until
from support.programs import SUBMERGE, Programs, free_port

TABLE = {
    "node": "desk",
    "sensor": {"kind": "ndjson"},
    "schema": {"channels": ["a"]},
}


def test_its_settings_are_those_of_an_aggregator():
    """And are checked as there: tokens must not go over a network without TLS."""
    table = {"address": "127.0.0.1:8472", "insecure": True}
    config = decoded(TABLE | {"operators": table}, BoxConfig)
    assert "127.0.0.1:8472" == config.aggregator.operators.address
    assert decoded(TABLE, BoxConfig).aggregator.operators is None
    with pytest.raises(UsageError, match=r"operators\.cert: expected a certificate and its key"):
        decoded(TABLE | {"operators": {}}, BoxConfig)
    with pytest.raises(UsageError, match=r"operators\.insecure: expected false where other"):
        decoded(TABLE | {"operators": {"address": "0.0.0.0:1", "insecure": True}}, BoxConfig)


def test_its_readings_are_shown_unless_it_says_otherwise():
    """What a page on the same machine shows leaves no machine."""
    assert decoded(TABLE, BoxConfig).client.share_values
    assert not decoded(TABLE | {"share_values": False}, BoxConfig).client.share_values


@pytest.mark.slow
def test_it_is_reached_by_its_address(tmp_path):
    """Listed, asked for settings, scores and readings; a token of another group is refused."""
    port = free_port()
    operators = f'[operators]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    with Programs() as programs:
        box = Box(programs, f"{operators}[learn]\n")
        store, url = box.folder / "root.db", f"http://127.0.0.1:{port}"
        running = box.start()

        def does(*words: str) -> str:
            done = subprocess.run(
                [SUBMERGE, *map(str, words)], capture_output=True, text=True, check=False
            )
            assert 0 == done.returncode, done.stderr
            return done.stdout

        token, other = tmp_path / "t", tmp_path / "o"
        does("token", "new", "night", "--scope", "judge", "--store", store, "--to", token)
        new = ("token", "new", "other", "--scope", "read", "--group", "pumps")
        assert "scope read, in pumps" in does(*new, "--store", store, "--to", other)
        at = ("--at", url, "--token-file", token)
        admin = AdminClient(Https(url, token_file=token))

        def scored() -> bool:
            running.write(rows_of(200))
            said = subprocess.run(
                [SUBMERGE, "nodes", "scores", "desk", *at], capture_output=True, check=False
            )
            return 0 == said.returncode

        until(scored, lambda: running.log)
        assert "desk" in does("nodes", "list", *at)
        assert 'node = "desk"' in does("nodes", "settings", "desk", *at).splitlines()
        values = json.loads(admin.get("values", "box", path="desk"))
        assert ["a", "b", "c"] == [each["name"] for each in values["channels"]]

        limited = AdminClient(Https(url, token_file=other))
        assert [] == json.loads(limited.get())["groups"]
        for path in ("values", "recent"):
            with pytest.raises(UsageError, match="you may ask about pumps, not about the group"):
                limited.get(path, "box", path="desk")
