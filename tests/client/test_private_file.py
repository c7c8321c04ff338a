"""Files that only their owner may read, whatever the umask is, and never behind a link."""

from __future__ import annotations

import logging
import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from submerge import UsageError
from submerge_client.alarms.journal import Journal
from submerge_client.alarms.ndjson import File
from submerge_client.checkpoint import CheckpointFile
from submerge_client.files import create_private, make_private, open_private, refuse_link


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    """A umask, and the old one again."""
    old = os.umask(request.param)
    yield
    os.umask(old)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_a_file_is_created_for_its_owner(tmp_path):
    """By either function, whatever the umask is."""
    create_private(tmp_path / "a")
    os.close(open_private(tmp_path / "b", os.O_WRONLY | os.O_APPEND))
    assert 0o600 == mode_of(tmp_path / "a") == mode_of(tmp_path / "b")


def test_an_existing_file_stays_as_it_is(tmp_path):
    """Content and mode: its owner may have opened it to another program."""
    path = tmp_path / "lines"
    path.write_text("mine")
    path.chmod(0o644)
    create_private(path)
    os.close(open_private(path, os.O_WRONLY | os.O_APPEND))
    assert ("mine", 0o644) == (path.read_text(), mode_of(path))


def test_a_file_is_taken_away_from_others_with_a_line(tmp_path, caplog):
    """Once; an owner's own bits, and a missing file, are no news."""
    caplog.set_level(logging.INFO, "submerge")
    path = tmp_path / "store"
    make_private(path, what="store")
    path.write_text("")
    for mode in (0o644, 0o640, 0o666):
        path.chmod(mode)
        make_private(path, what="store")
        make_private(path, what="store")
        assert 0o600 == mode_of(path)
    path.chmod(0o400)
    make_private(path, what="store")
    assert 0o400 == mode_of(path)
    assert ["644", "640", "666"] == [each.facts["mode"] for each in caplog.records]


@pytest.mark.parametrize("target", ["there", "missing"])
def test_a_link_is_refused_and_not_followed(tmp_path, target):
    """Also one to nothing: the file would be created where it points."""
    (tmp_path / "there").write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / target)
    with pytest.raises(UsageError, match=f"the store must be a file of its own.*{target}"):
        refuse_link(link, what="the store")
    with pytest.raises(OSError, match="symbolic links"):
        open_private(link, os.O_WRONLY)
    create_private(link)
    assert "mine" == (tmp_path / "there").read_text()
    assert not (tmp_path / "missing").exists()
    refuse_link(tmp_path / "there", what="the store")
    refuse_link(tmp_path / "nothing", what="the store")


def test_a_client_keeps_no_state_behind_a_link(tmp_path):
    """Checkpoint, alarm lines and journal: one line each, and nothing is written there."""
    for make in (
        CheckpointFile,
        File,
        lambda path: Journal(path, ["webhook"]),
    ):
        link = tmp_path / "link"
        link.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(UsageError, match=r"got .*link, a symbolic link to .*elsewhere: name"):
            make(link)
        assert ["link"] == [each.name for each in tmp_path.iterdir()]
        link.unlink()


def test_a_folder_above_may_be_a_link(tmp_path):
    """It is the administrator's: /var may be elsewhere."""
    (tmp_path / "real").mkdir()
    (tmp_path / "var").symlink_to(tmp_path / "real")
    with closing(CheckpointFile(tmp_path / "var" / "state")) as file:
        file.write({("a",): b"b"})
    assert 0o600 == mode_of(tmp_path / "real" / "state")


@pytest.mark.usefixtures("umask")
def test_alarm_lines_are_their_owners_and_an_old_file_keeps_its_mode(tmp_path):
    """A program of another user may read a file that was made for it before."""
    File(tmp_path / "new.ndjson").close()
    assert 0o600 == mode_of(tmp_path / "new.ndjson")
    (tmp_path / "old.ndjson").touch()
    (tmp_path / "old.ndjson").chmod(0o644)
    File(tmp_path / "old.ndjson").close()
    assert 0o644 == mode_of(tmp_path / "old.ndjson")
