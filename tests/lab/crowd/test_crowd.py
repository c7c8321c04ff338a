"""`submerge lab crowd`: what its nodes read, when, and what its options refuse."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("msgspec")

from submerge import UsageError
from submerge_aggregator.config import AggregatorConfig
from submerge_client.config.links import UplinkConfig
from submerge_client.config.tomlfile import read
from submerge_lab.crowd import command as crowd_command
from submerge_lab.crowd.member import CrowdPlan, MeanScores, PacedSensor, RealTimePace
from submerge_lab.crowd.motes import CHANNELS, FIRST, NODES, RANK, SCHEMA, Building
from submerge_lab.crowd.run import Crowd
from submerge_lab.plants.room import PAGE, Room
from submerge_operate import cli

MEMORY = UplinkConfig(url="memory://here")


def plan(nodes=8, anomalous=0):
    """A plan whose nodes reach nobody."""
    names = tuple(f"n{number}" for number in range(nodes))
    every = {"rate": 1.0, "report_every_s": 1.0}
    return CrowdPlan(
        link=MEMORY, parent="root", group="room", nodes=names, anomalous=anomalous, **every
    )


class Time:
    """A clock that only waiting moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def wait(self, stop, seconds):
        self.now += seconds


def taken(sensor, time, *, blocks, held_up_s=0.0):
    """Blocks that a node took, which needs a while for the second."""
    stop, seen = threading.Event(), []

    def hand(rows):
        seen.append(rows)
        if len(seen) == 2:
            time.now += held_up_s
        if len(seen) == blocks:
            stop.set()

    sensor.read(hand, stop)
    return seen


# -- what they read ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_node_reads_a_row_of_motes_from_the_windows_to_the_wall():
    """Its light is brightest at the windows, and its channels are those of the room."""
    room, building = Room(seed=3, days=28, faults=()), Building(seed=3)
    place, noon = 4, 5 * 3600 // 31
    motes = [f"mote{1 + place + NODES * row:02d}" for row in range(6)]
    names = [f"{mote}.{quantity}" for mote in motes for quantity in ("temperature", "light")]
    columns = [[channel.name for channel in room.channels].index(name) for name in names]
    ours = [
        i for i, channel in enumerate(CHANNELS) if "temp" in channel.name or ".l" in channel.name
    ]
    rows = building.rows(noon, noon + 300, place)

    np.testing.assert_array_equal(
        room.readings(FIRST + noon, FIRST + noon + 300)[:, columns], rows[:, ours]
    )
    light = np.nanmean(rows[:, ours[1::2]], axis=0)
    assert light[0] == light.max() > 2 * light[-1]


@pytest.mark.slow
def test_rows_never_end():
    """After four weeks they begin again; a page's border changes nothing, nor who asked before."""
    building, fresh = Building(seed=0), Building(seed=0)
    snapshots = Room(seed=0, days=28).n_snapshots
    border = PAGE - FIRST
    across = building.rows(border - 2, border + 2, 0)

    np.testing.assert_array_equal(across[2:], fresh.rows(border, border + 2, 0))
    np.testing.assert_array_equal(across[:2], fresh.rows(border - 2, border, 0))
    again = building.rows(snapshots + border - 2, snapshots + border + 2, 0)
    np.testing.assert_array_equal(across, again)
    assert 2 >= len(building._pages)


@pytest.mark.slow
def test_only_an_odd_nodes_third_mote_drifts():
    """From the row that is asked for, in one channel; the others read what they always do."""
    sound, anomalous = Building(seed=1), Building(seed=1, drifting=[2], drift_from=50)

    quarantined = np.nan_to_num(anomalous.rows(0, 400, 2) - sound.rows(0, 400, 2))
    assert ["m3.temperature"] == [CHANNELS[i].name for i in np.flatnonzero(quarantined.any(axis=0))]
    assert not quarantined[:51].any()
    assert 0.5 < np.abs(quarantined).max()
    np.testing.assert_array_equal(sound.rows(0, 400, 3), anomalous.rows(0, 400, 3))


def test_as_many_nodes_are_odd_as_asked_for():
    """And the same ones each time."""
    assert 3 == len(plan(nodes=20, anomalous=3).anomalous_places)
    assert plan(anomalous=2).anomalous_places == plan(anomalous=2).anomalous_places
    assert frozenset() == plan().anomalous_places


def test_the_printed_schema_is_the_nodes_own(tmp_path):
    """A root that is given it takes their reports: the fingerprint is the same."""
    printed = CliRunner().invoke(cli.submerge, ["lab", "crowd", "schema", "--group", "motes"])
    path = tmp_path / "root.toml"
    path.write_text(
        f'node = "root"\nstore = "root.db"\n[listen.grpc]\ninsecure = true\n{printed.output}'
    )
    config = read(path, AggregatorConfig, {})

    assert SCHEMA.fingerprint == config.groups["motes"].schema.built.fingerprint
    assert RANK == config.groups["motes"].summary.rank


@pytest.mark.slow
def test_six_directions_are_most_of_what_a_node_sees():
    """So that what is left over says something."""
    rows = Building(seed=0).rows(0, 2000, 0)
    scaled = (rows - SCHEMA.scaling.offset) / SCHEMA.scaling.scale
    scaled = scaled[~np.isnan(scaled).any(axis=1)]
    variance = np.linalg.svd(scaled - scaled.mean(axis=0), compute_uv=False) ** 2

    assert 0.95 < variance[:RANK].sum() / variance.sum() < 1


