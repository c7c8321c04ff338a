"""The store: what was acknowledged is there, as it was written, or the file is refused."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge_aggregator.storage import MOST_PAGES
from submerge_aggregator.store import (
    FORM,
    PAGE_BYTES,
    Store,
    StoreDamaged,
    StoreGone,
    StoreUnavailable,
)
from support.disks import MOUNT, small_disk

RECORDS = {
    ("about",): b"an incarnation",
    ("row", "hall", "press-3", "1700000000000", "12345"): bytes(range(256)) * 18,
    ("row", "hall", "press-4", "1700000000001", "67890"): b"a row",
    ("member", "hall", "press-4"): b"",
}

keys = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4).map(tuple)
changes = st.dictionaries(keys, st.none() | st.binary(max_size=6000), max_size=5)


def loaded(path: Path) -> dict[tuple[str, ...], bytes]:
    """What a process that starts now finds."""
    with closing(Store(path)) as store:
        return store.load()


def kept(path: Path, records: dict[tuple[str, ...], bytes] = RECORDS) -> bytes:
    """The bytes of a store with these records, closed."""
    with closing(Store(path)) as store:
        store.write(records)
    return path.read_bytes()


def written(before: dict, changes: dict, *, reset: bool = False) -> dict:
    """The slow twin of `Store.write`."""
    both = changes if reset else before | changes
    return {key: value for key, value in both.items() if value is not None}


@pytest.mark.slow
@given(st.lists(st.tuples(changes, st.booleans(), st.booleans()), max_size=6))
def test_what_is_written_is_loaded(several):
    """Any keys and bytes: put, replaced, deleted, emptied; by one process or several."""
    expected: dict[tuple[str, ...], bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store")
        store = Store(path)
        for change, reset, reopened in several:
            if reopened:
                store.close()
                store = Store(path)
            store.write(change, reset=reset)
            expected = written(expected, change, reset=reset)
            assert expected == store.load()
        store.close()

        assert expected == loaded(path)


def test_no_file_is_an_empty_store(tmp_path):
    """The first start, in a folder that is not there yet."""
    path = tmp_path / "var" / "submerge" / "store"
    assert {} == loaded(path)
    kept(path)
    assert RECORDS == loaded(path)


def test_keys_that_look_alike_are_different(tmp_path):
    """However the parts of two keys may be put together."""
    alike = {
        (): b"0",
        ("",): b"1",
        ("a", "b"): b"2",
        ("a,b",): b"3",
        ('a","b',): b"4",
        ("a", "b", ""): b"5",
        ("a\0b",): b"6",
        ("A", "b"): b"7",
        ("\u00e9",): b"8",
        ("e\u0301",): b"9",
    }
    kept(tmp_path / "store", alike)
    assert alike == loaded(tmp_path / "store")


def test_a_commit_waits_for_the_disk(tmp_path):
    """An acknowledgement rests on it: a write-ahead log, flushed at each commit."""
    with closing(Store(tmp_path / "store")) as store:
        assert "wal" == store._sql.execute("PRAGMA journal_mode").fetchone()[0]
        assert 2 == store._sql.execute("PRAGMA synchronous").fetchone()[0]


def test_opened_in_one_thread_and_used_in_another(tmp_path):
    """An event loop opens it, and its one worker writes."""
    with closing(Store(tmp_path / "store")) as store, ThreadPoolExecutor(1) as worker:
        worker.submit(store.write, RECORDS).result()
        assert RECORDS == worker.submit(store.load).result()


def test_a_write_that_cannot_be_encoded_changes_nothing(tmp_path):
    """A mistake in one record of several, and the next write succeeds."""
    with closing(Store(tmp_path / "store")) as store:
        store.write(RECORDS)
        with pytest.raises(TypeError):
            store.write({("about",): b"other", ("row",): 5}, reset=True)
        with pytest.raises(UnicodeEncodeError):
            store.write({("about",): b"other", ("\ud800",): None}, reset=True)
        assert RECORDS == store.load()
        store.write({("about",): b"another"})
        assert RECORDS | {("about",): b"another"} == store.load()


def test_a_changed_row_is_found(tmp_path):
    """SQLite accepts it; its checksum does not. One line has what to do."""
    path = tmp_path / "store"
    kept(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE records SET value = x'00' WHERE key = '[\"about\"]'")
        other.commit()

    with pytest.raises(
        StoreDamaged, match=f"{path}.*about.*move it away; .* begins a new"
    ) as reported:
        loaded(path)
    assert "\n" not in str(reported.value)


def test_a_row_under_another_key_is_found(tmp_path):
    """The checksum is over both."""
    path = tmp_path / "store"
    kept(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE records SET key = '[\"other\"]' WHERE key = '[\"about\"]'")
        other.commit()

    with pytest.raises(StoreDamaged, match="other"):
        loaded(path)


def test_a_row_that_fell_out_is_missed(tmp_path):
    """All that are left have checksums that are right; the page that held it does not add up."""
    path = tmp_path / "store"
    damaged = bytearray(kept(path))
    leaf = PAGE_BYTES  # the second page, the table's only one
    cells = slice(leaf + 3, leaf + 5)
    assert len(RECORDS) == int.from_bytes(damaged[cells], "big")
    damaged[cells] = (len(RECORDS) - 1).to_bytes(2, "big")
    path.write_bytes(damaged)

    with pytest.raises(StoreDamaged, match="page 2"):
        loaded(path)


def outcome(path: Path) -> dict | None:
    """What is loaded; None if that is refused in one line."""
    try:
        return loaded(path)
    except UsageError as error:
        reported = str(error)
    assert "\n" not in reported
    return None


@pytest.mark.slow
def test_flipped_bits_are_refused_or_harmless(tmp_path):
    """2,000 of them in a small database. Where no data is they are harmless."""
    path = tmp_path / "store"
    good = kept(path)
    rng = np.random.default_rng(1)
    refused = 0
    for place in rng.integers(len(good) * 8, size=2000):
        damaged = bytearray(good)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        found = outcome(path)
        assert found in (None, RECORDS)
        refused += found is None
    assert refused > 500


@pytest.mark.slow
def test_a_store_that_was_loaded_after_damage_goes_on_as_a_whole_one(tmp_path):
    """No flipped bit that `load` passes makes a later write go astray: 1,000 in what is used."""
    path = tmp_path / "store"
    good = kept(path)
    rng = np.random.default_rng(2)
    telling = [place for place in range(len(good)) if good[place]]
    later = {("row", "hall", "press-4", "1700000000001", "67890"): None, ("new",): bytes(9000)}
    for place in rng.choice(telling, size=1000, replace=False):
        damaged = bytearray(good)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        if outcome(path) is None:
            continue
        with closing(Store(path)) as store:
            try:
                store.write(later)
            except StoreUnavailable:
                continue  # a flipped bit may also say: not to be written
            assert written(RECORDS, later) == store.load()


@pytest.mark.slow
def test_a_file_cut_short_is_refused(tmp_path):
    """At any length but none; a few bytes at the end say nothing."""
    path = tmp_path / "store"
    good = kept(path)
    for length in range(2, len(good), 13):
        path.write_bytes(good[:length])
        found = outcome(path)
        assert found is None or (found == RECORDS and length > len(good) - PAGE_BYTES)


@pytest.mark.slow
def test_a_torn_or_damaged_log_gives_a_whole_state_that_was(tmp_path):
    """Cut at any length, or a bit flipped: what was committed before that, or a refusal."""
    path = tmp_path / "store"
    state: dict[tuple[str, ...], bytes] = {}
    states = [state]
    with closing(Store(path)) as store:
        for number in range(6):
            change = {("count",): b"%d" % number, ("row", str(number % 4)): bytes([number]) * 4500}
            store.write(change, reset=number == 3)
            state = written(state, change, reset=number == 3)
            states.append(state)
        database = path.read_bytes()
        log = Path(f"{path}-wal").read_bytes()
    rng = np.random.default_rng(3)
    for length in (*range(0, len(log), 211), *[len(log)] * 400):
        torn = bytearray(log[:length])
        if length == len(log):
            torn[rng.integers(length)] ^= 1 << rng.integers(8)
        path.write_bytes(database)
        Path(f"{path}-wal").write_bytes(torn)
        assert outcome(path) in (None, *states)

    path.write_bytes(database)
    Path(f"{path}-wal").write_bytes(log)
    assert states[-1] == loaded(path)


def test_what_is_no_database_is_refused_and_left_alone(tmp_path):
    """A file of the user's, named by mistake."""
    path = tmp_path / "rows.csv"
    path.write_text("time,t1\n" + "12:00,21.5\n" * 900)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match="file is not a database"):
        Store(path)
    assert before == path.read_bytes()


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    """It is whole, but it is not ours."""
    path = tmp_path / "photos.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE records (key, value, sum)")
    before = path.read_bytes()
    with pytest.raises(UsageError, match="got another program's database"):
        Store(path)
    assert before == path.read_bytes()
    assert ["photos.db"] == os.listdir(tmp_path)


