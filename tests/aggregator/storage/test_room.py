"""A store on a disk that is full: it loses nothing, and goes on as soon as there is room."""

from __future__ import annotations

import logging
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

from submerge_aggregator.storage import LEAST_PAGES, LOGGED_BYTES, Ballast
from submerge_aggregator.store import Store, StoreUnavailable
from support.disks import Disk, small_disk

FULL = "disk full: store's log written back"
AGAIN = "store has its room again"
BARE = "disk nearly full: no room for the ballast"
MIB = 1 << 20


@pytest.fixture
def disk(tmp_path):
    """A file system of 1 MiB: a log of 1,000 pages fills it, and a store of 20 rows does not."""
    with small_disk(tmp_path / "tiny", "1m") as disk:
        yield disk


def records(number: int, nodes: int = 20) -> dict[tuple[str, ...], bytes | None]:
    """One commit: a row of 4,500 bytes."""
    return {("row", str(number % nodes)): bytes([number % 256]) * 4500, ("n",): b"%d" % number}


def fill_up(store: Store, expected: dict, commits: int, nodes: int = 20) -> int:
    """Commit rows; return how many commits failed."""
    failed = 0
    for number in range(commits):
        try:
            store.write(records(number, nodes))
        except StoreUnavailable:
            failed += 1
        else:
            expected |= records(number, nodes)
    return failed


def test_a_log_never_fills_the_disk_of_a_small_store(disk):
    """400 commits of a store of 20 rows, three starts: the log alone was 4 MB before."""
    path, expected = disk.place / "store", {}
    for _ in range(3):
        with closing(Store(path)) as store:
            assert 0 == fill_up(store, expected, 400)
            assert expected == store.load()


def test_a_store_on_a_full_disk_goes_on_in_its_own_room(disk, caplog):
    """Another program fills the disk to the last byte; rows are replaced all the same."""
    caplog.set_level(logging.INFO, "submerge")
    path, expected = disk.place / "store", {}
    with closing(Store(path)) as store:
        fill_up(store, expected, 20)
        disk.fill()
        assert 0 == fill_up(store, expected, 400)
        assert expected == store.load()
        assert 1 == caplog.text.count(FULL)

        disk.make_room()
        assert 0 == fill_up(store, expected, 10)
        assert 1 == caplog.text.count(AGAIN)
    with closing(Store(path)) as store:
        assert expected == store.load()


def test_a_store_that_died_on_a_full_disk_starts_and_goes_on(disk):
    """As after kill -9: its files, with a log of new rows, on a disk without a free byte."""
    path, expected = disk.place / "store", {}
    with closing(Store(path)) as store:
        fill_up(store, expected, 12)
        before = {each.name: each.read_bytes() for each in disk.place.iterdir()}
    assert len(before["store"]) < len(before["store-wal"]) / 4
    for name, data in before.items():
        (disk.place / name).write_bytes(data)
    disk.fill()

    with closing(Store(path)) as store:
        assert expected == store.load()
        assert 0 == fill_up(store, expected, 100, nodes=12)
    with closing(Store(path)) as store:
        assert expected == store.load()


@pytest.mark.parametrize("free", [0, 100_000])
def test_a_store_that_really_does_not_fit_recovers_with_room(disk, free):
    """New rows come until the disk is full; what was taken is there, and later all is taken."""
    path, expected = disk.place / "store", {}
    with closing(Store(path)) as store:
        fill_up(store, expected, 20)
        (disk.place / "part").write_bytes(bytes(free))
        disk.fill()
        (disk.place / "part").unlink()
        assert fill_up(store, expected, 400, nodes=400) > 100
        assert expected == store.load()
    with closing(Store(path)) as store:
        assert expected == store.load()
        assert fill_up(store, expected, 400, nodes=400) > 100

        disk.make_room()
        assert 0 == fill_up(store, expected, 60, nodes=60)
        assert expected == store.load()
    with closing(Store(path)) as store:
        assert expected == store.load()


