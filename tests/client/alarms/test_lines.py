"""Alarms as lines of JSON: once each, in a file that others rotate and that a kill may cut."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from itertools import chain
from types import SimpleNamespace

import pytest

from submerge import UsageError
from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import Deviation
from submerge_client.alarms.event import alarm_of, sentence, stamp
from submerge_client.alarms.journal import Journal
from submerge_client.alarms.ndjson import File, LineSink, Stream, write_whole
from submerge_client.assembly import _score_writer
from submerge_client.config.client_config import ScoresConfig
from support.alarms import BEGAN, HISTORY, RISKY, Killed, Killer, Log, alarm

NAMES = [alarm(0).name, alarm(1).name]
EXPECTED = [(name, event) for name in NAMES for event in ("start", "end")]


class Place:
    """A folder with an NDJSON file and a journal, and the process that writes them."""

    def __init__(self, folder):
        self.path, self.state = folder / "alarms.ndjson", folder / "c.state.alarms"
        self.begin()

    def begin(self):
        """A process begins."""
        self.file = File(self.path)
        journal = Journal(self.state, ("lines",))
        self.lines = LineSink(self.file, journal, name="lines", group="pumps")

    def again(self):
        """The one before is gone."""
        self.file.close()
        self.begin()

    def delivered(self, *paths):
        """The events in the file, without lines that were cut short."""
        text = b"".join(path.read_bytes() for path in (*paths, self.path))
        return list(chain.from_iterable(map(_delivered, text.split(b"\n"))))


def _delivered(line):
    try:
        delivered = json.loads(line)
    except ValueError:
        return []
    return [(delivered["id"], delivered["event"])]


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    yield place
    place.file.close()


def test_a_line_says_all_that_is_known(place):
    """As documented; the top channels by their names, in any language."""
    for state in HISTORY[:3]:
        place.lines.update(state)
    start, end = map(json.loads, place.path.read_bytes().splitlines())

    expected = {
        "event": "start",
        "id": alarm(0).name,
        "node": "pump-1",
        "group": "pumps",
        "at": "2026-01-01T00:00:00.000Z",
        "began": BEGAN,
        "peaked": BEGAN + 10,
        "ended": None,
        "worst": 3.21,
        "cause": "spe",
        "top": {"flow": 0.81, "temp [°C]": 0.12},
        "first": {},
        "deviations": {},
        "model": 7,
        "withheld": 5,
        "verdict": "",
        "settled": False,
        "provisional": False,
        "repeated": False,
    }
    over = {"event": "end", "at": "2026-01-01T00:01:00.000Z", "ended": BEGAN + 60}
    assert expected == start
    assert {**expected, **over} == end


def test_the_start_of_one_that_is_over_does_not_say_when(place):
    """It is the line that would have been written then."""
    place.lines.update(())
    place.lines.update(HISTORY[2])
    start, end = map(json.loads, place.path.read_bytes().splitlines())

    assert (None, BEGAN + 60) == (start["ended"], end["ended"])


def test_heard_again_it_is_not_told_again(place):
    """Within a process, and in the next one, with or without its journal."""
    for state in chain.from_iterable((state, state) for state in HISTORY):
        place.lines.update(state)
        place.again()
        place.lines.update(state)
        place.state.unlink()
        place.again()

    assert EXPECTED == place.delivered()


def operations(tmp_path_factory, monkeypatch):
    """How many there are in the course of two alarms."""
    killer = Killer()
    _lived(tmp_path_factory.mktemp("counted"), killer, monkeypatch)
    return killer.done


def _lived(folder, killer, monkeypatch):
    """Two alarms, and a process that may be killed once; the next one hears the same state."""
    with monkeypatch.context() as patched:
        for name in RISKY:
            patched.setattr(os, name, killer.guarded(getattr(os, name)))
        place = None
        for state in HISTORY:
            while True:
                try:
                    if place is None:
                        place = Place(folder)
                    place.lines.update(state)
                    break
                except Killed:
                    place = None
    return place


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after", "within"])
def test_killed_between_any_two_steps_it_tells_each_once(tmp_path_factory, monkeypatch, when):
    """Kept and not written, written and not noted, noted and not named: one start, one end."""
    n = operations(tmp_path_factory, monkeypatch)

    assert n > 40
    for i in range(n):
        folder = tmp_path_factory.mktemp(f"{when}-{i}")
        place = _lived(folder, Killer(i, when), monkeypatch)
        assert EXPECTED == place.delivered(), i
        place.file.close()


def test_a_file_that_was_rotated_is_left_alone(place, tmp_path):
    """Whoever moved it has what was in it; the next line begins a new one."""
    place.lines.update(())
    place.lines.update(HISTORY[1])
    place.path.rename(tmp_path / "alarms.ndjson.1")
    place.lines.update(HISTORY[2])

    assert EXPECTED[1:2] == place.delivered()
    assert EXPECTED[:2] == place.delivered(tmp_path / "alarms.ndjson.1")


def test_a_file_that_was_emptied_goes_on(place):
    """As by logrotate's copytruncate."""
    place.lines.update(())
    place.lines.update(HISTORY[1])
    os.truncate(place.path, 0)
    place.lines.update(HISTORY[2])

    assert EXPECTED[1:2] == place.delivered()


def test_what_a_full_disk_cut_short_is_written_again(place, monkeypatch):
    """On a line of its own, once there is room; it is said once."""
    log = Log()
    place.lines.update(())
    with monkeypatch.context() as patched:
        write = os.write
        patched.setattr(os, "write", lambda fd, data: write(fd, data[:20]))
        for _ in range(3):
            place.lines.update(HISTORY[1])
    place.lines.update(HISTORY[1])

    assert EXPECTED[:1] == place.delivered()
    assert ["alarms not written, trying on", "alarms written again"] == log.said()


