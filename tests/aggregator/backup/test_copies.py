"""A copy is good if the machine that starts from it has the models of the one that ran."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submerge import SubmergeError, UsageError
from submerge.protocol.machine import Now
from submerge_aggregator import backup
from submerge_aggregator.backup import CopyDamaged, StoreCopy, check_models, read_copy
from submerge_aggregator.store import FORM, Store
from support.backups import config_of, configuration, copied
from support.house import SCHEMA, House, Time
from support.nodes import EPOCH, GROUP, new_incarnation


def rows(n: int, seed: int) -> np.ndarray:
    """Readings of one node."""
    return np.random.default_rng(seed).normal(size=(n, SCHEMA.dim)) * np.arange(1, SCHEMA.dim + 1)


@pytest.fixture
def house(tmp_path) -> Iterator[House]:
    """A root with four nodes, one of them in its second incarnation."""
    with House(tmp_path) as house:
        for number in range(4):
            house.hears(f"c{number}", rows(40 + number, number))
            house.time.steady += 3.3
        house.hears("c0", rows(30, 9), incarnation=new_incarnation(2), final=True)
        yield house


@pytest.fixture
def config(tmp_path):
    """The house's configuration."""
    return config_of(configuration(tmp_path))


def differences(path: Path, config) -> list[str]:
    """What a check finds."""
    return [each.differs for each in check_models(read_copy(path), config)]


def test_a_copy_of_a_running_root_gives_the_same_model(tmp_path, house, config):
    """Byte for byte, and it says whose it is, and what it counts."""
    identity = copied(house, tmp_path / "copy")
    house.hears("c1", rows(60, 11))
    (found,) = check_models(read_copy(tmp_path / "copy"), config)

    assert (GROUP, 40 + 41 + 42 + 43 + 30, "") == found
    assert ("root", EPOCH + house.time.steady, True) == (
        identity.node,
        identity.wall,
        identity.synced,
    )
    assert identity == read_copy(tmp_path / "copy").identity


@pytest.mark.parametrize("order", ["quarantine", "release", "forget?ban=1", "drop?old=1"])
def test_orders_are_in_the_copy(tmp_path, house, config, order):
    """A machine that starts from it leaves out what the one that ran left out."""
    house.asks("POST", f"/nodes/{GROUP}/c2/{order}")
    copied(house, tmp_path / "copy")

    assert [""] == differences(tmp_path / "copy", config)


@pytest.mark.slow
def test_also_where_nodes_are_bounded_by_their_age(tmp_path, config, monkeypatch):
    """Ages follow the group's steady time, which a store keeps once an hour; the wall clock runs
    faster.
    """

    def fast(time: Time) -> Now:
        return Now(time.steady, EPOCH + 1.001 * time.steady)

    monkeypatch.setattr(Time, "__call__", fast)
    with House(tmp_path) as house:
        for number in range(8):
            house.hears(f"c{number}", rows(200, number))
        house.time.steady += 2 * 86_400.0
        for number in range(8):
            house.hears(f"c{number}", rows(400, number))
        house.time.steady += 1_234.567
        house.hears("young", rows(3_000, 99))
        copied(house, tmp_path / "copy")
        node = house.server.worker.node
        assert node is not None
        ledger = node.ledger(GROUP)
        assert ledger is not None
        assert "young" in ledger.bounds()

    assert [""] == differences(tmp_path / "copy", config)


def test_also_where_rows_fade(tmp_path):
    """The time of the copy is the time of the check, whenever that is made."""
    schema = replace(SCHEMA, half_life=600.0)
    config = config_of(configuration(tmp_path, half_life="half_life_s = 600"))
    with House(tmp_path, schema=schema) as house:
        for number in range(30):
            house.hears(f"c{number % 5}", rows(20 + number, number), schema=schema)
            house.time.steady += 977.3
        copied(house, tmp_path / "copy")

    assert [""] == differences(tmp_path / "copy", config)


def test_a_root_without_nodes_has_copies_too(tmp_path, config):
    """The first night of a fleet."""
    with House(tmp_path) as house:
        copied(house, tmp_path / "copy")

    assert [""] == differences(tmp_path / "copy", config)


def test_a_reading_more_or_less_is_found(tmp_path, house, config):
    """What a check compares is what the running machine had, and not what the copy says twice."""
    copied(house, tmp_path / "copy")
    whole = read_copy(tmp_path / "copy")
    (key,) = [each for each in whole.kept if each[:3] == ("row", GROUP, "c1")]
    kept = {name: data for name, data in whole.kept.items() if name != key}
    (found,) = check_models(StoreCopy(whole.path, whole.identity, kept), config)

    assert "155 readings of 196" == found.differs
    with pytest.raises(SubmergeError, match="not those of the root that ran: room: 155"):
        backup.refuse_different([found])


def test_another_configuration_is_named_as_the_cause(tmp_path, house):
    """The same readings, with fewer directions; another channel; without the group."""
    copied(house, tmp_path / "copy")
    path = configuration(tmp_path)
    text = path.read_text()
    for old, new, why in (
        ("rank = 2", "rank = 1", "another model: has the configuration or submerge changed"),
        ("mote-5", "mote-9", "its schema is another"),
        (f"groups.{GROUP}", "groups.other", "no such group"),
    ):
        path.write_text(text.replace(old, new))
        (found,) = check_models(read_copy(tmp_path / "copy"), config_of(path))
        assert why in found.differs


