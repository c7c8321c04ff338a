"""`submerge backup`: a file that is whole or not there, and whether it is good."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from submerge.errors import SubmergeError
from submerge_aggregator import backup as copies
from submerge_files.console import admin_client
from submerge_operate import backup
from support.backups import configuration
from support.commands import shell, stands_at_its_socket
from support.disks import small_disk
from support.house import SCHEMA, House
from support.nodes import GROUP


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture
def house(tmp_path, monkeypatch) -> Iterator[House]:
    """A root with two nodes, and its configuration beside it as root.toml."""
    configuration(tmp_path)
    (tmp_path / "backups").mkdir()
    with House(tmp_path) as house:
        stands_at_its_socket(house, monkeypatch)
        for number in range(2):
            rows = np.random.default_rng(number).normal(size=(40, SCHEMA.dim))
            house.hears(f"c{number}", rows)
        yield house


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.usefixtures("house")
def test_a_copy_is_a_private_file(tmp_path, submerge):
    """Whatever the umask is; and it says what it holds."""
    before = os.umask(0)
    try:
        done = submerge("backup", "--config", tmp_path / "root.toml", "--to", tmp_path / "a.backup")
    finally:
        os.umask(before)

    assert (0, "") == (done.status, done.err)
    assert "a.backup: root at 2023-11-14T22:15:00Z, 80 readings, 8,192 bytes\n" in done.out
    assert 0o600 == stat.S_IMODE((tmp_path / "a.backup").stat().st_mode)
    assert [] == [name for name in names(tmp_path) if name.endswith(".part")]


@pytest.mark.usefixtures("house")
def test_as_json(tmp_path, submerge):
    """For a program that keeps an eye on copies."""
    done = submerge(
        "backup", "--store", tmp_path / "root.db", "--to", tmp_path / "a.copy", "--json"
    )
    facts = json.loads(done.out)

    assert ("root", 80, []) == (facts["node"], facts["learnt"], facts["removed"])
    assert str(tmp_path / "a.copy") == facts["file"]


@pytest.mark.usefixtures("house")
def test_an_existing_file_stays(tmp_path, submerge):
    """Unless it may be replaced."""
    path, config = tmp_path / "a.backup", tmp_path / "root.toml"
    path.write_text("mine")
    refused = submerge("backup", "--config", config, "--to", path)

    assert (2, "mine") == (refused.status, path.read_text())
    assert "which exists: add --anyway to replace it" in refused.err
    assert 0 == submerge("backup", "--config", config, "--to", path, "--anyway").status
    assert path.read_bytes().startswith(b"SQLite format 3")


@pytest.mark.usefixtures("house")
def test_a_folder_gets_dated_copies_and_keeps_the_newest(tmp_path, submerge, monkeypatch):
    """Of this root alone; other files stay, and so does the new one whatever the clock is."""
    folder, config = tmp_path / "backups", tmp_path / "root.toml"
    others = ["notes.txt", "other-2026-01-01T000000Z.backup", "root-old.backup"]
    for name in others:
        (folder / name).write_text("")
    for day in (3, 1, 2, 4):
        moment = f"2026-01-0{day}T000000Z"
        monkeypatch.setattr(backup.time, "strftime", lambda *_, moment=moment: moment)
        done = submerge("backup", "--config", config, "--to", folder, "--keep", 2)
        assert 0 == done.status, done.err

    kept = [f"root-2026-01-0{day}T000000Z.backup" for day in (3, 4)]
    assert sorted([*others, *kept]) == names(folder)


def test_the_new_copy_stays_though_the_clock_went_back(tmp_path):
    """It is the oldest by its name, and the newest in truth."""
    files = [tmp_path / f"root-2026-01-0{day}T000000Z.backup" for day in (1, 2, 3)]
    for each in files:
        each.touch()
    gone = backup.remove_older(files[0], "root", 2)

    assert [files[1]] == gone
    assert [files[0].name, files[2].name] == names(tmp_path)


def test_what_a_killed_command_has_begun_goes_after_a_day(tmp_path):
    """A file that is being written now stays."""
    whole = tmp_path / "root-2026-01-01T000000Z.backup"
    parts = [tmp_path / f".{whole.name}.{pid}.part" for pid in (1, 2)]
    for each in (whole, *parts):
        each.touch()
    os.utime(parts[0], (0, 0))
    backup.remove_older(whole, "root", 1)

    assert [parts[1].name, whole.name] == names(tmp_path)


def test_the_request_is_checked(tmp_path, submerge):
    """Each in one line, with status 2."""
    config = configuration(tmp_path)
    for words, why in (
        (("--config", config), "expected --to FILE or --to FOLDER, got neither"),
        (("--config", config, "--to", tmp_path / "a.copy", "--keep", 3), "create the folder"),
        (("--to", tmp_path / "a.copy"), "expected --config FILE, --store PATH or --at URL"),
    ):
        done = submerge("backup", *words)
        assert (2, 1) == (done.status, len(done.err.splitlines()))
        assert why in done.err


@pytest.mark.usefixtures("house")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, submerge, monkeypatch):
    """Before anything is copied."""
    monkeypatch.setattr(admin_client.AdminClient, "post", None)
    config = tmp_path / "root.toml"
    for path in (tmp_path / "none" / "a.copy", tmp_path / "root.toml" / "a.copy"):
        done = submerge("backup", "--config", config, "--to", path)
        assert (2, 1) == (done.status, len(done.err.splitlines()))
        assert "expected a folder that can be written, got" in done.err


@pytest.mark.usefixtures("house")
def test_a_full_disk_is_one_line_and_leaves_no_file(tmp_path, submerge):
    """What was written is removed."""
    with small_disk(tmp_path / "disk", "64k") as disk:
        disk.fill()
        done = submerge("backup", "--config", tmp_path / "root.toml", "--to", disk.place / "a.copy")

        assert (1, 1) == (done.status, len(done.err.splitlines()))
        assert f"the disk of {disk.place} is full: free some space" in done.err
        assert ["ballast"] == names(disk.place)
    assert (
        0
        == submerge(
            "backup", "--config", tmp_path / "root.toml", "--to", tmp_path / "a.copy"
        ).status
    )


def test_a_root_that_does_not_run_is_status_1(tmp_path, submerge):
    """A timer's unit fails then."""
    done = submerge("backup", "--config", configuration(tmp_path), "--to", tmp_path / "a.copy")

    assert (1, ["root.toml"]) == (done.status, names(tmp_path))
    assert "is it running?" in done.err