def test_what_only_lacks_its_line_break_is_not_written_again(place, monkeypatch):
    """The next line brings it."""
    place.lines.update(())
    with monkeypatch.context() as patched:
        write = os.write
        patched.setattr(os, "write", lambda fd, data: write(fd, data[:-1]))
        place.lines.update(HISTORY[1])
    for state in HISTORY[1:]:
        place.lines.update(state)

    assert EXPECTED == place.delivered()


def test_nodes_may_share_a_file(tmp_path):
    """Two programs on one machine: each knows its own lines."""
    lines = []
    for node in ("a", "b"):
        journal = Journal(tmp_path / f"{node}.state.alarms", ("lines",))
        lines.append(LineSink(File(tmp_path / "f"), journal, name="lines", group="g"))
        lines[-1].update(())
    for each, node in zip(lines, ("a", "b"), strict=True):
        each.update((alarm(0, node=node),))
        each.close(0.0)

    delivered = [json.loads(line)["node"] for line in (tmp_path / "f").read_bytes().splitlines()]
    assert ["a", "b"] == delivered


def test_no_folder_stops_no_node(tmp_path):
    """It may be mounted later."""
    log = Log()
    place = Place(tmp_path / "mounted")
    place.lines.update(())
    place.lines.update(HISTORY[1])
    (tmp_path / "mounted").mkdir()
    place.lines.update(HISTORY[1])
    place.file.close()

    assert EXPECTED[:1] == place.delivered()
    assert {"alarm file not opened, trying on", "alarms written again"} <= set(log.said())


def test_a_pipe_is_refused(tmp_path):
    """It would block the node until there is a reader."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError) as error:
        File(tmp_path / "pipe")

    assert f"must be a file, got {tmp_path / 'pipe'}: name another" in str(error.value)


def test_a_stream_takes_them_as_well(tmp_path):
    """Each handed over at once; a process that starts again repeats nothing that it noted."""
    out = io.BytesIO()
    path = tmp_path / "c.state.alarms"
    for state in HISTORY:
        LineSink(Stream(out), Journal(path, ("-",)), name="-", group="g").update(state)

    delivered = list(chain.from_iterable(map(_delivered, out.getvalue().split(b"\n"))))
    assert EXPECTED == delivered


class Sips(io.RawIOBase):
    """A raw stream that takes seven bytes at a time, as a pipe may when a signal comes."""

    def __init__(self):
        self.taken = b""

    def writable(self):
        return True

    def write(self, data):
        sip = bytes(data[:7])
        self.taken += sip
        return len(sip)


def test_a_stream_that_takes_a_part_at_a_time_gets_whole_lines():
    """Alarms and scores: with PYTHONUNBUFFERED one write may take less than a line."""
    out = Sips()
    Stream(out).write(b"an alarm, longer than a sip\n")
    _score_writer(SimpleNamespace(scores=ScoresConfig(to="stdout")), out)(b"scores, too\n")

    assert b"an alarm, longer than a sip\nscores, too\n" == out.taken


def test_a_stream_that_does_not_block_and_is_full_is_an_error():
    """Nothing spins on it, and no part of a line counts as written."""
    full = SimpleNamespace(write=lambda _: None)
    with pytest.raises(BlockingIOError):
        write_whole(full, b"a line\n")


# -- in words ----------------------------------------------------------------------------------


def test_a_person_reads_what_is_wrong_and_where():
    """The channels, how far over the limit, since when, and what the alarm is called."""
    end = sentence(AlarmEvent("end", alarm(0, over=True)))

    assert sentence(AlarmEvent("start", alarm(0))) == (
        "Channels disagree more than usual (squared prediction error): 3.21 times the limit."
        " Most of it: flow 81%, temp [°C] 12%.\n"
        f"Began 2026-01-01T00:00:00.000Z. {NAMES[0]}"
    )
    assert f"Began 2026-01-01T00:00:00.000Z, over 2026-01-01T00:01:00.000Z. {NAMES[0]}" in end
    settled = sentence(AlarmEvent("end", alarm(0, over=True, settled=True)))
    off = (Deviation("flow", 85.23, 1.2),)
    stays = sentence(AlarmEvent("start", replace(alarm(0), cause="duty", deviations=off)))
    assert "one for longer than ever before: 3.21 times its longest run." in stays
    assert "\nflow on at 85.23, else 1.2.\n" in stays
    assert "00:01:00.000Z: settled at a new level, without a verdict. " in settled


OFF = Deviation("flow", 1012.25, 8.5)


def test_a_line_says_how_far_channels_are_off(place):
    """In their units, with what was to blame at the onset; the follower reads what was written."""
    shown = alarm(0, over=True, first=(("flow", 0.7),), deviations=(OFF,), settled=True)
    place.lines.update(())
    place.lines.update((shown,))
    line = json.loads(place.path.read_bytes().splitlines()[-1])

    assert {"flow": 0.7} == line["first"]
    assert {"flow": {"value": 1012.25, "expected": 8.5, "difference": 1004.0}} == line["deviations"]
    assert line["settled"]
    assert shown == alarm_of(line)
    said = sentence(AlarmEvent("start", shown))
    assert "12%.\nflow 1012.25, expected 8.5 (+1004).\nBegan" in said


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (-5.0, "1970-01-01T00:00:00.000Z"),
        (1.9995, "1970-01-01T00:00:01.999Z"),
        (1e300, "9999-12-31T23:59:59.000Z"),
    ],
)
def test_any_clock_can_be_written(seconds, expected):
    """Also one that lies by more than years have figures for."""
    assert expected == stamp(seconds)
