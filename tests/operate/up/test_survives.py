"""What a box has counted adds up, whatever has happened to its process, its files and its disk.

Each reading has an id, and one channel for each life of the process (`support.kills.feeding`):
what the root holds is the sum of the beginnings of all lives, or something was lost or doubled.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from support.boxes import Box, fed, last_line, lines_of, rows_of, until_read
from support.disks import MOUNT, UMOUNT, small_disk
from support.kills.feeding import MARKS, Fed, Feeder, channels
from support.kills.judging import ClientIncarnation, Findings, holdings, judge_client
from support.patience import until
from support.programs import DETACHED, SUBMERGE, Program, Programs

pytestmark = pytest.mark.slow

OFTEN = """
from submerge_operate.cli import main
from submerge_operate.up import config, line

config.OFTEN_S, line.FIRST_S, line.EVERY_S = 0.3, 0.3, 0.3
config.SCALED_FROM = 1000
main()
"""
QUICK = (sys.executable, "-c", OFTEN)
"""A box that reports to its root, and says so, each third of a second: half a minute, and a minute,
are usual. Its scale takes 1,000 rows, where there is one."""

LIVES = 9


class Lives:
    """A box, one life after the other, and what each was given to read."""

    def __init__(self, programs: Programs) -> None:
        alarms = '[alarms]\nat_most = "off"\n'  # what these withhold is in no sum
        schema = 'center = "fleet"\n'
        self.box = Box(programs, schema + alarms, channels=channels(LIVES), log="debug")
        self.lives: list[ClientIncarnation] = []
        self._ids = itertools.count(1)

    def begin(self) -> tuple[Program, Feeder]:
        """Start it, and feed it."""
        program = self.box.start(command=QUICK)
        life = Fed(self.box.node, len(self.lives), program)
        self.lives.append(ClientIncarnation(life))
        return program, Feeder(life, self._ids, incarnations=LIVES, rows_per_s=200.0)

    def judge(self) -> Findings:
        """Hold what the root has against what was read."""
        findings, width = Findings(), MARKS + LIVES
        held = holdings(self.box.folder / "root.db", width)
        judge_client(self.box.node, self.lives, held[self.box.node], findings)
        findings.counted = held[self.box.node].n
        return findings


def was_heard(program: Program) -> None:
    """Wait until the root has acknowledged readings."""
    until(
        lambda: any(line.facts["readings"] for line in program.said("acknowledged")),
        lambda: program.log,
        lambda: len(program.lines),
    )


def test_each_reading_counts_once_however_often_it_is_killed():
    """`kill -9` at any moment, and one end as at a reboot: what was acknowledged is there."""
    rng = random.Random(19)  # noqa: S311 - to be repeated
    with Programs() as programs:
        lives = Lives(programs)
        for i in range(LIVES - 2):
            program, feeder = lives.begin()
            if i % 2:
                was_heard(program)
            time.sleep(rng.uniform(0.0, 1.0))
            program.kill()
            feeder.stop()
        rebooted, feeder = lives.begin()
        was_heard(rebooted)
        feeder.stop()
        assert 0 == rebooted.end(), rebooted.log
        last, feeder = lives.begin()
        was_heard(last)
        feeder.stop()
        end = last_line(last)
        findings = lives.judge()
        assert [] == findings.all
        assert findings.counted == end["learnt"]
        whole = len(lives.lives[-1].fed.ids) + len(lives.lives[-2].fed.ids)
        assert findings.counted >= whole
        assert findings.acknowledged > whole, "no life that was killed had anything acknowledged"


def test_a_client_state_that_was_deleted_costs_nothing_that_was_counted():
    with Programs() as programs:
        box = Box(programs)
        fed(box.start(), rows_of(300))
        (box.folder / "client.state").unlink()
        again = box.start()
        fed(again, rows_of(200, seed=1))
        assert 500 == lines_of(again)[-1]["learnt"]
        assert not again.said("root.db was not there")


def test_a_root_that_was_deleted_says_what_is_gone():
    """What the client still has goes to the new one; the rest is said, as a number."""
    with Programs() as programs:
        box = Box(programs)
        for seed, n in enumerate((300, 200)):
            fed(box.start(), rows_of(n, seed))
        (box.folder / "root.db").unlink()
        again = box.start()
        fed(again, rows_of(100, seed=2))
        end = lines_of(again)[-1]
        (said,) = again.said("root.db was not there")
        assert "warning" == said.level
        assert 600 == end["learnt"] + said.facts["readings_gone"]
        assert end["learnt"] == said.facts["kept"] >= 300
        after = box.start()
        fed(after, b"")
        assert end["learnt"] == lines_of(after)[-1]["learnt"]
        assert not after.said("root.db was not there")


def test_a_second_one_of_its_name_ends_at_once():
    """One line, and status 2; the first goes on."""
    with Programs() as programs:
        box = Box(programs)
        first = box.start(command=QUICK)
        first.write(rows_of(50))
        second = programs.start("up", "--config", box.config)
        assert 2 == second.ended()
        (line,) = second.lines
        assert "another process uses" in line.what
        first.write(rows_of(50, seed=1))
        until_read(first, 100)
        assert 100 == last_line(first)["learnt"]


def test_readings_that_measure_the_scale_count_once_in_the_line():
    """After a restart meanwhile, and after a channel was taken out."""
    with Programs() as programs:
        box = Box(programs, 'scaling = "fleet"\n')
        first = box.start(command=QUICK)
        first.write(rows_of(400))
        until_read(first, 400)  # at the end of its input it would wait for the scale
        assert 400 == last_line(first)["measured"]
        second = box.start(command=QUICK)
        second.write(rows_of(100, seed=1))
        until_read(second, 100)
        assert 500 == last_line(second)["measured"]
        fewer = Box(programs, 'scaling = "fleet"\n', channels=("a", "b"), folder=box.folder)
        third = fewer.start(command=QUICK)
        third.write(pairs_of(500))
        until_read(third, 500)
        assert 500 == last_line(third)["measured"]
        fourth = fewer.start()
        fed(fourth, pairs_of(600, seed=1))
        assert 1600 == lines_of(fourth)[-1]["learnt"]


def pairs_of(n: int, seed: int = 0) -> bytes:
    """Return rows without the last channel."""
    rows = [json.loads(line)[:2] for line in rows_of(n, seed).splitlines()]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def fed_again(box: Box) -> Program:
    program = box.start()
    fed(program, rows_of(10, seed=1))
    return program


def test_the_folder_of_another_name_is_one_line():
    """A root takes no readings under another name: they would be lost in silence."""
    with Programs() as programs:
        box = Box(programs)
        fed(box.start(), rows_of(20))
        renamed = programs.start(
            "up", "--config", Box(programs, node="table", folder=box.folder).config
        )
        assert 2 == renamed.ended()
        (line,) = renamed.lines
        assert "node: expected 'desk'" in line.what
        assert 30 == lines_of(fed_again(box))[-1]["learnt"]


@pytest.mark.parametrize("place", ["file", "/proc/submerge"])
def test_a_folder_that_cannot_be_written_is_one_line(place):
    with Programs() as programs:
        box = Box(programs)
        there = programs.file(place, "") if place == "file" else place
        text = box.config.read_text().replace(str(box.folder), str(there))
        program = programs.start("up", "--config", programs.file("other.toml", text))
        assert 2 == program.ended()
        (line,) = program.lines
        assert "folder: expected a folder to write in" in line.what


def test_a_disk_that_is_full_costs_no_reading():
    with Programs() as programs:
        disk = programs.with_a(small_disk(programs.folder / "disk", "4m"))
        box = Box(programs, folder=disk.place / "kept")
        program = box.start(command=QUICK)
        program.write(rows_of(200))
        until_read(program, 200)
        disk.fill()
        program.write(rows_of(300, seed=1))
        program.until("disk full: store's log written back")
        end = last_line(program)
        # An alarm of the first rows may withhold some.
        assert (500, 500) == (end["rows"], end["learnt"] + end["withheld"])
        disk.make_room()
        again = box.start()
        fed(again, b"")
        assert end["learnt"] == lines_of(again)[-1]["learnt"] > 200


@contextmanager
def failing_disk(place: Path) -> Iterator[Callable[[], object]]:
    """Mount a disk; what is yielded makes it read-only as Linux makes a failing one."""
    image, format_it = place.with_suffix(".img"), shutil.which("mkfs.ext4")
    if os.geteuid() or not (MOUNT and UMOUNT and format_it):
        pytest.skip("only root may mount a disk to break it")
    image.write_bytes(bytes(16 << 20))
    place.mkdir()
    for command in ([format_it, "-q", image], [MOUNT, "-o", "loop", image, place]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    try:
        yield partial(subprocess.run, [str(MOUNT), "-o", "remount,abort", place], check=True)
    finally:
        subprocess.run([str(UMOUNT), "-l", place], check=True)


def test_a_disk_that_becomes_read_only_is_called_that_once():
    """The box reads on, and ends without a traceback."""
    with Programs() as programs:
        fail = programs.with_a(failing_disk(programs.folder / "disk"))
        box = Box(programs, folder=programs.folder / "disk" / "kept")
        program = box.start(command=QUICK)
        program.write(rows_of(200))
        until_read(program, 200)
        fail()
        program.write(rows_of(300, seed=1))
        said = program.until("store unavailable, trying on")
        assert "its disk is read-only" in said.facts["why"]
        # It tries again after some seconds.
        time.sleep(8)
        assert program.end() in (0, 1)
        what = [line.what for line in program.lines]
        assert 1 == what.count("store unavailable, trying on")
        assert not any("disk full" in line or "Traceback" in line for line in what)


def test_a_second_run_in_one_process_finds_all_as_before(tmp_path):
    """Signals, threads and files: nothing of the first run is left."""
    import threading

    from submerge_operate.up.box import run
    from submerge_operate.up.config import load

    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n2,1\n3,5\n" * 20)
    config = tmp_path / "box.toml"
    config.write_text(
        f'node = "desk"\nfolder = "{tmp_path}/kept"\n[sensor]\nkind = "file"\n'
        f'paths = ["{tmp_path}/rows.csv"]\n[schema]\nchannels = ["a", "b"]\n'
    )
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    handlers = [signal.getsignal(number) for number in ends]
    threads, lines = threading.active_count(), list[str]()
    for runs in (1, 2):
        assert 0 == run(load(config, {}), lines.append)
        assert f"60 rows read, {60 * runs} learnt" in lines[-1]
        # One of another test may end meanwhile.
        until(lambda: threading.active_count() <= threads, lambda: str(threading.enumerate()))
    assert handlers == [signal.getsignal(number) for number in ends]
    shutil.rmtree(tmp_path / "kept")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGINT])
def test_a_signal_that_ends_it_costs_no_reading(number):
    """Also if a second one follows."""
    with Programs() as programs:
        box = Box(programs)
        running = box.start(command=QUICK)
        running.write(rows_of(300))
        until_read(running, 300)
        running.signal(number)
        running.signal(signal.SIGTERM)
        assert 0 == running.ended(), running.log
        assert 300 == lines_of(running)[-1]["learnt"]


def test_nohup_outlives_its_terminal():
    """An ignored SIGHUP stays ignored."""
    with Programs() as programs:
        box = Box(programs)
        running = box.start(command=(*DETACHED, SUBMERGE))
        running.signal(signal.SIGHUP)
        fed(running, rows_of(300))
        assert 300 == lines_of(running)[-1]["learnt"]


@pytest.mark.parametrize("whole", [False, True], ids=["root.db", "the folder"])
def test_a_store_that_is_taken_away_ends_it_with_one_line(whole):
    """It does not go on acknowledging what no start finds; renamed back, all is there."""
    with Programs() as programs:
        box = Box(programs)
        running = box.start(command=QUICK)
        running.write(rows_of(300))
        until_read(running, 300)
        place = box.folder if whole else box.folder / "root.db"
        place.rename(away := programs.folder / "away")
        running.write(rows_of(100, seed=1))

        assert 2 == running.ended(), running.log
        (line,) = [line.what for line in running.lines if not line.level]
        assert f"expected the store {box.folder}/root.db in its place" in line
        if whole:
            shutil.copy(box.folder / "client.state", away)
            shutil.rmtree(box.folder)
        away.rename(place)
        again = box.start()
        fed(again, b"")
        assert 400 == lines_of(again)[-1]["learnt"]
