"""A copy of a store that is being written: it is the store as of one commit, whatever comes in."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_aggregator import storage
from submerge_aggregator.storage import CopyFailed
from submerge_aggregator.store import Store
from support.disks import small_disk
from support.patience import PATIENCE_S

Kept = dict[tuple[str, ...], bytes]

keys = st.tuples(st.integers(0, 60).map(str))
changes = st.dictionaries(keys, st.none() | st.binary(max_size=9000), max_size=12)
steps = st.lists(st.tuples(changes, st.booleans(), st.sampled_from(["kept", "kept", "undone"])))


def silent(*_: int) -> None:
    """Follow no progress."""


def records_of(fd: int, folder: Path) -> Kept:
    """What an aggregator finds that starts with the copy."""
    path = folder / "copied"
    path.write_bytes(os.pread(fd, os.fstat(fd).st_size, 0))
    os.close(fd)
    with closing(Store(path)) as store:
        return store.load()


def big(n: int) -> Kept:
    """Records of so many pages and more."""
    return {(str(i),): bytes([i % 256]) * 4000 for i in range(n)}


@pytest.fixture
def small_steps(monkeypatch):
    """A page in each step, and no pause: many commits come in between."""
    monkeypatch.setattr(storage, "STEP_PAGES", 1)
    monkeypatch.setattr(storage, "LEAST_PAUSE_S", 0.0)


class Undone(Exception):
    """What a question may fail with."""


def batch(store: Store, change: Kept, *, reset: bool, undone: bool) -> None:
    """Write as a batch does, while it is the connection's turn; or fail, with all that is in it."""
    with store.copies.turn:
        if not undone:
            store.write(change, reset=reset)
            return
        # More than the cache of pages holds: SQLite writes uncommitted pages into its log.
        store._sql.execute("PRAGMA cache_size = 1")
        store._sql.execute("BEGIN IMMEDIATE")
        store._sql.execute("UPDATE records SET value = zeroblob(5000)")
        store._sql.execute("ROLLBACK")


@pytest.mark.slow
@pytest.mark.usefixtures("small_steps")
@given(st.dictionaries(keys, st.binary(max_size=9000), min_size=5, max_size=60), steps)
def test_a_copy_is_the_store_as_of_one_commit(first, between):
    """Rows change, go and come, the store is emptied, and transactions fail, between its steps."""
    with tempfile.TemporaryDirectory() as name:
        folder, left = Path(name), list(between)
        with closing(Store(folder / "store")) as store:
            store.write(first)

            def after_step(*_: int) -> None:
                if left:
                    change, reset, ends = left.pop()
                    batch(store, change, reset=reset, undone=ends == "undone")

            fd, expected = store.copies.make(store.load, after_step)
            assert expected == store.load()
            batch(store, {("later",): b"1"}, reset=False, undone=False)

            assert expected == records_of(fd, folder)


@pytest.mark.usefixtures("small_steps")
def test_what_is_committed_after_the_last_step_is_in_no_copy(tmp_path):
    """The machine of that commit is asked before the next batch: no commit comes in between."""
    with closing(Store(tmp_path / "store")) as store:
        store.write(big(20))

        def held() -> bool:
            return store.copies.turn.locked()

        fd, is_held = store.copies.make(held, silent)
        assert (True, False) == (is_held, held())
        assert big(20) == records_of(fd, tmp_path)


@pytest.mark.slow
def test_threads_write_and_copy_at_the_same_time(tmp_path):
    """As the commit thread does; each copy is one of the states that were committed."""
    with closing(Store(tmp_path / "store")) as store:
        store.write({**big(200), ("n",): b"0"})
        states, ended = {b"0"}, threading.Event()

        def write() -> None:
            number = 0
            while not ended.is_set():
                number += 1
                said = b"%d" % number
                states.add(said)
                change = {(str(number * 7 % 200),): said, ("n",): said}
                with store.copies.turn:
                    store.write(change)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(20):
                fd, there = store.copies.make(store.load, silent)
                assert there == records_of(fd, tmp_path)
                assert there["n",] in states
        finally:
            ended.set()
            writer.join(PATIENCE_S)
        assert len(states) > 20


