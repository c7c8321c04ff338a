"""Files that never change: `tests/golden/kept` is what nodes have on their disks today.

Whatever classes, fields and messages are called tomorrow, these files are read, and nothing in
them is lost. `PYTHONPATH=tests python -m support.golden_kept --write` writes those down that are
not there yet, and never another. The tests write nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from submerge.aggregator.operators.quarantine import QuarantineEntry
from submerge.stats.resolution import Resolution
from submerge.stats.statistic import By
from submerge.stats.stuck import Habits, RunLengths
from submerge_aggregator.store import FORM
from submerge_proto.kept import aggregator as kept_by_aggregator
from submerge_proto.kept import client as kept_by_client
from submerge_proto.kept import monitor, records
from submerge_proto.v1 import kept_pb2
from submerge_proto.wire import codec
from support.field_numbers import filled, places, reached, set_places
from support.golden_kept import (
    BY_HAND,
    CHECKPOINTS,
    ENGINES,
    FOLDER,
    STORES,
    Key,
    message_of,
    name_of,
    of_that_version,
    packed,
    read,
    records_of,
    text_of,
    write_checkpoint,
)
from support.wire import reported

FILES = (*CHECKPOINTS, *STORES)

NAMES_ALONE = "root_received.store", ("quarantined", "pumps")
"""The only record of a form that is read and never written."""

EACH = [(file, key) for file in FILES for key in sorted(read(file))]
"""Every record of every golden file."""

AS_RECEIVED = [each for each in EACH if each[0] == "root_received.store" and each[1][0] == "row"]


@pytest.fixture(autouse=True)
def _of_that_version() -> Iterator[None]:
    """A header names the software: in these files, the one that wrote them first."""
    with of_that_version():
        yield


def text(file: str) -> Any:
    """What stands beside a golden file."""
    return json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8"))


# -- nothing is lost ------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_a_record_says_what_the_text_beside_it_says(file):
    """By the numbers of fields: no name has a part in it. All records of a file, and no other."""
    assert text(file) == text_of(read(file))


def written_today(file: str) -> dict[Key, bytes]:
    """The records of a file that would be written like this today."""
    others = [NAMES_ALONE, *AS_RECEIVED]
    return {key: data for key, data in read(file).items() if (file, key) not in others}


@pytest.mark.parametrize("file", FILES)
def test_what_is_read_is_what_was_meant(file):
    """Each field of what is loaded holds its own value, and not another field's."""
    meant = records_of(file)
    for key, data in written_today(file).items():
        assert reported(_sorted(meant[key])) == reported(_sorted(records.unpack(key, data))), key


def _sorted(record: Any) -> Any:
    """A set in an order."""
    return sorted(record) if isinstance(record, frozenset) else record


@pytest.mark.parametrize("file", FILES)
def test_what_was_read_is_written_alike(file):
    """Read and kept again: the same bytes, so that nothing was dropped on the way."""
    for key, data in written_today(file).items():
        assert data == records.pack(key, records.unpack(key, data)), key


def test_each_field_that_is_kept_has_a_name_on_the_disk():
    """One name each: a field that is renamed, or new, without a name would be lost in silence."""
    for kind in (Habits, RunLengths, Resolution):
        assert kind._fields == monitor.COLUMNS[kind]
    names = "spe", "t2", "linear", "channel", "distance", "smoothed", "ewma"
    assert names == get_args(By)


def test_names_alone_are_an_operators():
    """Such a record does not say why a node is kept out, nor since when."""
    file, key = NAMES_ALONE
    expected = {name: QuarantineEntry("operator", 0.0) for name in ("pump-21", "pump-22")}

    assert {"1[0]": "pump-21", "1[1]": "pump-22"} == text(file)[name_of(key)]
    assert expected == records.unpack(key, read(file)[key])


@pytest.mark.parametrize(("file", "key"), AS_RECEIVED)
def test_a_row_as_received_is_read_as_a_message_is(file, key):
    """Its report is what the border made of the bytes; and another digest is not kept of it."""
    row, message = records.unpack(key, read(file)[key]), message_of(key, read(file)[key])
    came = codec.decode("report", message.report.SerializeToString())

    assert message.as_received
    assert not row.digest
    assert reported(came) == reported(row.report)
    assert "submerge 0.6.1" == row.report.software


