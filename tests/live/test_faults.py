"""What goes wrong around real processes: they say so, once, and go on as far as they can."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from submerge_aggregator.store import Store
from submerge_client.checkpoint import HEAD, HEADER_BYTES, MAGIC, CheckpointFile
from support.disks import Disk, small_disk
from support.kills import configs
from support.kills.configs import OverGrpc, OverMqtt
from support.kills.fleet import Fleet
from support.kills.judging import complaints, judge
from support.patience import until
from support.programs import Program, Programs, free_port

pytestmark = pytest.mark.slow

ROW = b"[1,2,0]\n"
CHANNELS = ["id", "mark", "life-0"]


@pytest.fixture
def programs() -> Iterator[Programs]:
    with Programs() as programs:
        yield programs


def started(fleet: Fleet, *nodes: str) -> None:
    """Start nodes, and wait until all are of use."""
    for node in nodes:
        fleet.start(node)
    for node in nodes:
        fleet.recovered(node)


def verdict(fleet: Fleet) -> list[str]:
    """End a fleet, and say what is wrong with what it holds."""
    wrong = fleet.end()
    return wrong + judge(fleet.stores, fleet.incarnations, fleet.most_lives).all


def reads_on(program: Program, rows: int = 400) -> None:
    """Wait until so many more readings of a client have been acknowledged."""

    def readings() -> int:
        reported = program.said("acknowledged")
        return reported[-1].facts["readings"] if reported else 0

    goal = readings() + rows
    until(lambda: readings() >= goal, lambda: f"{goal} acknowledged; its log:\n{program.log}")


def refusal(program: Program) -> str:
    """What a program says that ends at once with status 2: one line beside its log."""
    status = program.ended()
    assert 2 == status, program.log
    (line,) = (line for line in program.lines if not line.level)
    return line.what


# -- what a fleet lives through --------------------------------------------------------


def test_a_broker_that_lost_all_that_it_kept_is_filled_again(programs, mosquitto):
    """It ends, its store is wiped, and it comes back empty: all is counted, newcomers are met."""
    keeps = "persistence true", f"persistence_location {mosquitto.folder}/"
    mosquitto.stop()
    mosquitto.start(*keeps)
    fleet = Fleet(programs, OverMqtt(mosquitto.port), rows_per_s=100)
    started(fleet, "root", "north", "n1")
    mosquitto.stop()
    (mosquitto.folder / "mosquitto.db").unlink()
    mosquitto.start(*keeps)
    reads_on(fleet.running["n1"], 200)
    started(fleet, "n2")
    fleet.settle()

    assert [] == verdict(fleet)
    assert [] == complaints(fleet.all)


def test_a_client_whose_disk_is_full_goes_on(programs):
    """It scores and reports, says one line, and writes again when there is room."""
    disk = programs.with_a(small_disk(programs.folder / "tiny", "64k"))
    disk.fill()
    disks = {"n1": disk.place}
    fleet = Fleet(programs, OverGrpc.on_free_ports(), disks=disks, scores=True)
    started(fleet, "root", "north", "n1")
    client = fleet.running["n1"]
    client.until("checkpoint not written")
    scored = len(client.out)
    reads_on(client)
    until(lambda: len(client.out) > scored, lambda: "more scores")

    assert 1 == len(client.said("checkpoint not written"))
    disk.make_room()
    client.until("checkpoint written again")
    fleet.settle()
    assert [] == verdict(fleet)


def test_a_client_whose_disk_may_only_be_read_goes_on(programs):
    """It sends what the disk holds of the life before, scores and reports, and says one line."""
    disk = programs.with_a(small_disk(programs.folder / "tiny", "64k"))
    fleet = Fleet(
        programs,
        OverGrpc.on_free_ports(),
        disks={"n1": disk.place},
        scores=True,
        most_lives=2,
    )
    started(fleet, "root", "north", "n1")
    reads_on(fleet.running["n1"])
    fleet.strike("n1", "anywhere")
    disk.forbid_writing()
    started(fleet, "n1")
    client = fleet.running["n1"]
    client.until("checkpoint not written")
    reads_on(client)
    until(lambda: len(client.out) > 0, lambda: "scores")
    fleet.settle()

    assert 1 == len(client.said("checkpoint not written"))
    assert [] == verdict(fleet)


def test_a_client_without_a_place_for_its_checkpoint_goes_on(programs):
    """A disk that may only be read, from the first start."""
    disk = programs.with_a(small_disk(programs.folder / "tiny", "64k"))
    disk.forbid_writing()
    fleet = Fleet(programs, OverGrpc.on_free_ports(), disks={"n1": disk.place})
    started(fleet, "root", "north", "n1")
    client = fleet.running["n1"]
    reads_on(client)
    fleet.settle()

    assert 1 == len(client.said("no checkpoint: a restart begins from zero"))
    assert [] == verdict(fleet)


def take_all_room(disk: Disk, program: Program) -> None:
    """Take what the store gives back, and its ballast, too, until it can write no more."""

    def taken() -> bool:
        for ballast in disk.place.glob("*.db.ballast"):
            ballast.unlink(missing_ok=True)
        disk.fill()
        return bool(program.said("store unavailable, trying on"))

    until(taken, lambda: f"a store without room; its log:\n{program.log}")


def test_an_aggregator_on_a_full_disk_goes_on_in_the_room_that_it_holds(programs):
    """Its log goes into its database; across a kill on the full disk, too."""
    disk = programs.with_a(small_disk(programs.folder / "tiny", "2m"))
    fleet = Fleet(programs, OverGrpc.on_free_ports(), disks={"north": disk.place})
    started(fleet, "root", "north", "n1", "n2")
    disk.fill()
    fleet.running["north"].until("disk full: store's log written back")
    reads_on(fleet.running["n1"])
    fleet.strike("north", "anywhere")
    started(fleet, "north")
    reads_on(fleet.running["n1"])

    assert [] == fleet.running["north"].said("store unavailable, trying on")
    disk.make_room()
    fleet.settle()
    assert [] == verdict(fleet)


def test_an_aggregator_without_any_room_says_not_now_and_loses_nothing(programs):
    """Its process goes on, answers, and takes everything as soon as there is room."""
    disk = programs.with_a(small_disk(programs.folder / "tiny", "2m"))
    fleet = Fleet(programs, OverGrpc.on_free_ports(), disks={"north": disk.place})
    started(fleet, "root", "north", "n1", "n2")
    north, n1 = fleet.running["north"], fleet.running["n1"]
    parted = len(n1.said("parent unreachable, trying on"))
    take_all_room(disk, north)
    time.sleep(1.0)  # there are reports to refuse
    disk.make_room()
    north.until("store written again")
    fleet.settle()

    assert north.incarnations
    assert parted == len(n1.said("parent unreachable, trying on"))
    assert [] == verdict(fleet)


def test_an_aggregator_that_dies_on_a_full_disk_loses_nothing(programs):
    """What was acknowledged before is there, and the rest is acknowledged after."""
    disk = programs.with_a(small_disk(programs.folder / "tiny", "2m"))
    fleet = Fleet(programs, OverGrpc.on_free_ports(), disks={"north": disk.place})
    started(fleet, "root", "north", "n1", "n2")
    take_all_room(disk, fleet.running["north"])
    fleet.strike("north", "anywhere")
    disk.make_room()
    started(fleet, "north")
    fleet.settle()

    assert [] == verdict(fleet)


def test_a_torn_checkpoint_is_replaced_by_the_one_before(programs):
    """A slot whose bytes are wrong: the client says so, and sends what the other holds."""
    fleet = Fleet(programs, OverGrpc.on_free_ports(), most_lives=2)
    started(fleet, "root", "north", "n1")
    fleet.strike("north", "anywhere")  # what is read from now on is on the client's disk alone
    state = fleet.disk_of("n1")
    both = max(slots(state)) + 3
    until(lambda: max(slots(state)) >= both, lambda: "checkpoints")
    fleet.running["n1"].kill()
    tear_newest_slot(state)
    fleet.look_at_card("n1")
    (current,) = fleet.incarnations
    fleet.start("n1")
    fleet.running["n1"].until("checkpoint damaged")
    started(fleet, "north")
    fleet.settle()

    assert current.acknowledged < current.kept
    assert 1 == len(fleet.running["n1"].said("checkpoint damaged"))
    assert [] == verdict(fleet)


def slots(path: Path) -> dict[int, int]:
    """Where a checkpoint's slots begin, by their generations."""
    data = path.read_bytes()
    starts = [n for n in (0, len(data) // 2) if data[n : n + len(MAGIC)] == MAGIC]
    return {0: 0} | {HEAD.unpack_from(data, n)[2]: n for n in starts}


def tear_newest_slot(path: Path) -> None:
    """Overwrite the middle of the newest checkpoint's bytes."""
    data, (_, start) = bytearray(path.read_bytes()), max(slots(path).items())
    middle = start + HEADER_BYTES + HEAD.unpack_from(data, start)[3] // 2
    data[middle : middle + 64] = bytes(64)
    path.write_bytes(data)


# -- what ends a program, in one line ------------------------------------------------------


def test_a_store_that_was_cut_short_ends_an_aggregator(programs):
    """Status 2, and one line: which file, what is wrong, what to do."""
    store = programs.folder / "root.db"
    with closing(Store(store)) as whole:
        whole.write({("row", str(n)): bytes(1000) for n in range(40)})
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])
    way = OverGrpc.on_free_ports()
    config = programs.file("root.toml", configs.aggregator("root", None, way, CHANNELS, store))
    said = refusal(programs.start("aggregator", "--config", config))

    assert said.startswith(f"submerge: expected a whole store in {store}, got a damaged one")
    assert "move it away" in said


