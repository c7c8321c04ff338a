"""Copies by the admin API: begun, fetched in pieces, ended; one at a time, for one client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from submerge_aggregator import backup
from submerge_aggregator.backup import COPY_FORM, read_copy
from submerge_aggregator.storage import LastBackup
from support.house import SCHEMA, House
from support.patience import until


@pytest.fixture
def house(tmp_path) -> Iterator[House]:
    """A root with two nodes."""
    with House(tmp_path) as house:
        for number in range(2):
            rows = np.random.default_rng(number).normal(size=(40, SCHEMA.dim))
            house.hears(f"c{number}", rows)
        yield house


def made(house: House) -> dict[str, Any]:
    """A copy that can be fetched."""
    begun = house.asks("POST", "/backup")
    assert 200 == begun.status, begun.body
    view = begun.json
    while view["bytes"] is None:
        view = house.asks("GET", f"/backup/{view['name']}").json
    return view


def fetched(house: House, view: dict[str, Any]) -> bytes:
    """All of its bytes."""
    data = b""
    while piece := house.asks("GET", f"/backup/{view['name']}/{len(data)}").body:
        data += piece
    return data


def test_a_copy_comes_in_pieces(tmp_path, house, monkeypatch):
    """Behind the database stands the line that says whose it is."""
    monkeypatch.setattr(backup, "PIECE_BYTES", 1000)
    view = made(house)
    data = fetched(house, view)
    (tmp_path / "copy").write_bytes(data)

    assert view["bytes"] == len(data)
    assert view["copied"] == view["total"] == read_copy(tmp_path / "copy").identity.bytes
    assert b"\nsubmerge backup %d " % COPY_FORM in data
    behind = house.asks("GET", f"/backup/{view['name']}/{10**30}")
    assert (200, b"") == (behind.status, behind.body)
    assert 200 == house.asks("POST", f"/backup/{view['name']}/end").status
    assert 200 == house.asks("POST", "/backup").status


def known(house: House) -> float:
    """When the newest copy was made, as health and as the metrics have it."""
    last: float = house.asks("GET", "/health").json["backup_s"]
    assert bool(last) == ("backup_timestamp_seconds" in house.watches("/metrics").body.decode())
    return last


def test_a_copy_that_was_fetched_whole_is_the_newest(tmp_path, house, monkeypatch):
    """Not one that was made only, or in part; a root that starts again knows it."""
    monkeypatch.setattr(backup, "PIECE_BYTES", 1000)
    view = made(house)
    name, last = view["name"], (view["bytes"] - 1) // 1000 * 1000
    for first in (0, last, 500):
        house.asks("GET", f"/backup/{name}/{first}")
    assert 0.0 == known(house)

    at = house.time().wall
    fetched(house, view)
    assert at == known(house)
    house.asks("POST", f"/backup/{name}/end")
    assert at == LastBackup(tmp_path / "root.db").made_s


def test_it_is_an_order_in_the_audit_log(house):
    """With what it holds, and who gave it; once it is made."""
    recorded: list[tuple[str, dict[str, Any]]] = []
    log = house.server.order_log
    log._record = lambda event, **facts: recorded.append((event, facts))
    view = made(house)
    (entry,) = recorded

    assert ("order", "backup", 80) == (entry[0], entry[1]["verb"], entry[1]["learnt"])
    assert view["total"] == entry[1]["bytes"]


def test_another_one_waits_for_its_end(house):
    """It is told so, as something that may be tried again."""
    view = made(house)
    second = house.asks("POST", "/backup")

    assert (503, True) == (second.status, "another backup is under way" in second.json["error"])
    house.asks("POST", f"/backup/{view['name']}/end")
    assert 200 == house.asks("POST", "/backup").status


def test_a_client_that_has_gone_is_noticed(house, monkeypatch):
    """Its copy does not take room for ever, and the next one need not wait for ever."""
    view = made(house)
    monkeypatch.setattr(backup, "SILENT_S", 0.05)
    house.asks("GET", f"/backup/{view['name']}/0")
    until(lambda: house.asks("POST", "/backup").status == 200)

    gone = house.asks("GET", f"/backup/{view['name']}/0")
    assert (400, True) == (gone.status, "no such backup" in gone.json["error"])


def test_a_copy_that_fails_is_over(house):
    """The reason is the answer; the next one may succeed."""
    with house.disk.full():
        rows = np.random.default_rng(5).normal(size=(60, SCHEMA.dim))
        house.hears("c1", rows)
        begun = house.asks("POST", "/backup").json
        answer = house.asks("GET", f"/backup/{begun['name']}")
        assert (503, True) == (answer.status, "cannot be written now" in answer.json["error"])
    again = house.asks("POST", "/backup")
    assert 200 == again.status


def test_below_a_root_there_is_nothing_to_copy(tmp_path):
    """In one line, before anything is copied."""
    with House(tmp_path, parent="top") as house:
        answer = house.asks("POST", "/backup")

    assert (400, True) == (answer.status, "back up the root" in answer.json["error"])


@pytest.mark.parametrize("path", ["/backup/none", "/backup/none/0", "/backup/none/end"])
def test_an_unknown_name_is_refused(house, path):
    """A name is as good as its copy."""
    answer = house.asks("POST" if path.endswith("end") else "GET", path)
    assert (400, "no such backup is under way: begin another one") == (
        answer.status,
        answer.json["error"],
    )


def test_a_root_that_ends_waits_for_no_copy(house):
    """Nor begins one."""
    made(house)
    house.ends()

    assert 503 == house.asks("POST", "/backup").status