def test_a_later_form_is_refused(tmp_path):
    """It is no damage: the words are others."""
    path = tmp_path / "store"
    kept(path)
    with closing(sqlite3.connect(path)) as later:
        later.execute(f"PRAGMA user_version = {FORM + 1}")
    with pytest.raises(
        UsageError, match=rf"written by a later submerge \(form {FORM + 1}"
    ) as reported:
        Store(path)
    assert not isinstance(reported.value, StoreDamaged)


def test_an_earlier_form_is_refused_and_left_as_it_is(tmp_path):
    """The line says what takes it over, and when it was written."""
    path = tmp_path / "store"
    kept(path)
    with closing(sqlite3.connect(path)) as earlier:
        earlier.execute(f"PRAGMA user_version = {FORM - 1}")
    before = path.read_bytes()
    why = rf"before 28 November 2026 \(form {FORM - 1}, .*: start it once with the submerge of that"
    with pytest.raises(UsageError, match=why) as reported:
        Store(path)
    assert not isinstance(reported.value, StoreDamaged)
    assert before == path.read_bytes()


def test_a_folder_is_refused(tmp_path):
    """Also the one that an empty name stands for."""
    with pytest.raises(UsageError, match="a store must be a file"):
        Store(tmp_path)
    with pytest.raises(UsageError, match="a store must be a file"):
        Store("")