@pytest.mark.usefixtures("house")
@pytest.mark.parametrize("fault", ["changed", "short"])
def test_a_copy_that_was_changed_on_its_way_is_not_kept(tmp_path, submerge, monkeypatch, fault):
    """What arrives is read again before it gets its name."""
    get = admin_client.AdminClient.get

    def wrong(self: object, *words: str, **query: str) -> bytes:
        answer = get(self, *words, **query)
        if len(words) < 3:
            return answer
        return b"" if fault == "short" else answer.replace(b"room", b"moor")

    monkeypatch.setattr(admin_client.AdminClient, "get", wrong)
    done = submerge("backup", "--config", tmp_path / "root.toml", "--to", tmp_path / "a.copy")

    assert 1 == done.status, done.err
    assert not (tmp_path / "a.copy").exists()
    assert [] == [name for name in names(tmp_path) if name.endswith(".part")]


def test_a_file_that_came_in_between_stays(tmp_path, house, submerge, monkeypatch):
    """A copy takes its time."""
    receive = backup._receive

    def slowly(admin, file):
        receive(admin, file)
        (tmp_path / "a.copy").write_text("mine")

    monkeypatch.setattr(backup, "_receive", slowly)
    done = submerge("backup", "--store", house.store, "--to", tmp_path / "a.copy")

    assert (2, "mine") == (done.status, (tmp_path / "a.copy").read_text())


@pytest.mark.usefixtures("house")
def test_pieces_make_a_whole(tmp_path, submerge, monkeypatch):
    """However small they are."""
    monkeypatch.setattr(copies, "PIECE_BYTES", 777)
    config = tmp_path / "root.toml"
    assert 0 == submerge("backup", "--config", config, "--to", tmp_path / "a.copy").status
    assert 0 == submerge("backup", "check", tmp_path / "a.copy", "--config", config).status


