"""A token for some groups: its session sees these, and gives orders about no other."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jinja2")

from support.paged import Paged

ROWS = np.random.default_rng(0).normal(size=(60, 6))


def test_a_session_is_for_the_groups_of_its_token(tmp_path):
    """Also once the token's groups are others: it has what the token has."""
    with Paged(tmp_path, groups=("room", "hall")) as paged:
        paged.house.hears("c", ROWS)
        paged.begins(paged.token("wall", "operate", groups=("hall",)))
        assert ["hall"] == paged.get("/api/").json["groups"]
        assert 200 == paged.get("/data/fleet/hall").status
        for path in ("/data/fleet/room", "/api/tree/room", "/api/settings/room", "/api/nodes"):
            assert 403 == paged.get(path).status, path
        assert 403 == paged.post("/api/nodes/room/c/quarantine").status
        assert 403 == paged.post("/api/bans/c/ban").status
        assert [] == paged.get("/api/nodes?group=hall").json

        paged.logs_in("operate", "all")
        assert ["room", "hall"] == paged.get("/api/").json["groups"]
        assert 200 == paged.get("/data/fleet/room").status


def test_this_aggregators_own_settings_are_shown_to_scope_judge(tmp_path):
    """To no reader: they name hosts, paths and users. And no group that is not served."""
    with Paged(tmp_path) as paged:
        paged.logs_in("read", "looks")
        assert 403 == paged.get("/api/settings/room").status
        assert 400 == paged.get("/api/recent/room").status
        paged.logs_in("judge", "judges")
        answer = paged.get("/api/settings/room")
        assert 200 == answer.status
        assert "no-store" == answer.headers["cache-control"]
        assert 404 == paged.get("/api/settings/nowhere").status
        assert 400 == paged.get("/api/settings/room?path=a//b").status
