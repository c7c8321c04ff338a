"""`submerge aggregator page`: a page beside a running aggregator, which has no part in it."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

pytest.importorskip("grpc")
pytest.importorskip("jinja2")

from support.page_client import PageClient
from support.patience import until
from support.programs import PATH, SUBMERGE, Programs, free_port

pytestmark = pytest.mark.slow

CONFIG = """
node = "root"
store = "{folder}/root.db"
listen.grpc.address = "127.0.0.1:{grpc}"
listen.grpc.insecure = true
status.address = ""
page.address = "127.0.0.1:{page}"
groups.room.summary.rank = 1
groups.room.schema.channels = ["a", "b"]
"""


def says(*words: str) -> str:
    environ = os.environ | {"PYTHONPATH": PATH}
    return subprocess.run(
        [SUBMERGE, *words], env=environ, capture_output=True, text=True, check=True
    ).stdout


def test_it_shows_and_orders_and_lives_on_without_the_aggregator():
    """Orders are recorded with the person and the user; an aggregator that begins again is met."""
    with Programs() as programs:
        somebody = PageClient()
        somebody.port = free_port()
        text = CONFIG.format(folder=programs.folder, grpc=free_port(), page=somebody.port)
        beside = programs.file("page.toml", text)
        config = programs.file("root.toml", text.replace("page.address", "#page.address"))
        root = programs.start("aggregator", "--config", config)
        root.until("serving")
        programs.start("aggregator", "page", "--config", beside).until("page")

        assert 401 == somebody.get("/data/fleet/room").status

        token = programs.folder / "night.token"
        where = ("--config", str(config), "--to", str(token))
        says("aggregator", "token", "new", "night", "--scope", "operate", *where)
        secret = token.read_text().strip()
        until(lambda: somebody.enters(secret).status == 303)  # it looks once a second
        assert 303 == somebody.begins(secret).status
        assert ["room"] == somebody.get("/api/").json["groups"]
        assert [] == somebody.get("/data/fleet/room").json["rows"]
        assert 200 == somebody.post("/api/bans/pump/ban").status

        (entry,) = [
            entry
            for line in says("aggregator", "audit", "--json", "--config", str(config)).splitlines()
            if (entry := json.loads(line))["event"] == "ban"
        ]
        assert (f"uid {os.getuid()} for token night", "pump") == (entry["by"], entry["node"])

        other = programs.folder / "other.token"
        where = ("--config", str(config), "--to", str(other))
        says("aggregator", "token", "new", "other", "--scope", "read", "--group", "hall", *where)
        limited = PageClient()
        limited.port = somebody.port
        until(lambda: limited.enters(other.read_text().strip()).status == 303)
        assert 303 == limited.begins(other.read_text().strip()).status
        assert [] == limited.get("/api/").json["groups"]
        assert 403 == limited.get("/data/fleet/room").status

        root.kill()
        gone = somebody.get("/api/nodes")
        assert (503, True) == (gone.status, "is it running?" in gone.json["error"])
        programs.start("aggregator", "--config", config).until("serving")
        until(lambda: somebody.get("/api/nodes").status == 200)
        assert 200 == somebody.post("/api/bans/pump/unban").status
