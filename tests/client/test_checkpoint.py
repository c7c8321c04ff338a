"""The checkpoint file: the newest state or the one before, whatever happens to the card."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.checkpoint import (
    FORM,
    HEAD,
    HEADER_BYTES,
    LEAST_CAPACITY,
    CheckpointFile,
    _checksum,
    state_of,
)
from support.disks import MOUNT, small_disk

OLD = {("checkpoint",): b"old" * 40, ("past",): b"", ("model", "hall 3"): bytes(range(256))}
NEW = {("checkpoint",): b"new" * 50, ("past",): b"\0\0"}
LARGE = {("checkpoint",): bytes(range(256)) * 40}

keys = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3).map(tuple)
states = st.dictionaries(keys, st.binary(max_size=3000), max_size=5)


def loaded(path: Path) -> dict[tuple[str, ...], bytes]:
    """What a process that starts now finds."""
    with closing(CheckpointFile(path)) as file:
        return file.load()


def kept(path: Path, *several: dict[tuple[str, ...], bytes]) -> bytes:
    """The bytes of a file that these states were written to, by one process each."""
    for state in several:
        with closing(CheckpointFile(path)) as file:
            file.write(state)
    return path.read_bytes()


@pytest.fixture
def tiny(tmp_path):
    """A file system of 64 kB."""
    with small_disk(tmp_path / "tiny", "64k") as disk:
        yield disk.place


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.slow
@given(st.lists(states, max_size=6), st.booleans())
def test_what_is_written_last_is_loaded(several, reopened):
    """Any keys and bytes, any number of states, larger ones too; by one process or several."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint")
        file = CheckpointFile(path)
        for state in several:
            if reopened:
                file.close()
                file = CheckpointFile(path)
            file.write(state)
            assert state == file.load()
            assert [] == file.notes
        file.close()

        assert (several[-1] if several else {}) == loaded(path)


def test_no_file_is_no_state(tmp_path):
    """The first start, in a folder that is not there yet."""
    path = tmp_path / "var" / "submerge" / "checkpoint"
    with closing(CheckpointFile(path)) as file:
        assert {} == file.load()
        assert [] == file.notes
        file.write(OLD)

    assert OLD == loaded(path)


def test_a_write_stays_in_its_slot(tmp_path):
    """A state that fits changes no more of the card than one slot, and needs no room."""
    path = tmp_path / "checkpoint"
    kept(path, OLD, NEW)
    before, inode = path.read_bytes(), path.stat().st_ino
    after = kept(path, OLD)

    assert inode == path.stat().st_ino
    assert 2 * LEAST_CAPACITY == len(before) == len(after)
    assert before[LEAST_CAPACITY:] == after[LEAST_CAPACITY:]