# -- check -------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path, house, submerge) -> Path:
    """A copy of the root, which goes on."""
    path = tmp_path / "a.backup"
    assert 0 == submerge("backup", "--store", house.store, "--to", path).status
    house.hears("c0", np.random.default_rng(9).normal(size=(90, SCHEMA.dim)))
    return path


def test_a_good_copy_is_status_0(tmp_path, copy, submerge):
    """The root may run, and have gone on."""
    done = submerge("backup", "check", copy, "--config", tmp_path / "root.toml")
    facts = submerge("backup", "check", copy, "--config", tmp_path / "root.toml", "--json")

    assert (0, "") == (done.status, done.err)
    assert f"{GROUP}: 80 readings; the model is the one that the root had\n" in done.out
    assert {GROUP: {"learnt": 80, "differs": ""}} == json.loads(facts.out)["groups"]


def test_a_damaged_one_is_status_1(tmp_path, copy, submerge):
    """In one line."""
    data = bytearray(copy.read_bytes())
    data[5000] ^= 1
    copy.write_bytes(data)
    done = submerge("backup", "check", copy, "--config", tmp_path / "root.toml")

    assert (1, 1) == (done.status, len(done.err.splitlines()))
    assert "is damaged: its bytes are not those that were written" in done.err


def test_one_with_another_model_is_status_1(tmp_path, copy, submerge):
    """Each group says how it is."""
    config = tmp_path / "root.toml"
    config.write_text(config.read_text().replace("oversample = 2", "oversample = 1"))
    done = submerge("backup", "check", copy, "--config", config)

    assert 1 == done.status
    assert f"{GROUP}: 80 readings; the same readings give another model" in done.out


def test_another_file_is_status_2(tmp_path, submerge):
    """And none at all."""
    config = configuration(tmp_path)
    for path in (config, tmp_path / "none"):
        done = submerge("backup", "check", path, "--config", config)
        assert (2, 1) == (done.status, len(done.err.splitlines()))


def test_a_failure_to_free_the_copy_costs_nothing(tmp_path, house, submerge, monkeypatch):
    """The aggregator notices by itself that its client has gone."""
    post = admin_client.AdminClient.post

    def fail(self: object, *words: str, **query: str) -> bytes:
        if words[-1] == "end":
            raise SubmergeError("gone")
        return post(self, *words, **query)

    monkeypatch.setattr(admin_client.AdminClient, "post", fail)
    assert 0 == submerge("backup", "--store", house.store, "--to", tmp_path / "a.copy").status
    second = submerge("backup", "--store", house.store, "--to", tmp_path / "b")
    assert (1, True) == (second.status, "another backup is under way" in second.err)


def test_a_folder_that_is_not_there_is_made(submerge, house, tmp_path):
    """A name without an ending is no file that a person would look for."""
    done = submerge("backup", "--store", house.store, "--to", tmp_path / "copies", "--keep", 2)
    (copy,) = (tmp_path / "copies").iterdir()

    assert (0, 0o700) == (done.status, (tmp_path / "copies").stat().st_mode & 0o777)
    assert copy.name.startswith("root-")


def test_a_copy_is_checked_without_a_configuration(submerge, house, tmp_path, monkeypatch):
    """It is whole, or damaged; with one in the folder its models are computed, too."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    copy = tmp_path / "a.copy"
    assert 0 == submerge("backup", "--store", house.store, "--to", copy).status
    alone = submerge("backup", "check", copy)
    configuration(tmp_path)
    monkeypatch.chdir(tmp_path)
    beside = submerge("backup", "check", copy)
    copy.write_bytes(copy.read_bytes()[:-1])
    damaged = submerge("backup", "check", copy)

    assert (0, 1, 0) == (alone.status, len(alone.out.splitlines()), beside.status)
    assert len(beside.out.splitlines()) > 1
    assert (1, "") == (damaged.status, damaged.out)
