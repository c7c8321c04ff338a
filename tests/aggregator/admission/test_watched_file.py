"""A file that is read again when it changes, and whose last good content holds."""

from __future__ import annotations

import logging
import os

import pytest

from submerge import UsageError
from submerge_aggregator.admission.roster import parse_roster
from submerge_aggregator.admission.watched_file import LOOK_S, MOST_BYTES, WatchedFile
from submerge_client.files import FileLooks

HEAD = "node,role,groups\n"


class Clock:
    """Stands still until the test moves it."""

    steady = 0.0

    def __call__(self) -> float:
        return self.steady


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text(HEAD + "a,client,\n")
    return path


@pytest.fixture
def file(path, clock):
    return WatchedFile(path, parse_roster, setting="listen.roster", steady=clock)


def named(file, clock):
    """Whom it lists after a while."""
    clock.steady += LOOK_S
    return set(file.current())


def put(path, text):
    """Replace it at once."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_it_is_read_again_when_it_has_changed(file, path, clock):
    assert {"a"} == named(file, clock)
    put(path, HEAD + "b,client,\n")
    assert {"b"} == named(file, clock)


def test_it_is_read_again_on_demand_though_size_and_time_are_those_of_before(file, path, clock):
    """`FileLooks.asked` is what SIGHUP counts up."""
    before = path.stat()
    path.write_text(HEAD + "b,client,\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert {"a"} == named(file, clock)
    FileLooks.asked += 1
    assert {"b"} == named(file, clock)


def test_its_content_is_the_same_object_while_it_stays(file, clock):
    """So that a change can be seen by it."""
    before = file.current()
    clock.steady += LOOK_S

    assert before is file.current()


def test_it_is_looked_at_once_a_second(file, path, clock, monkeypatch):
    """However many calls there are."""
    file.current()
    put(path, HEAD + "b,client,\n")
    looks = []
    monkeypatch.setattr(file, "_signature", lambda: looks.append(1) or (0, 0, 0))
    for _ in range(100):
        file.current()
        clock.steady += LOOK_S / 32

    assert 3 == len(looks)


@pytest.mark.parametrize("damage", ["gone", "wrong", "bytes", "folder", "large"])
def test_what_it_said_last_holds_and_the_log_says_so_once(file, path, clock, damage, caplog):
    """Until it is good again."""
    assert {"a"} == named(file, clock)
    if damage == "wrong":
        put(path, "node,role\n")
    elif damage == "bytes":
        path.write_bytes(b"\xff\xfe")
    elif damage == "large":
        put(path, HEAD + "\n" * MOST_BYTES)
    else:
        path.unlink()
        if damage == "folder":
            path.mkdir()
    with caplog.at_level(logging.INFO):
        assert [{"a"}] * 3 == [named(file, clock) for _ in range(3)]
        assert ["file not read again"] == [record.getMessage() for record in caplog.records]
        if damage == "folder":
            path.rmdir()
        put(path, HEAD + "b,client,\n")
        assert {"b"} == named(file, clock)
        assert "file read again" == caplog.records[-1].getMessage()


@pytest.mark.parametrize("text", [None, "node,role\n"])
def test_a_file_that_is_wrong_at_the_start_is_one_line(tmp_path, text):
    """With the setting and the file."""
    path = tmp_path / "roster.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as error:
        WatchedFile(path, parse_roster, setting="listen.roster")

    assert str(error.value).startswith(f"listen.roster: expected a file to read, got {path}: ")
    assert "\n" not in str(error.value)


def test_a_file_that_need_not_be_there_says_what_was_agreed(tmp_path, clock):
    """At the start, once it is there, and when it is gone again."""
    path = tmp_path / "tokens"
    file = WatchedFile(path, str.upper, setting="x", missing="NONE", steady=clock)
    said = [file.current()]
    path.write_text("some")
    clock.steady += LOOK_S
    said.append(file.current())
    path.unlink()
    clock.steady += LOOK_S

    assert ["NONE", "SOME", "NONE"] == [*said, file.current()]