def test_a_write_torn_at_any_byte_leaves_the_state_before_or_the_one_after(tmp_path):
    """Power lost when the first n bytes of a slot were written."""
    path = tmp_path / "checkpoint"
    before = kept(path, LARGE, OLD)
    after = kept(path, NEW)
    size = HEADER_BYTES + HEAD.unpack_from(after)[3]

    for n in range(size):
        path.write_bytes(after[:n] + before[n:])
        assert OLD == loaded(path)
    path.write_bytes(after[:size] + before[size:])
    assert NEW == loaded(path)


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_sectors_written_in_any_order_are_not_believed(rng):
    """A card writes sectors in an order of its own; all of them, or none counts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint")
        before = kept(path, {("a",): b"1" * 4000}, {("a",): b"2" * 4000})
        after = kept(path, {("a",): b"3" * 4000})
        torn = bytearray(before)
        for start in range(0, len(torn), 512):
            if rng.random() < 0.5:
                torn[start : start + 512] = after[start : start + 512]
        path.write_bytes(torn)

        assert loaded(path) == {("a",): (b"3" if torn == after else b"2") * 4000}


CALLS = ("open", "pwrite", "fsync", "fdatasync", "replace")


@pytest.mark.parametrize(("after", "expected"), [(NEW, 5), (LARGE, 7)])
def test_a_write_that_fails_anywhere_leaves_the_state_before_or_the_one_after(
    tmp_path, monkeypatch, after, expected
):
    """Each system call in turn fails; the process goes on, and so does one that starts then."""
    real = {name: getattr(os, name) for name in CALLS}
    done: list[str] = []

    def failing(name: str, place: int):
        def call(*arguments, **options):
            done.append(name)
            if len(done) != place:
                return real[name](*arguments, **options)
            if name == "pwrite":
                real[name](arguments[0], arguments[1][:60], arguments[2])
            raise OSError(errno.ENOSPC, "No space left on device")

        return call

    for place in range(1, expected + 1):
        path = tmp_path / str(place) / "checkpoint"
        with closing(CheckpointFile(path)) as file:
            file.write(NEW)
            file.write(OLD)
            file.load()
            done.clear()
            with monkeypatch.context() as patch:
                for name in CALLS:
                    patch.setattr(os, name, failing(name, place))
                with pytest.raises(OSError, match="No space left"):
                    file.write(after)
            assert ["checkpoint"] == os.listdir(path.parent)
            crashed = tmp_path / f"crashed{place}"
            crashed.write_bytes(path.read_bytes())
            assert loaded(crashed) in (OLD, after)
            file.write(NEW)
            assert NEW == file.load()
        assert NEW == loaded(path)
    assert expected == len(done)


def test_a_state_goes_over_none_that_is_not_on_disk(tmp_path, monkeypatch):
    """What a dead process left may be in memory only: it is flushed before the other slot."""
    path = tmp_path / "checkpoint"
    kept(path, OLD, NEW)
    done = []
    for name in ("pwrite", "fsync", "fdatasync"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *given, name=name, real=real: (done.append(name), real(*given))[1]
        )
    with closing(CheckpointFile(path)) as file:
        file.load()
        file.write(OLD)
        file.write(NEW)

    assert ["fdatasync", "fsync", "pwrite", "fdatasync", "pwrite", "fdatasync"] == done


def spans(good: bytes) -> tuple[slice, slice]:
    """Where the two slots of a small file stand, and how far each is used."""
    starts = (0, LEAST_CAPACITY)
    first, second = (HEADER_BYTES + HEAD.unpack_from(good, start)[3] for start in starts)
    return slice(0, first), slice(LEAST_CAPACITY, LEAST_CAPACITY + second)


@pytest.mark.slow
def test_flipped_bits_give_a_state_that_was_or_none(tmp_path):
    """3,000 times one bit or a few, in both slots: the newest, the one before, or nothing."""
    rng = np.random.default_rng(1)
    path = tmp_path / "checkpoint"
    good = kept(path, OLD, NEW)
    older, newer = spans(good)
    used = [*range(older.stop), *range(newer.start, newer.stop)]
    found = {"new": 0, "old": 0, "none": 0}
    for _ in range(3_000):
        damaged = bytearray(good)
        for place in rng.choice(used, size=rng.choice((1, 1, 2, 3)), replace=False):
            damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        if damaged[newer] == good[newer]:
            which, expected = "new", NEW
        elif damaged[older] == good[older]:
            which, expected = "old", OLD
        else:
            which, expected = "none", {}

        assert expected == loaded(path)
        found[which] += 1
    assert min(found.values()) > 150


@pytest.mark.parametrize("length", [0, 1, 43, 44, 200, 4095, 4096, 4097, 4140, 4300, 8191])
def test_a_file_cut_short_gives_a_state_that_was_or_none(tmp_path, length):
    """The second slot begins where it did; the first, where the file does."""
    path = tmp_path / "checkpoint"
    good = kept(path, OLD, NEW)
    older, newer = spans(good)
    path.write_bytes(good[:length])

    assert (NEW if length >= newer.stop else OLD if length >= older.stop else {}) == loaded(path)
    kept(path, NEW)
    assert NEW == loaded(path)


def test_a_lost_slot_is_noted_in_one_line(tmp_path):
    """And the next write goes into it."""
    path = tmp_path / "checkpoint"
    damaged = bytearray(kept(path, OLD, NEW))
    damaged[-LEAST_CAPACITY + 60] ^= 1
    path.write_bytes(damaged)
    with closing(CheckpointFile(path)) as file:
        assert OLD == file.load()
        (note,) = file.notes
        file.write(LARGE | NEW)

        assert LARGE | NEW == file.load()
        assert [] == file.notes
    assert f"slot 2 of {path} is lost: it does not match its checksum" in note
    assert "\n" not in note


def test_what_is_no_checkpoint_is_set_aside(tmp_path):
    """A file of the user's, named by mistake, is still there afterwards."""
    path = tmp_path / "rows.csv"
    rows = b"time,t1\n" + b"12:00,21.5\n" * 5000
    path.write_bytes(rows)
    with closing(CheckpointFile(path)) as file:
        assert {} == file.load()
        assert f"{path}.damaged" in file.notes[-1]
        file.write(NEW)

    assert NEW == loaded(path)
    assert rows == Path(f"{path}.damaged").read_bytes()