# -- when ---------------------------------------------------------------------------------


def test_rows_come_one_after_the_other_in_time():
    """A row each half second; what the clock says when it is handed over is not before it."""
    time = Time()
    pace = RealTimePace(2.0, clock=time, wait=Time.wait.__get__(time))
    sensor = PacedSensor(lambda i, j: np.arange(i, j)[:, None], pace)

    assert [0, 1, 2, 3, 4] == np.concatenate(taken(sensor, time, blocks=5)).ravel().tolist()
    assert 2.5 == time.now
    assert {"skipped": 0} == sensor.counts


def test_fast_rows_come_in_blocks():
    """A hundred a second are handed on four times a second."""
    time = Time()
    pace = RealTimePace(100.0, clock=time, wait=Time.wait.__get__(time))
    blocks = taken(PacedSensor(lambda i, j: np.arange(i, j)[:, None], pace), time, blocks=4)

    assert [25] * 4 == [len(block) for block in blocks]
    assert list(range(100)) == np.concatenate(blocks).ravel().tolist()
    assert 1.0 == time.now


@pytest.mark.parametrize(("rate", "skipped", "after"), [(2.0, 6, [8, 9]), (40.0, 120, [140, 150])])
def test_who_is_held_up_reads_on_from_now(rate, skipped, after):
    """Rows of three seconds are left out, and counted; none comes twice."""
    time = Time()
    pace = RealTimePace(rate, clock=time, wait=Time.wait.__get__(time))
    sensor = PacedSensor(lambda i, j: np.arange(i, j)[:, None], pace)
    blocks = taken(sensor, time, blocks=4, held_up_s=3.0)

    assert after == [int(block[0, 0]) for block in blocks[2:]]
    assert skipped == sensor.counts["skipped"]


def test_who_comes_later_begins_with_the_row_of_now():
    """All go by one clock."""
    time = Time()
    pace = RealTimePace(1.0, clock=time, wait=Time.wait.__get__(time))
    time.now = 7.5

    first, *_ = taken(PacedSensor(lambda i, j: np.arange(i, j)[:, None], pace), time, blocks=2)
    assert 7 == first[0, 0]


def test_a_node_that_is_ended_waits_no_longer():
    """Not even for its first row."""
    stop = threading.Event()
    stop.set()

    PacedSensor(lambda *_: pytest.fail("nobody reads"), RealTimePace(0.001)).read(print, stop)


def test_levels_are_of_the_newest_rows():
    """They move a little with each score line."""
    means = MeanScores()
    means.add(b'{"spe": 1.0, "t2": 2.0}\n')
    assert (1.0, 2.0) == (means.spe, means.t2)
    means.add(b'{"spe": 201.0, "t2": 2.0}\n{"spe": 2.0, "t2": 2.0}\n')
    assert (2.0, 2.0) == (means.spe, means.t2)


# -- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected --into URL"),
        (("--into", "grpc://a:1"), "expected grpcs:// with --kits DIR, or --insecure"),
        (("--into", "mqtts://a:1", "--insecure"), "--insecure is for a url without TLS"),
        (("--into", "grpcs://a:1"), "--kits DIR"),
        (("--into", "http://a:1", "--insecure"), "--into: url: expected grpc://"),
        (
            ("--into", "grpc://a:1", "--insecure", "--anomalous", "9"),
            "--anomalous must be at most the 8 nodes",
        ),
        (("--into", "grpc://a:1", "--insecure", "--rate", "0"), "--rate"),
        (("--into", "grpc://a:1", "--insecure", "--prefix", "no de"), "A-Z a-z"),
        (("--into", "grpc://a:1", "--insecure", "--parent", "node-1"), "its own parent"),
        (("--into", "mqtt://a:1", "--insecure", "--fleet", "a/b"), "--fleet"),
    ],
)
def test_bad_options_are_refused_in_one_line(arguments, said, capsys, monkeypatch):
    """Status 2, before any node is begun."""
    monkeypatch.setattr("sys.argv", ["submerge", "lab", "crowd", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert 2 == ended.value.code
    line = capsys.readouterr().err
    assert said in line
    assert 1 == line.count("\n")


def test_a_kit_that_is_missing_is_named(tmp_path, capsys, monkeypatch):
    """Which one, and where it was looked for."""
    options = ["--into", "grpcs://a:1", "--kits", str(tmp_path), "--nodes", "2"]
    monkeypatch.setattr("sys.argv", ["submerge", "lab", "crowd", *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert 2 == ended.value.code
    assert f"{tmp_path}/node-1.kit" in capsys.readouterr().err


def test_facts_are_a_line_of_text():
    """Before any node runs: all of them counted, none joined, none anomalous."""
    line = crowd_command._text(Crowd(plan(nodes=2)).facts)

    assert line.startswith("0 of 2 nodes joined, 0 score; 0 rows read,")
    assert line.endswith("; 0 kB up; most anomalous: none yet")


def test_a_sign_of_life_that_cannot_be_given_is_said_in_one_line(tmp_path):
    """A health check would take the crowd for dead, and nobody would know why."""
    crowd, missing = Crowd(plan(nodes=1)), tmp_path / "nowhere" / "alive"
    (member,) = crowd.members
    member.start, member.agent.rows = lambda _: None, 1

    with pytest.raises(UsageError, match=f"--alive: expected a file .*{missing}: No such file"):
        crowd.run(threading.Event(), lambda: None, 0.01, missing)