@pytest.mark.parametrize("file", FILES)
def test_the_same_records_are_the_same_bytes(file):
    """What these records were made of gives them again: every name still means what it meant."""
    assert read(file) == packed(records_of(file))


@pytest.mark.parametrize("file", CHECKPOINTS)
def test_a_checkpoint_file_is_the_same_bytes(file, tmp_path):
    """The file around the records, too: slots, directory and checksum."""
    write_checkpoint(tmp_path / file, read(file))

    assert (FOLDER / file).read_bytes() == (tmp_path / file).read_bytes()


@pytest.mark.parametrize("file", STORES)
def test_a_store_is_of_the_form_that_is_written(file):
    """So it is read as it stands: SQLite keeps the number at this place of the file."""
    assert FORM == int.from_bytes((FOLDER / file).read_bytes()[60:64], "big")


def test_no_golden_file_is_forgotten():
    """What is no longer written is still read: nothing is taken out of the folder."""
    files = {f"{name}{suffix}" for name in (*FILES, *ENGINES) for suffix in ("", ".json")}

    assert files | {*BY_HAND} == {path.name for path in FOLDER.iterdir()}


# -- nothing is left out -------------------------------------------------------------

KINDS = {
    *("checkpoint", "past", "model", "lookout"),
    *("store", "line", "row", "sealed", "member", "banned", "quarantined", "suspected"),
    *("wishes", "heard", "schema", "asked", "version", "reference"),
    *("first", "elapsed", "rank", "history", "earlier", "job", "release", "left"),
}
"""First words of keys. They are bytes."""

NEVER_KEPT = {
    ("sealed", "1.3"): "coarse columns travel, and are never kept: golden/v1 has them",
    ("sealed", "1.4"): "scales, likewise",
    ("row", "1.18"): "a trail of scores travels, and is never kept: golden/v1 has one",
    ("row", "1.18.1"): "its last minute, likewise",
    ("row", "1.18.2"): "its levels, likewise",
}
"""Fields that no golden file holds: by the kind of a record and a place in it."""


def messages() -> dict[str, list[Any]]:
    """All golden records as messages, by kind."""
    found: dict[str, list[Any]] = {}
    for file, key in EACH:
        found.setdefault(key[0], []).append(message_of(key, read(file)[key]))
    return found


def test_every_kind_of_record_is_there():
    """Those that nodes keep, and no other: a kind that comes to be is to be added here."""
    assert KINDS == set(messages())
    assert KINDS == {*kept_by_client.FORMS, *kept_by_aggregator.FORMS}


def test_every_field_of_every_message_is_filled():
    """With something else than its default, in one golden record or another."""
    roots = {kind: found[0].DESCRIPTOR for kind, found in messages().items()}
    known: dict[str, Any] = {}
    for descriptor in roots.values():
        reached(descriptor, known)
    wanted = {(name, f.number) for name, each in known.items() for f in each.fields}
    seen = {
        (descriptor.full_name, number)
        for found in messages().values()
        for message in found
        for descriptor, number, value in filled(message)
        if value or _is_message(descriptor, number)
    }

    assert {_field(roots[kind], place) for kind, place in NEVER_KEPT} == wanted - seen
    assert _all_of(kept_pb2.DESCRIPTOR.message_types_by_name.values()) <= set(known)


def _is_message(descriptor: Any, number: int) -> bool:
    return descriptor.fields_by_number[number].message_type is not None


def _field(descriptor: Any, place: str) -> tuple[str, int]:
    """The message and the number that a place ends at."""
    *way, last = map(int, place.split("."))
    for number in way:
        descriptor = descriptor.fields_by_number[number].message_type
    return descriptor.full_name, last


def _all_of(descriptors: Any) -> set[str]:
    """Full names of messages, and of those that are declared in them."""
    found = set()
    for each in descriptors:
        found |= {each.full_name} | _all_of(each.nested_types)
    return found