def test_a_port_that_is_taken_ends_an_aggregator(programs):
    """Status 2, and one line."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        way = OverGrpc({"root": taken.getsockname()[1]})
        store = programs.folder / "root.db"
        config = programs.file("root.toml", configs.aggregator("root", None, way, CHANNELS, store))
        program = programs.start("aggregator", "--config", config)
        said = refusal(program)

    assert f"expected to listen on 127.0.0.1:{way.ports['root']}, got: Address already in" in said


@pytest.mark.parametrize("kind", ["client", "aggregator"])
def test_an_unknown_key_ends_a_program(programs, kind):
    """Status 2, and one line that says which key may have been meant."""
    way = OverGrpc({"root": free_port()})
    place = programs.folder / "kept"
    text = (
        configs.client("c", "root", way, CHANNELS, place)
        if kind == "client"
        else configs.aggregator("root", None, way, CHANNELS, place)
    )
    config = programs.file("c.toml", text.replace("report_every_s", "report_evry_s"))
    said = refusal(programs.start(kind, "--config", config))

    assert "timing.report_evry_s" in said
    assert "report_every_s" in said.replace("report_evry_s", "")


# -- what is said, and how often --------------------------------------------------------------


IMPATIENT = """
from submerge_client.uplink import parent_link
from submerge_operate.cli import main

