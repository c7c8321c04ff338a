"""`submerge doctor` asks for the room that a store's log and ballast need, and refuses a link."""

from __future__ import annotations

import pytest

from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.storage import LEAST_PAGES, LOGGED_BYTES, MOST_PAGES, room_for
from submerge_aggregator.store import Store
from submerge_client.config.tomlfile import decoded
from submerge_operate.doctor import aggregator, machine


@pytest.mark.parametrize(
    ("size", "pages"), [(0, LEAST_PAGES), (500 * 4096, 500), (1 << 30, MOST_PAGES)]
)
def test_the_room_grows_with_the_store_within_bounds(size, pages):
    """Twice the log: for itself, and for the ballast."""
    assert 2 * pages * LOGGED_BYTES == room_for(size)


def test_the_disk_is_asked_for_what_is_not_held_yet(tmp_path, monkeypatch):
    """The store once more, and the log and its ballast; a ballast that is there counts."""
    spares = []
    monkeypatch.setattr(machine, "disk", lambda *_, spare: spares.append(spare) or iter(()))
    table = {
        "node": "root",
        "store": str(tmp_path / "root.db"),
        "listen": {"grpc": {"insecure": True}},
        "groups": {"room": {"summary": {"rank": 1}, "schema": {"channels": ["a", "b"]}}},
        "status": {"address": ""},
    }
    config = decoded(table, AggregatorConfig)
    list(aggregator.run_checks(config))
    Store(config.store).close()
    list(aggregator.run_checks(config))
    size = config.store.stat().st_size
    assert [room_for(0), size + room_for(size) // 2] == spares


def test_a_link_in_place_of_the_store_fails(tmp_path):
    """As the aggregator would refuse it."""
    (tmp_path / "root.db").symlink_to(tmp_path / "elsewhere")
    (found,) = aggregator.store(tmp_path / "root.db", running=False)
    assert "fails" == found.state
    assert "symbolic link" in found.message