def test_every_place_of_every_kind_is_filled():
    """Not only somewhere: `own` and `held` are of one message, and both are there."""
    for kind, found in messages().items():
        within = kept_pb2.DESCRIPTOR
        wanted = set(places(found[0].DESCRIPTOR, within))
        seen = {place for message in found for place in set_places(message, within)}

        assert (kind, set()) == (kind, wanted - seen)


ENUMS = {
    # an alarm: spe, t2, linear, stuck, channel, ...
    ("checkpoint", "1.17.2.7"): set(range(1, 12)),
    ("checkpoint", "1.17.2.11"): {1, 2},  # accepted, rejected
    ("quarantined", "2.2"): {1, 2, 3, 4},  # operator, shrunk, equivocated twice, unreadable
}


@pytest.mark.parametrize(("kind", "place"), ENUMS)
def test_every_number_of_an_enumeration_is_there(kind, place):
    """And a number that comes to be is to be added here."""
    root = messages()[kind][0].DESCRIPTOR
    name, number = _field(root, place)
    enumeration = reached(root)[name].fields_by_number[number].enum_type

    assert ENUMS[kind, place] == set(enumeration.values_by_number) - {0}
    assert ENUMS[kind, place] <= _values(kind, place)


# -- names that are bytes ----------------------------------------------------------------

STRINGS = {
    # How channels behave, by what they are called in a column.
    ("lookout", "7.1"): {
        *("weight", "mean", "scatter", "error", "learnt", "others", "others_then", "stuck"),
    },
    ("lookout", "8.1"): {
        *("last", "lowest", "highest", "run", "longest", "at_lowest", "at_highest"),
    },
    # Kinds of scores: limits that are frozen, peaks of hours, and what is spared.
    ("lookout", "3.3.1"): {"spe", "t2", "linear", "channel", "distance", "smoothed", "ewma"},
    ("lookout", "3.8.1.1"): {"spe", "t2", "linear", "channel", "distance", "smoothed", "ewma"},
    ("lookout", "3.8.3.1"): {"spe", "t2", "linear", "channel", "distance", "smoothed", "ewma"},
}
"""Texts in records that a program may hold as names of its own. They stay as they are."""

IN_ORDER = {
    ("lookout", "7.1"): "weight mean scatter error learnt others others_then stuck",
    ("lookout", "8.1"): "last lowest highest run longest at_lowest at_highest",
}


def _texts(kind: str) -> Iterator[tuple[str, str, Any]]:
    """File, place without indices, and value of all that records of a kind say."""
    for file in FILES:
        for name, said in text(file).items():
            if name.split("/")[0] == kind:
                for place, value in said.items():
                    yield file, re.sub(r"\[\d+\]", "", place), value


def _values(kind: str, place: str) -> set[Any]:
    return {value for _, at, value in _texts(kind) if at == place}


@pytest.mark.parametrize(("kind", "place"), STRINGS)
def test_every_name_that_is_bytes_is_there(kind, place):
    """With each value that it can have, as it is written today."""
    assert STRINGS[kind, place] == _values(kind, place)


@pytest.mark.parametrize(("kind", "place"), IN_ORDER)
@pytest.mark.parametrize("file", ["client_linear.checkpoint", "client_kernel.checkpoint"])
def test_columns_stand_in_their_order(file, kind, place):
    """The first says how many channels there are; a reordered class would reorder bytes."""
    found = [value for of, at, value in _texts(kind) if (of, at) == (file, place)]

    assert IN_ORDER[kind, place].split() == found


@pytest.mark.parametrize("what", ["7", "8"])
def test_a_column_of_another_name_is_not_taken_for_one_that_is_known(what):
    """A name that is lost loses what was learnt, in silence: so these tests have to see it."""
    key: Key = ("lookout",)
    message = message_of(key, read("client_linear.checkpoint")[key])
    columns = getattr(message, message.DESCRIPTOR.fields_by_number[int(what)].name)
    name = columns[1].DESCRIPTOR.fields_by_number[1].name
    setattr(columns[1], name, "another")
    data = message.SerializeToString()

    assert data != records.pack(key, records.unpack(key, data))
