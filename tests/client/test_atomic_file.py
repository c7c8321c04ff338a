"""atomic_file: the old file or the new one, and nothing beside it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from submerge_client.files import atomic_file, atomic_write


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """A reader that has it open keeps the old one; who opens it next has the new one."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        atomic_write(path, b"new")

        assert b"old" == reader.read()
    assert b"new" == path.read_bytes()


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """And no part of the new one beside it."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fails() -> None:
        with atomic_file(path) as file:
            file.write(b"half")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fails()
    assert b"old" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_a_secret_is_born_private(tmp_path: Path) -> None:
    """At no moment may others read it: not while it is written, nor afterwards."""
    path = tmp_path / "a"
    with atomic_file(path, mode=0o600) as file:
        assert 0o600 == stat.S_IMODE(os.fstat(file.fileno()).st_mode)

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_what_a_dead_process_left_is_no_obstacle(tmp_path: Path) -> None:
    """One of its number, or of the same name beside it, may have died in the middle."""
    path = tmp_path / "a"
    (tmp_path / "a.new").write_bytes(b"half of something")
    atomic_write(path, b"whole", beside="a.new")

    assert b"whole" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())