parent_link.REMIND_S = 1.0
main()
"""


@pytest.mark.parametrize(("kind", "scheme"), [("client", "grpc"), ("aggregator", "mqtt")])
def test_a_parent_out_of_reach_is_said_once_a_minute(programs, kind, scheme):
    """At most, however often it is tried: here a minute is a second, and four of them pass."""
    port, place = free_port(), programs.folder / "kept"
    way = OverGrpc({"root": port, "north": free_port()}) if scheme == "grpc" else OverMqtt(port)
    if kind == "client":
        text = configs.client("c", "root", way, CHANNELS, place)
    else:
        listens = OverGrpc({"north": free_port()}).listens("north")
        text = configs.aggregator("north", "root", way, CHANNELS, place)
        text = text.replace(way.listens("north"), listens)
    config = programs.file("c.toml", text)
    program = programs.start(kind, "--config", config, command=(sys.executable, "-c", IMPATIENT))
    first = program.until("parent unreachable, trying on")
    for _ in range(20):
        program.write(ROW)
        time.sleep(0.2)
    lines = [line for line in program.lines if line.at > first.at]

    assert {"parent still unreachable"} == {line.what for line in lines}
    assert all(1.0 <= after.at - before.at + 0.05 for before, after in pairwise([first, *lines]))


def test_a_parent_of_another_schema_is_told_line_by_line(programs):
    """The client's log says which channels differ, and says it once."""
    way, folder = OverGrpc({"root": free_port()}), programs.folder
    theirs, ours = ["a [bar]", "b", "c"], ["a [psi]", "b", "d"]
    root = configs.aggregator("root", None, way, theirs, folder / "root.db")
    client = configs.client("c", "root", way, ours, folder / "c.state")
    programs.start("aggregator", "--config", programs.file("root.toml", root)).until("serving")
    program = programs.start("client", "--config", programs.file("c.toml", client))
    for _ in range(20):
        program.write(b"[1,2,3]\n")
    line = program.until("join refused", reason="SCHEMA")
    time.sleep(2.0)  # it asks again, twice a second

    assert [
        "missing channel: c",
        "extra channel: d",
        "unit of a: expected 'bar', got 'psi'",
    ] == line.facts["lines"]
    assert 1 == len(program.said("join refused"))


def test_the_slots_of_a_checkpoint_are_where_this_file_thinks(tmp_path):
    """`tear_newest_slot` takes the newest: the one before comes back."""
    with closing(CheckpointFile(tmp_path / "state")) as file:
        for n in range(3):
            file.write({("n",): b"%d" % n * 1000})
    tear_newest_slot(tmp_path / "state")
    with closing(CheckpointFile(tmp_path / "state")) as file:
        assert {("n",): b"1" * 1000} == file.load()