def test_its_files_are_their_owners_alone(tmp_path, caplog):
    """Also the log, with any umask; what an earlier version left open is closed, with a line."""
    caplog.set_level(logging.INFO, "submerge")
    path = tmp_path / "store"
    old = os.umask(0)
    try:
        for open_before in (False, True):
            if open_before:
                path.chmod(0o644)
            with closing(Store(path)) as store:
                store.write(RECORDS)
                names = {f"store{end}": 0o600 for end in ("", "-wal", ".ballast")}
                assert names == {
                    each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()
                }
    finally:
        os.umask(old)
    assert {"store was open to other users"} == {each.message for each in caplog.records}
    assert [str(path), f"{path}-wal"] == [each.facts["path"] for each in caplog.records]


@pytest.mark.parametrize("name", ["store", "store-wal", "store-journal"])
def test_a_symbolic_link_is_refused(tmp_path, name):
    """The store's, or its log's: it is not written where it points."""
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"got {tmp_path / name}, a symbolic link to"):
        Store(tmp_path / "store")
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    """A file stands where the folder should."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="Not a directory"):
        Store(tmp_path / "file" / "folder" / "store")


def test_the_store_of_another_user_is_one_line_with_the_cure(tmp_path, monkeypatch):
    """Often the first start was with sudo."""
    Store(tmp_path / "root.db").close()
    monkeypatch.setattr("submerge_aggregator.store.os.access", lambda *_: False)
    with pytest.raises(StoreUnavailable, match=r"no permission.*chown"):
        Store(tmp_path / "root.db")


def test_a_second_opener_is_refused(tmp_path):
    """At once, whether the first has written or not; when that has closed it, no longer."""
    path = tmp_path / "store"
    for records in ({}, RECORDS):
        with closing(Store(path)) as store:
            with pytest.raises(UsageError, match=f"another process uses the store {path}"):
                Store(path)
            store.write(records)
            with pytest.raises(UsageError, match="another process uses"):
                Store(path)
            assert records == store.load()
    assert RECORDS == loaded(path)


@pytest.mark.slow
def test_a_second_process_is_refused(tmp_path):
    """With the same words."""
    path = tmp_path / "store"
    opener = "import sys; from submerge_aggregator.store import Store; Store(sys.argv[1]).load()"
    with closing(Store(path)):
        done = subprocess.run(
            [sys.executable, "-c", opener, path], capture_output=True, text=True, check=False
        )
    assert f"UsageError: another process uses the store {path}: stop it" in done.stderr


def test_moved_away_it_is_a_new_store(tmp_path):
    """As the error advises; a log that was left behind is not taken for the new one's."""
    path = tmp_path / "store"
    with closing(Store(path)) as store:
        store.write(RECORDS)
        log = Path(f"{path}-wal").read_bytes()
    path.rename(tmp_path / "damaged")
    Path(f"{path}-wal").write_bytes(log)

    assert {} == loaded(path)