def test_a_copy_has_no_name(tmp_path):
    """Whatever ends the process, no half of a copy is left, and none of an earlier one."""
    left = tmp_path / "store.copying"
    with closing(Store(tmp_path / "store")) as store:
        store.write(big(40))
        left.write_bytes(b"of a process that was killed between two lines")
        seen = set[str]()
        fd, _ = store.copies.make(lambda: None, lambda *_: seen.update(os.listdir(tmp_path)))
        os.close(fd)

        assert {"store", "store-wal", "store.ballast"} >= seen
        assert not left.exists()


@pytest.mark.usefixtures("small_steps")
def test_one_at_a_time(tmp_path):
    """The second is refused, the first goes on, and a third may follow it."""
    with closing(Store(tmp_path / "store")) as store:
        store.write(big(20))
        refused: list[str] = []

        def ask_again(*_: int) -> None:
            with pytest.raises(CopyFailed) as caught:
                store.copies.make(lambda: None, silent)
            refused.append(str(caught.value))

        fd, _ = store.copies.make(lambda: None, ask_again)
        assert {"another copy of the store is being made: wait for its end"} == {*refused}
        assert big(20) == records_of(fd, tmp_path)
        os.close(store.copies.make(lambda: None, silent)[0])


@pytest.mark.usefixtures("small_steps")
def test_a_store_that_is_closed_ends_its_copy_first(tmp_path):
    """An aggregator that is asked to stop does not wait for a large one."""
    store, first_step = Store(tmp_path / "store"), threading.Event()
    store.write(big(400))
    closing_thread = threading.Thread(target=lambda: (first_step.wait(PATIENCE_S), store.close()))
    closing_thread.start()
    goes_on = threading.Event()

    def wait_for_close(*_: int) -> None:
        first_step.set()
        goes_on.wait(0.001)

    with pytest.raises(CopyFailed, match="stopping"):
        store.copies.make(lambda: None, wait_for_close)
    closing_thread.join(PATIENCE_S)
    with pytest.raises(CopyFailed, match="stopping"):
        store.copies.make(lambda: None, silent)
    with closing(Store(tmp_path / "store")) as again:
        assert big(400) == again.load()


def test_a_question_that_fails_leaves_the_store_at_work(tmp_path):
    """And its turn is free again."""
    with closing(Store(tmp_path / "store")) as store:
        store.write(big(3))
        with pytest.raises(Undone):
            store.copies.make(_fail, silent)
        assert not store.copies.turn.locked()
        store.write({("x",): b"1"})
        assert b"1" == store.load()["x",]


def _fail() -> None:
    raise Undone


def test_without_room_for_a_copy_there_is_none_and_commits_go_on(tmp_path):
    """The room of the store's log and ballast is left to them."""
    with small_disk(tmp_path / "disk", "4m") as disk, closing(Store(disk.place / "s")) as store:
        store.write(big(250))
        with pytest.raises(CopyFailed, match=r"needs [\d,]+ bytes .* free some space"):
            store.copies.make(lambda: None, silent)
        store.write({("x",): b"1"})
        assert b"1" == store.load()["x",]
        assert {"s", "s-wal", "s.ballast"} == {*os.listdir(disk.place)}


@pytest.mark.usefixtures("small_steps")
def test_a_disk_that_fills_meanwhile_costs_the_copy_alone(tmp_path):
    """Commits fail as they do on a full disk, and succeed when there is room again."""
    with small_disk(tmp_path / "disk", "8m") as disk, closing(Store(disk.place / "s")) as store:
        store.write(big(300))
        steps = iter(range(10_000))

        def fill(*_: int) -> None:
            if next(steps) == 30:
                disk.fill()

        with pytest.raises(CopyFailed, match=r"full|disk I/O"):
            store.copies.make(lambda: None, fill)
        disk.make_room()
        store.write({("x",): b"1"})
        assert {**big(300), ("x",): b"1"} == store.load()
