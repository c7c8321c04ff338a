"""`submerge backup restore`: a copy becomes the store of a stopped root, nothing is overwritten."""

from __future__ import annotations

import json
import os
import shutil
import stat
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from submerge_aggregator.store import Store
from submerge_operate import backup
from support.backups import configuration, copied
from support.commands import shell
from support.house import SCHEMA, House
from support.nodes import new_incarnation


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


def rows(n: int) -> np.ndarray:
    """Readings of one node."""
    return np.random.default_rng(n).normal(size=(n, SCHEMA.dim))


@pytest.fixture
def copy(tmp_path) -> Path:
    """A copy of a root that has gone on since, and was stopped; its configuration is root.toml."""
    configuration(tmp_path)
    with House(tmp_path) as house:
        house.hears("c0", rows(40))
        house.hears("c1", rows(50))
        copied(house, tmp_path / "a.backup")
        house.hears("c0", rows(70))
        house.hears("new", rows(30))
    return tmp_path / "a.backup"


def records(path: Path) -> dict[tuple[str, ...], bytes]:
    """What a root that starts now finds."""
    with closing(Store(path)) as store:
        return store.load()


def aside(folder: Path) -> list[Path]:
    """The stores that were there before."""
    return sorted(each for each in folder.glob("root.db.before-*") if "ballast" not in each.name)


def test_the_copy_is_the_store_and_the_one_before_stays(tmp_path, copy, submerge):
    """Under another name, whole; the command says under which, and what to do next."""
    before = records(tmp_path / "root.db")
    done = submerge("backup", "restore", copy, "--config", tmp_path / "root.toml")
    (old,) = aside(tmp_path)

    assert (0, "") == (done.status, done.err)
    assert "is the store of 2023-11-14T22:15:00Z, with 90 readings\n" in done.out
    assert f"the store before is {old}\n" in done.out
    assert "start the root" in done.out
    assert 0o600 == stat.S_IMODE((tmp_path / "root.db").stat().st_mode)
    assert 2 == sum(key[0] == "row" for key in records(tmp_path / "root.db"))
    assert before == records(old)


def test_it_says_which_orders_it_brings_back(tmp_path, submerge):
    """A ban that was taken back since, or a pause that is over, holds again."""
    configuration(tmp_path)
    with House(tmp_path) as house:
        house.hears("c0", rows(40))
        house.hears("c1", rows(50))
        house.asks("POST", "/bans/thief/ban")
        house.asks("POST", "/nodes/room/c1/quarantine")
        house.asks("POST", "/nodes/room/c0/pause")
        copied(house, tmp_path / "a.backup")
    done = submerge("backup", "restore", tmp_path / "a.backup", "--config", tmp_path / "root.toml")

    said = [line for line in done.out.splitlines() if line.startswith("it brings back")]
    assert said == [
        "it brings back, banned: thief",
        "it brings back, paused in room: c0",
        "it brings back, quarantined in room: c1",
    ]


def test_again_and_back_again(tmp_path, copy, submerge):
    """Each store before has a name of its own."""
    for _ in range(3):
        assert 0 == submerge("backup", "restore", copy, "--config", tmp_path / "root.toml").status

    assert 3 == len(aside(tmp_path))


def test_where_there_is_no_store(tmp_path, copy, submerge):
    """A new machine."""
    (tmp_path / "root.db").unlink()
    done = submerge("backup", "restore", copy, "--config", tmp_path / "root.toml")

    assert (0, []) == (done.status, aside(tmp_path))
    assert "store before" not in done.out
    assert 2 == sum(key[0] == "row" for key in records(tmp_path / "root.db"))


def test_a_damaged_store_is_replaced_too(tmp_path, copy, submerge):
    """It is what copies are for; it stays aside as it is, with its log."""
    (tmp_path / "root.db").write_bytes(b"no database" * 1000)
    (tmp_path / "root.db-wal").write_bytes(b"no log")
    done = submerge("backup", "restore", copy, "--config", tmp_path / "root.toml")
    (old, log) = aside(tmp_path)

    assert (0, "") == (done.status, done.err)
    assert [b"no database" * 1000, b"no log"] == [old.read_bytes(), log.read_bytes()]
    assert f"{old.name}-wal" == log.name
    assert 2 == sum(key[0] == "row" for key in records(tmp_path / "root.db"))