def test_a_store_that_an_earlier_version_has_left_stuck_recovers(disk):
    """A log of all the disk's bytes, and no ballast: as much room as its rows need is enough."""
    path, expected = disk.place / "store", {}
    with closing(Store(path)) as store:
        fill_up(store, expected, 20)
    (disk.place / "store.ballast").unlink()
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.execute("PRAGMA wal_autocheckpoint = 0")
        with suppress(sqlite3.OperationalError):  # the disk is full then
            while True:
                old.execute("REPLACE INTO records SELECT * FROM records")
        # Before it closes: its log would go back into the database.
        shutil.copytree(disk.place, disk.place.parent / "stuck")
    stuck = disk.place.parent / "stuck"
    for each in disk.place.iterdir():
        each.unlink()
    for name in ("store", "store-wal"):
        shutil.copy(stuck / name, disk.place / name)

    with closing(Store(path)) as store:
        assert expected == store.load()
        assert 0 == fill_up(store, expected, 400)


def test_without_a_ballast_each_commit_goes_into_the_database(tmp_path, caplog):
    """A disk of 256 kB has no room for one; one line says so, with the bytes to free."""
    path, expected = tmp_path / "tiny" / "store", {}
    with small_disk(tmp_path / "tiny", "256k") as disk:
        with closing(Store(path)) as store:
            assert 0 == fill_up(store, expected, 60, nodes=10)
            assert Path(f"{path}-wal").stat().st_size < 20 * LOGGED_BYTES
            assert expected == store.load()
        assert ["store"] == [each.name for each in disk.place.iterdir()]
    (line,) = caplog.records
    assert BARE == line.message
    assert 2 * LEAST_PAGES * LOGGED_BYTES == line.facts["bytes"]


LIMITED = """
import resource, signal, sys
from submerge_aggregator.store import Store

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
for n in range(200):
    store.write({("row", str(n % 10)): bytes([n]) * 4500, ("n",): b"%d" % n})
"""


@pytest.mark.slow
def test_a_limit_of_a_files_size_is_like_a_full_disk(tmp_path):
    """The log meets it, and begins again; no special file system is needed to see it."""
    path = tmp_path / "store"
    assert LEAST_PAGES * LOGGED_BYTES > 150_000
    subprocess.run([sys.executable, "-c", LIMITED, path], check=True)
    with closing(Store(path)) as store:
        assert b"199" == store.load()["n",]
    assert resource.RLIM_INFINITY == resource.getrlimit(resource.RLIMIT_FSIZE)[1]


def test_a_ballast_holds_real_room_for_its_owner_alone(tmp_path):
    """As many bytes as it says, on the disk, whatever it held before."""
    path = tmp_path / "ballast"
    ballast = Ballast(str(path))
    assert ballast.hold(100_000)
    assert 100_000 == ballast.held == path.stat().st_size
    assert path.stat().st_blocks * 512 >= 100_000
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert 100_000 == Ballast(str(path)).held
    assert ballast.hold(200_000)
    assert 200_000 == path.stat().st_size
    ballast.release()
    ballast.release()
    assert not path.exists()


def test_a_ballast_is_not_taken_from_the_last_room(disk: Disk):
    """Neither what must stay free beside it, nor a part of itself."""
    ballast = Ballast(str(disk.place / "ballast.own"))
    assert not ballast.hold(MIB // 2, spare=MIB // 2 + 1)
    assert not ballast.hold(2 * MIB)
    assert [] == list(disk.place.iterdir())
    assert ballast.hold(MIB // 2, spare=MIB // 2)


def test_what_cannot_be_removed_is_no_ballast(tmp_path):
    """A folder of its name, say: the store goes on without one."""
    (tmp_path / "ballast").mkdir()
    ballast = Ballast(str(tmp_path / "ballast"))

    assert not ballast.hold(1000)
    ballast.release()


def test_a_ballast_follows_no_link(tmp_path):
    """The file that it points to stays as it is."""
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "ballast").symlink_to(other)
    assert Ballast(str(tmp_path / "ballast")).hold(100)
    assert "mine" == other.read_text()