@pytest.mark.slow
def test_the_log_does_not_grow_without_bound(tmp_path):
    """Not by many commits, and a very large one's room is given back."""
    path = tmp_path / "store"
    log = Path(f"{path}-wal")
    most = 1.2 * MOST_PAGES * PAGE_BYTES
    rng = np.random.default_rng(4)
    with closing(Store(path)) as store:
        for _ in range(200):
            rows = {("row", str(n)): bytes(4500) for n in rng.integers(500, size=32)}
            store.write(rows)
            assert log.stat().st_size < most
        store.write({("row", str(n)): bytes(4500) for n in range(5000)}, reset=True)
        for n in range(3):
            store.write({("row", str(n)): b""})
        assert log.stat().st_size < most
    assert not log.exists()


@pytest.fixture
def tiny(tmp_path):
    """A file system of 256 kB."""
    with small_disk(tmp_path / "tiny", "256k") as disk:
        yield disk.place


def test_a_full_disk_costs_the_write_that_met_it(tiny):
    """One line; nothing is lost or half there; with room again, it goes on."""
    path = tiny / "store"
    ballast = tiny / "ballast"
    ballast.write_bytes(bytes(190_000))
    expected: dict[tuple[str, ...], bytes] = {}
    with closing(Store(path)) as store:
        reported = []
        for number in range(60):
            change = {("row", str(number % 20)): bytes([number]) * 4500, ("n",): b"%d" % number}
            try:
                store.write(change, reset=number % 7 == 6)
            except StoreUnavailable as error:
                reported.append(str(error))
            else:
                expected = written(expected, change, reset=number % 7 == 6)
            assert expected == store.load()
        assert {f"the store {path} cannot be used now: database or disk is full"} == set(reported)
        assert len(reported) > 5

        shutil.copytree(tiny, tiny.parent / "crashed")
        assert expected == loaded(tiny.parent / "crashed" / "store")

        ballast.unlink()
        store.write({("room",): b"again"})
        assert expected | {("room",): b"again"} == store.load()
    assert expected | {("room",): b"again"} == loaded(path)


def test_a_disk_too_full_to_begin_is_one_line(tiny):
    """And is no damage."""
    (tiny / "ballast").write_bytes(bytes(256 * 1024))
    with pytest.raises(StoreUnavailable, match="cannot be used now"):
        Store(tiny / "store")
    (tiny / "ballast").unlink()
    kept(tiny / "store")
    assert RECORDS == loaded(tiny / "store")