def test_a_copy_is_a_database_that_sqlite_opens(tmp_path, house):
    """For a person without submerge; and as a store it is one."""
    copied(house, tmp_path / "copy")
    with closing(sqlite3.connect(f"file:{tmp_path}/copy?immutable=1", uri=True)) as sql:
        assert ("ok",) == sql.execute("PRAGMA integrity_check").fetchone()
        (n,) = sql.execute("SELECT count(*) FROM records").fetchone()
    with closing(Store(tmp_path / "copy")) as store:
        assert n == len(store.load()) > 0


# -- what is refused ---------------------------------------------------------------------


@pytest.fixture
def whole(tmp_path, house) -> bytes:
    """The bytes of a copy."""
    copied(house, tmp_path / "copy")
    return (tmp_path / "copy").read_bytes()


def test_every_changed_byte_is_found(tmp_path, whole):
    """Wherever the disk has changed it: in the database, and in the line behind."""
    rng = np.random.default_rng(1)
    places = [*rng.integers(0, len(whole), 60), *range(len(whole) - 40, len(whole))]
    for at in places:
        data = bytearray(whole)
        data[at] ^= 0x10
        (tmp_path / "copy").write_bytes(data)
        with pytest.raises((CopyDamaged, UsageError)):
            read_copy(tmp_path / "copy")


@pytest.mark.parametrize("cut", [1, 5, 300, 4096, 8_000])
def test_one_that_was_cut_short_is_refused(tmp_path, whole, cut):
    """As a copy that was interrupted is, by whatever wrote it."""
    (tmp_path / "copy").write_bytes(whole[:-cut])
    with pytest.raises(CopyDamaged, match=r"is damaged: .*; take another copy"):
        read_copy(tmp_path / "copy")


def test_the_file_is_not_written(tmp_path, whole, config):
    """Also one that only its reader may read, in a folder that may not be written."""
    before = sorted(tmp_path.iterdir())
    (tmp_path / "copy").chmod(0o400)
    check_models(read_copy(tmp_path / "copy"), config)

    assert whole == (tmp_path / "copy").read_bytes()
    assert before == sorted(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"", "another file", id="empty"),
        pytest.param(b"a letter", "another file", id="text"),
        pytest.param(b"x" * 5_000_000, "another file", id="long"),
        pytest.param(b"a\nsubmerge backup 2 ab {}\n", "update submerge", id="later"),
    ],
)
def test_another_file_is_refused_by_name(tmp_path, data, why):
    """In one line."""
    (tmp_path / "copy").write_bytes(data)
    with pytest.raises(UsageError, match=why) as caught:
        read_copy(tmp_path / "copy")
    assert "\n" not in str(caught.value)


def test_a_folder_and_no_file_are_refused(tmp_path):
    """With what the system says."""
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match="expected a copy in"):
            read_copy(path)


@pytest.mark.parametrize(
    ("known", "why"),
    [(FORM - 1, "a later submerge: update"), (FORM + 1, "before 28 November 2026: restore it")],
)
def test_a_store_of_another_version_is_refused(tmp_path, house, monkeypatch, known, why):
    """Its records may mean something else."""
    copied(house, tmp_path / "copy")
    monkeypatch.setattr(backup, "FORM", known)
    with pytest.raises(UsageError, match=why):
        read_copy(tmp_path / "copy")


def test_a_copy_of_another_root_is_refused(tmp_path, house):
    """Two roots are never merged, and neither takes the other's place."""
    copied(house, tmp_path / "copy")
    other = config_of(configuration(tmp_path, node="root-2"))
    with pytest.raises(UsageError, match=r"a copy of root-2, .* got one of root: "):
        check_models(read_copy(tmp_path / "copy"), other)


def test_a_configuration_with_a_parent_is_refused(tmp_path, house):
    """An aggregator's store that is a copy is given up: it says what to do instead."""
    copied(house, tmp_path / "copy")
    more = '[parent]\nname = "top"\nurl = "grpc://127.0.0.1:1"\ninsecure = true'
    below = config_of(configuration(tmp_path, more=more))
    with pytest.raises(UsageError, match=r"whose parent is top: .* given up. Start it without"):
        check_models(read_copy(tmp_path / "copy"), below)


def test_an_aggregator_below_makes_no_copy(tmp_path):
    """It says so at once, and not when the copy is needed."""
    with (
        House(tmp_path, parent="top") as house,
        pytest.raises(UsageError, match="back up the root"),
    ):
        copied(house, tmp_path / "copy")


def test_a_store_that_cannot_be_written_gives_no_copy(tmp_path, house):
    """Which state it is in is not known then."""
    with house.disk.full():
        house.hears("c1", rows(60, 11))
        with pytest.raises(SubmergeError, match="cannot be written now"):
            copied(house, tmp_path / "copy")


def test_records_that_nothing_reads_are_damage(tmp_path, house, config):
    """Such as those of a store that was mended by hand."""
    copied(house, tmp_path / "copy")
    found = read_copy(tmp_path / "copy")
    for kept in ({**found.kept, ("unknown",): b""}, {}):
        with pytest.raises(CopyDamaged):
            check_models(StoreCopy(found.path, found.identity, kept), config)
