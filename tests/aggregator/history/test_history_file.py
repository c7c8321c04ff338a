"""The history's file: bounded bytes, the oldest goes first, and a kill costs nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_aggregator.history.file import (
    HOUR,
    AlarmRow,
    HistoryFile,
    LevelsKey,
    files_of,
    higher,
    hours_of,
    steps_of,
)

MIB = 1 << 20
MINUTES = st.binary(max_size=200)


def on_disk(path: Path) -> int:
    return sum(os.stat(each).st_size for each in files_of(path) if each.exists())


@given(first=st.integers(0, 10**8), levels=MINUTES)
def test_hours_hold_what_minutes_held(first: int, levels: bytes) -> None:
    """Levels that are cut into hours, and read in steps of a minute, are the same levels."""
    hours = dict(hours_of(first, levels))

    assert {HOUR} >= {len(each) for each in hours.values()}
    assert levels == steps_of(hours, first, 1, len(levels))


@given(
    hours=st.dictionaries(st.integers(0, 5), st.binary(min_size=HOUR, max_size=HOUR)),
    first=st.integers(0, 400),
    step=st.integers(1, 90),
    count=st.integers(0, 9),
)
def test_a_step_is_the_maximum_of_its_minutes(
    hours: dict[int, bytes], first: int, step: int, count: int
) -> None:
    """Whatever hours are known, a step has the highest level of its minutes; 0 of unknown ones."""

    def level(minute: int) -> int:
        return hours.get(minute // HOUR, bytes(HOUR))[minute % HOUR]

    begins = range(first, first + step * count, step)

    assert bytes(max(map(level, range(at, at + step))) for at in begins) == steps_of(
        hours, first, step, count
    )


@given(parts=st.permutations([bytes([a, b, c]) for a, b, c in ((1, 5, 0), (2, 1, 9), (2, 5, 3))]))
def test_the_order_of_trails_does_not_matter(parts: list[bytes]) -> None:
    """Levels merge alike in any order, and however often they come."""
    merged = bytes(3)
    for part in [*parts, *parts]:
        merged = higher(merged, part)

    assert bytes([2, 5, 9]) == merged


def test_it_is_there_again(tmp_path: Path) -> None:
    """What was written is read by the next process, merged by the highest level."""
    key, path = LevelsKey(7, "room", "c"), tmp_path / "h"
    file = HistoryFile(path, MIB)
    file.put_levels({key: bytes([1, 9]) + bytes(58)})
    file.close()
    file = HistoryFile(path, MIB)
    file.put_levels({key: bytes([5, 2]) + bytes(58)})

    assert {"c": {7: bytes([5, 9]) + bytes(58)}} == file.levels("room", range(9), most=5)
    assert {} == file.levels("hall", range(9), most=5)
    assert {} == file.levels("room", range(7), most=5)
    assert 0o600 == os.stat(path).st_mode & 0o777
    file.close()


@pytest.mark.slow
def test_the_bytes_are_bounded_and_the_oldest_goes(tmp_path: Path) -> None:
    """Many days of many nodes stay below the configured bytes, with the log; the newest stay."""
    rng, path = np.random.default_rng(0), tmp_path / "h"
    file, most = HistoryFile(path, MIB), 0
    for hour in range(100):
        levels = {LevelsKey(hour, "room", f"node-{i}"): rng.bytes(HOUR) for i in range(400)}
        file.put_levels(levels)
        most = max(most, on_disk(path))
    found = file.levels("room", range(100), most=1000)

    assert most <= MIB
    assert {400} == {len(found)}
    kept = {tuple(hours) for hours in found.values()}
    assert 1 == len(kept)
    (hours,) = kept
    assert list(range(hours[0], 100)) == list(hours)
    assert 10 < len(hours) < 90
    file.close()


@pytest.mark.slow
def test_alarms_do_not_drive_out_levels(tmp_path: Path) -> None:
    """A flood of alarms takes its own share of the bytes, and its newest stay."""
    path = tmp_path / "h"
    file, key = HistoryFile(path, MIB), LevelsKey(3, "room", "c")
    file.put_levels({key: bytes([9]) * HOUR})
    for at in range(0, 20_000, 500):
        alarms = [AlarmRow("room", f"c-{i:x}", float(i), bytes(900)) for i in range(at, at + 500)]
        file.put_alarms(alarms)
        assert on_disk(path) <= MIB

    assert {"c": {3: bytes([9]) * HOUR}} == file.levels("room", range(9), most=5)
    newest = [row.at for row in file.alarms("room", float("inf"), 20)]
    assert [float(i) for i in range(19_999, 19_979, -1)] == newest
    file.close()


def test_less_room_than_before_shortens_it(tmp_path: Path) -> None:
    """A file that was made with more room shrinks to the bytes that are configured now."""
    path = tmp_path / "h"
    file = HistoryFile(path, 4 * MIB)
    for hour in range(40):
        file.put_levels({LevelsKey(hour, "room", f"n{i}"): bytes([7]) * 60 for i in range(400)})
    file.close()
    assert on_disk(path) > MIB
    file = HistoryFile(path, MIB)

    assert on_disk(path) <= MIB
    assert {400} == {len(file.levels("room", range(39, 40), most=1000))}
    file.close()


def test_hours_to_come_go_first(tmp_path: Path) -> None:
    """Levels that were written while our clock was ahead are forgotten before real ones."""
    file = HistoryFile(tmp_path / "h", MIB)
    file.put_levels({LevelsKey(90_000, "room", f"n{i}"): bytes([7]) * 60 for i in range(3000)})
    file.put_levels({LevelsKey(50, "room", "c"): bytes([7]) * 60})
    for hour in range(51, 60):
        file.put_levels({LevelsKey(hour, "room", f"n{i}"): bytes([7]) * 60 for i in range(700)})

    assert {} == file.levels("room", range(90_000, 90_001), most=5)
    assert {"c"} == set(file.levels("room", range(50, 51), most=5))
    file.close()


WRITES = """
import itertools, sys
from pathlib import Path
from submerge_aggregator.history.file import HistoryFile, LevelsKey
file = HistoryFile(Path(sys.argv[1]), 1 << 20)
for at in itertools.count():
    file.put_levels({LevelsKey(at // 50, "room", f"n{i}"): bytes([1 + at % 50]) * 60
        for i in range(200)})
    print(at, flush=True)
"""


@pytest.mark.slow
def test_a_kill_loses_nothing_that_was_written(tmp_path: Path) -> None:
    """After kill -9 in the middle of writes, all that was written is read, and nothing damaged."""
    path = tmp_path / "h"
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITES, path], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= 120:
                break
        writer.send_signal(signal.SIGKILL)
        writer.communicate()

        file = HistoryFile(path, MIB)  # a damaged one would raise
        found = file.levels("room", range(2, 3), most=1000)
        assert 200 == len(found)
        assert 21 <= min(min(hours[2]) for hours in found.values())
        file.close()