def test_a_read_only_disk_is_one_line(tiny):
    """And is no damage, either."""
    kept(tiny / "store")
    subprocess.run([MOUNT, "-o", "remount,ro", tiny], check=True)
    with pytest.raises(StoreUnavailable, match="cannot be used now"):
        kept(tiny / "store")
    subprocess.run([MOUNT, "-o", "remount,rw", tiny], check=True)
    assert RECORDS == loaded(tiny / "store")


WRITER = """
import itertools, sys
from submerge_aggregator.store import Store

store = Store(sys.argv[1])
for n in itertools.count(int(sys.argv[2])):
    rows = {("row", str(n % 7 + k)): b"%d " % n * (900 + n % 5) for k in range(3)}
    store.write(rows | {("n",): b"%d" % n}, reset=n % 50 == 0)
    print(n, flush=True)
"""


@pytest.mark.slow
def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path):
    """kill -9, five times, in the middle of writes: all finished writes are there, and whole."""
    path = tmp_path / "store"
    rng = np.random.default_rng(5)
    state: dict[tuple[str, ...], bytes] = {}
    first = 0
    for _ in range(5):
        command = [sys.executable, "-c", WRITER, path, str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            said = [writer.stdout.readline() for _ in range(rng.integers(30, 400))]
            writer.kill()
            said += writer.stdout.readlines()
        found = loaded(path)
        last = int(found["n",])
        assert int(said[-1]) <= last <= int(said[-1]) + 1
        for n in range(first, last + 1):
            rows = {("row", str(n % 7 + k)): b"%d " % n * (900 + n % 5) for k in range(3)}
            state = written(state, rows | {("n",): b"%d" % n}, reset=n % 50 == 0)
        assert state == found
        first = last + 1


def gone(path: Path) -> None:
    path.unlink()


def renamed(path: Path) -> None:
    path.rename(path.with_name("renamed"))


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def folder_gone(path: Path) -> None:
    shutil.rmtree(path.parent)


def folder_renamed(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


@pytest.mark.parametrize(
    "accident", [gone, renamed, replaced, emptied, folder_gone, folder_renamed]
)
def test_a_commit_to_a_file_without_its_name_is_refused(accident, tmp_path):
    """What the next start would not find is not acknowledged, nor what was committed before."""
    path = tmp_path / "folder" / "store"
    with closing(Store(path)) as store:
        store.write(RECORDS)
        accident(path)

        expected = f"expected the store {path} in its place while it is open, got "
        with pytest.raises(StoreGone, match=expected):
            store.write({("new",): b"1"})
        with pytest.raises(StoreGone, match=expected):
            store.check()


@pytest.mark.parametrize(
    ("accident", "now"), [(renamed, "folder/renamed"), (folder_renamed, "elsewhere/store")]
)
def test_a_store_that_was_renamed_is_whole_under_its_new_name(accident, now, tmp_path):
    """Its log stayed behind, or went with it: all that was acknowledged is in the database."""
    path = tmp_path / "folder" / "store"
    store = Store(path)
    store.write(RECORDS)
    accident(path)
    with pytest.raises(StoreGone):
        store.check()
    after_a_kill = tmp_path / "after"
    shutil.copy(tmp_path / now, after_a_kill)
    store.close()

    assert RECORDS == loaded(after_a_kill)


@pytest.mark.parametrize("accident", [gone, renamed, replaced])
def test_a_log_without_its_name_is_begun_again(accident, tmp_path, caplog):
    """A killed process loses none of what it acknowledged before and after, and it is said."""
    path, killed = tmp_path / "store", tmp_path / "killed"
    with closing(Store(path)) as store:
        store.write(RECORDS)
        accident(Path(f"{path}-wal"))
        store.write({("new",): b"1"})
        store.write({("newer",): b"2"})
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", f"{killed}{end}")

    assert RECORDS | {("new",): b"1", ("newer",): b"2"} == loaded(killed)
    assert 1 == caplog.messages.count("store's log was taken away, another begins")