def test_zeros_are_damage_and_not_a_new_file(tmp_path):
    """What file systems leave after a power cut."""
    path = tmp_path / "checkpoint"
    path.write_bytes(bytes(2 * LEAST_CAPACITY))
    with closing(CheckpointFile(path)) as file:
        assert {} == file.load()
        assert 2 == len(file.notes)


def reheaded(path: Path, place: int, **changes: int) -> None:
    """Change a slot's header, and make its checksum right again."""
    raw = bytearray(path.read_bytes())
    start = place * LEAST_CAPACITY
    names = ("magic", "form", "generation", "length")
    fields = dict(zip(names, HEAD.unpack_from(raw, start), strict=True)) | changes
    head = HEAD.pack(*fields.values())
    payload = bytes(raw[start + HEADER_BYTES :][: fields["length"]])
    raw[start : start + HEADER_BYTES] = head + _checksum(head, payload)
    path.write_bytes(raw)


def test_a_slot_that_claims_more_than_the_file_holds_is_not_read(tmp_path):
    """Not even with a checksum that is right."""
    path = tmp_path / "checkpoint"
    kept(path, OLD, NEW)
    reheaded(path, 1, length=1 << 60)
    with closing(CheckpointFile(path)) as file:
        assert OLD == file.load()
        assert f"claims {1 << 60} bytes, and there are 4052" in file.notes[0]


def test_a_later_form_is_no_damage(tmp_path):
    """It is refused, and stays as it is; a flipped bit in an old one is not taken for it."""
    path = tmp_path / "checkpoint"
    kept(path, OLD, NEW)
    reheaded(path, 1, form=FORM + 1)
    later = path.read_bytes()
    with closing(CheckpointFile(path)) as file:
        with pytest.raises(UsageError, match=rf"written by a later submerge \(form {FORM + 1}"):
            file.load()
        with pytest.raises(UsageError, match="later submerge"):
            file.write(NEW)
    assert later == path.read_bytes()


def test_a_state_that_outgrows_its_slot_gets_a_larger_file(tmp_path):
    """Nothing is left beside it, and it is ours as the first one was."""
    path = tmp_path / "checkpoint"
    with closing(CheckpointFile(path)) as file:
        for doublings in range(8):
            state = {("a",): bytes(5000 << doublings), ("b",): b"as before"}
            file.write(state)

            assert 16384 << doublings == path.stat().st_size
            assert state == file.load()
            with pytest.raises(UsageError, match="another process uses"):
                CheckpointFile(path)
    assert ["checkpoint"] == os.listdir(tmp_path)
    assert state == loaded(path)


def test_the_file_that_is_locked_is_the_one_with_the_name(tmp_path, monkeypatch):
    """Its last owner put a larger one in its place, and went, while we were coming in."""
    path = tmp_path / "checkpoint"
    kept(path, OLD)
    larger = tmp_path / "larger"
    kept(larger, LARGE)
    real = fcntl.flock

    def flock(fd: int, operation: int) -> None:
        if larger.exists():
            larger.replace(path)
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with closing(CheckpointFile(path)) as file:
        assert LARGE == file.load()


@pytest.mark.parametrize("name", [".", "/dev/null"])
def test_what_is_no_file_is_refused(name, tmp_path):
    """A folder; and a device, in whose place a file would be put."""
    with pytest.raises(UsageError, match="a checkpoint must be a file"):
        CheckpointFile(tmp_path / name)