def test_a_log_that_was_not_written_back_stays_with_the_old_store(tmp_path, copy, submerge):
    """A root that was killed leaves its newest commits there."""
    with House(tmp_path) as house:
        house.hears("c0", rows(80))
        for name in ("root.db", "root.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / f"killed-{name}")
    for name in ("root.db", "root.db-wal"):
        (tmp_path / f"killed-{name}").rename(tmp_path / name)
    done = submerge("backup", "restore", copy, "--config", tmp_path / "root.toml")
    (old,) = aside(tmp_path)

    assert 0 == done.status
    assert not (tmp_path / "root.db-wal").exists()
    assert 2 == sum(key[0] == "row" for key in records(tmp_path / "root.db"))
    assert 3 == sum(key[0] == "row" for key in records(old))


def test_a_root_that_runs_is_left_alone(tmp_path, copy, submerge):
    """The lock of its store says so."""
    with closing(Store(tmp_path / "root.db")) as store:
        before = store.load()
        done = submerge("backup", "restore", copy, "--config", tmp_path / "root.toml")
        assert before == store.load()

    assert (2, 1, []) == (done.status, len(done.err.splitlines()), aside(tmp_path))
    assert "expected a stopped root, got one that runs" in done.err


def test_one_that_runs_with_a_damaged_store_answers_at_its_socket(tmp_path, copy, submerge):
    """There is no lock to be seen then."""
    (tmp_path / "root.db").write_bytes(b"no database" * 1000)
    with closing(backup.socket.socket(backup.socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / "root.db.sock"))
        listener.listen()
        done = submerge("backup", "restore", copy, "--config", tmp_path / "root.toml")

    assert (2, []) == (done.status, aside(tmp_path))
    assert "stop it first" in done.err


def test_a_copy_that_is_not_good_changes_nothing(tmp_path, copy, submerge):
    """Damaged; or with another model, unless that is wanted."""
    before = records(tmp_path / "root.db")
    config = tmp_path / "root.toml"
    config.write_text(config.read_text().replace("oversample = 2", "oversample = 1"))
    other = submerge("backup", "restore", copy, "--config", config)
    assert (2, before) == (other.status, records(tmp_path / "root.db"))
    assert "add --anyway to restore it all the same" in other.err

    copy.write_bytes(copy.read_bytes()[:-10])
    damaged = submerge("backup", "restore", copy, "--config", config, "--anyway")
    assert (2, before, []) == (damaged.status, records(tmp_path / "root.db"), aside(tmp_path))
    assert "is damaged" in damaged.err


def test_another_model_is_restored_if_it_is_wanted(tmp_path, copy, submerge):
    """After a change of the configuration."""
    config = tmp_path / "root.toml"
    config.write_text(config.read_text().replace("oversample = 2", "oversample = 1"))

    assert 0 == submerge("backup", "restore", copy, "--config", config, "--anyway").status
    assert 1 == len(aside(tmp_path))


def test_a_configuration_with_a_parent_is_refused(tmp_path, copy, submerge):
    """An aggregator's store that is a copy is given up: a line says why, and what to do."""
    more = '[parent]\nname = "top"\nurl = "grpc://127.0.0.1:1"\ninsecure = true'
    configuration(tmp_path, more=more)
    done = submerge("backup", "restore", copy, "--config", tmp_path / "root.toml")

    assert (2, 1, []) == (done.status, len(done.err.splitlines()), aside(tmp_path))
    assert "whose parent is top: a store below a root that is a copy is given up" in done.err
    assert "Start it without a store instead" in done.err


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, copy, submerge, monkeypatch):
    """Nothing has changed then."""

    def fails(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    before = records(tmp_path / "root.db")
    monkeypatch.setattr(backup, "atomic_file", fails)
    done = submerge("backup", "restore", copy, "--config", tmp_path / "root.toml")

    assert (2, before) == (done.status, records(tmp_path / "root.db"))
    assert "Permission denied; run this as the aggregator's user" in done.err


def test_a_file_system_without_hard_links(tmp_path, copy, submerge, monkeypatch):
    """The old store is copied aside."""
    before = records(tmp_path / "root.db")

    def fails(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", fails)
    assert 0 == submerge("backup", "restore", copy, "--config", tmp_path / "root.toml").status
    assert before == records(aside(tmp_path)[0])


def test_a_symbolic_link_is_refused(tmp_path, copy, submerge):
    """A program that runs as root would write where another user points it."""
    (tmp_path / "root.db").rename(tmp_path / "elsewhere.db")
    (tmp_path / "root.db").symlink_to(tmp_path / "elsewhere.db")
    done = submerge("backup", "restore", copy, "--config", tmp_path / "root.toml")

    assert (2, True) == (done.status, "a symbolic link" in done.err)


def test_it_is_in_the_audit_log(tmp_path, copy, submerge):
    """Where there is one: a new file would be this user's, and not the aggregator's."""
    log = tmp_path / "root.db.audit.jsonl"
    assert 0 == submerge("backup", "restore", copy, "--config", tmp_path / "root.toml").status
    assert not log.exists()
    log.write_text('{"at":1.0,"event":"stop"}\n')
    assert 0 == submerge("backup", "restore", copy, "--config", tmp_path / "root.toml").status
    entry = json.loads(log.read_text().splitlines()[-1])

    assert ("order", "restore") == (entry["event"], entry["verb"])
    assert f"uid {os.getuid()}" == entry["by"]


def test_a_restored_root_counts_each_reading_once(tmp_path, copy, submerge):
    """A node that runs reports again all that it holds; one that has ended is as it was then."""
    assert 0 == submerge("backup", "restore", copy, "--config", tmp_path / "root.toml").status
    with House(tmp_path) as house:
        house.seq = 10
        house.hears("c0", rows(70))
        house.hears("c1", rows(20), incarnation=new_incarnation(5))
        counts = {each["node"]: each for each in house.asks("GET", "/nodes").json}

    assert {"c0": [70], "c1": [50, 20]} == {
        node: sorted((row["learnt"] for row in each["rows"]), reverse=True)
        for node, each in counts.items()
    }


def test_the_root_of_one_machine(tmp_path, submerge):
    """`submerge up` has one configuration for its client and its root."""
    channels = "".join(f'  {{ name = "{each.name}", unit = "°C" }},\n' for each in SCHEMA.channels)
    (tmp_path / "box.toml").write_text(
        f'node = "box"\ngroup = "room"\nfolder = "{tmp_path}"\n'
        f'[sensor]\nkind = "ndjson"\n[schema]\ncenter = "fleet"\nchannels = [\n{channels}]\n'
    )
    with House(tmp_path) as house:
        house.hears("c0", rows(40))
        copied(house, tmp_path / "a.backup")
    done = submerge("backup", "check", tmp_path / "a.backup", "--config", tmp_path / "box.toml")

    assert 2 == done.status
    assert "expected a copy of box-root, which the configuration names, got one of root" in done.err
    asked = submerge("backup", "--config", tmp_path / "box.toml", "--to", tmp_path / "b")
    assert (1, True) == (asked.status, f"{tmp_path}/root.db.sock" in asked.err)