@pytest.mark.slow
def test_two_processes_do_not_share_a_file(tmp_path):
    """The second is refused at once, in one line; a killed one's file is free again."""
    path = tmp_path / "checkpoint"
    hold = (
        "import sys; from submerge_client.checkpoint import CheckpointFile\n"
        "file = CheckpointFile(sys.argv[1]); file.write({('a',): b'theirs'})\n"
        "print('mine', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert b"mine\n" == other.stdout.readline()
        with pytest.raises(UsageError, match=f"another process uses the checkpoint {path}"):
            CheckpointFile(path)
        other.kill()
        other.wait()

        assert {("a",): b"theirs"} == loaded(path)


def test_a_full_disk_costs_the_new_state_only(tiny):
    """A larger state is refused; one that fits is not, since its room is taken already."""
    path = tiny / "checkpoint"
    with closing(CheckpointFile(path)) as file:
        file.write(OLD)
        with pytest.raises(OSError, match="No space left") as refusal:
            file.write({("a",): bytes(60_000)})
        assert errno.ENOSPC == refusal.value.errno
        assert OLD == file.load()
        assert ["checkpoint"] == os.listdir(tiny)

        with pytest.raises(OSError, match="No space left"):
            fill(tiny / "ballast")
        file.write(NEW)
        assert NEW == file.load()

        (tiny / "ballast").unlink()
        file.write(LARGE)
    assert LARGE == loaded(path)


def test_a_card_that_may_only_be_read_is_read(tiny):
    """What it holds comes back; a write says what is wrong, and works when that is over."""
    path = tiny / "checkpoint"
    kept(path, OLD)
    subprocess.run([MOUNT, "-o", "remount,ro", tiny], check=True)
    with closing(CheckpointFile(path)) as file:
        assert OLD == file.load()
        with pytest.raises(OSError, match="Read-only file system"):
            file.write(NEW)
        with pytest.raises(OSError, match="Read-only file system"):
            CheckpointFile(tiny / "another")
        subprocess.run([MOUNT, "-o", "remount,rw", tiny], check=True)
        file.write(NEW)
    assert NEW == loaded(path)


def test_a_closed_file_stays_closed(tmp_path):
    """Closing twice is harmless; writing then is not taken for something else's."""
    file = CheckpointFile(tmp_path / "checkpoint")
    file.close()
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write(OLD)


def gone(path: Path) -> None:
    path.unlink()


def renamed(path: Path) -> None:
    path.rename(path.with_name("renamed"))


def folder_gone(path: Path) -> None:
    shutil.rmtree(path.parent)


def folder_renamed(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


@pytest.mark.parametrize("state", [NEW, LARGE], ids=["fits", "outgrows"])
@pytest.mark.parametrize("accident", [gone, renamed, folder_gone, folder_renamed])
def test_a_state_is_written_again_under_a_name_that_was_lost(accident, state, tmp_path):
    """The next start finds it, also after a kill; what was renamed keeps the state before."""
    path = tmp_path / "folder" / "checkpoint"
    with closing(CheckpointFile(path)) as file:
        file.write(OLD)
        accident(path)
        file.write(state)

        assert state == state_of(path)
        with pytest.raises(UsageError, match="another process uses the checkpoint"):
            CheckpointFile(path)
    left = [each for each in tmp_path.glob("*/*") if each != path]
    assert [OLD] * len(left) == [state_of(each) for each in left]


@pytest.mark.parametrize("accident", [gone, renamed, folder_gone, folder_renamed])
def test_a_name_that_was_lost_after_the_last_write_is_back_at_the_end(accident, tmp_path):
    """Nothing new came meanwhile: the file is closed, and the newest state has its name."""
    path = tmp_path / "folder" / "checkpoint"
    with closing(CheckpointFile(path)) as file:
        file.write(OLD)
        accident(path)

    assert OLD == loaded(path)


def test_a_file_that_took_the_name_is_left_alone(tmp_path, caplog):
    """It may be another program's: nothing is written over it, and that is an error at once."""
    path = tmp_path / "checkpoint"
    with closing(CheckpointFile(path)) as file:
        file.write(OLD)
        path.unlink()
        kept(path, NEW)
        for state in (NEW, LARGE):
            with pytest.raises(UsageError, match="in its place while it is open, got another file"):
                file.write(state)

    assert NEW == loaded(path)
    assert ["checkpoint not kept"] == caplog.messages
