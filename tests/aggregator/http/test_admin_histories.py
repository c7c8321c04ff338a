"""Histories by the admin API: pushed as files, listed, forgotten; refused in one line each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from submerge.errors import UsageError
from submerge.history.fit import Fitted
from submerge_aggregator.http import admin
from submerge_aggregator.store import Store
from submerge_client import logs
from submerge_proto.files.learnt import packed, unpacked
from submerge_proto.kept import records
from support import histories
from support.house import House
from support.nodes import EPOCH, GROUP
from support.wire import reported

HISTORIES = f"/histories/{GROUP}"


@pytest.fixture(scope="module")
def day() -> Fitted:
    """What is learnt of one file."""
    return histories.fitted(histories.recorded(1))


@pytest.fixture
def house(tmp_path, day) -> Iterator[House]:
    """A root without nodes, with the schema of that file."""
    with House(tmp_path, schema=day.folds.schema) as house:
        yield house


def pushed(house: House, data: bytes, query: str = ""):
    """The answer to a push that is taken."""
    answer = house.asks("POST", HISTORIES + query, data)
    assert (200, None) == (answer.status, answer.json.get("error"))
    return answer.json


def test_what_is_pushed_is_at_work_and_kept(house, day):
    """With its limits, and with the time of the aggregator's clock."""
    done = pushed(house, histories.file_of(day))
    view = done["history"]

    assert (1440, 1440, True, []) == (
        done["learnt"],
        view["rows"],
        done["limits"],
        done["replaces"],
    )
    assert (EPOCH + 100, ["old"], ["day-1.csv"]) == (
        view["pushed_s"],
        view["machines"],
        view["files"],
    )
    assert (EPOCH - 86400.0, None, 1.0) == (view["last_s"], view["most_rows"], view["left"])
    assert [view] == house.asks("GET", HISTORIES).json
    house.ends()
    with closing(Store(house.store)) as store:
        kept = records.unpack_all(store.load())
    assert day.chunks[0].key == kept["history", GROUP, view["name"]].chunks[0].key


def test_it_is_forgotten(house, day):
    """And may be pushed again."""
    data = histories.file_of(day)
    name = pushed(house, data)["history"]["name"]

    assert name == house.asks("POST", f"{HISTORIES}/{name}/forget").json["name"]
    assert [] == house.asks("GET", HISTORIES).json
    assert name == pushed(house, data)["history"]["name"]


def test_a_cap_and_its_age_say_for_how_many_rows_it_counts(tmp_path, day):
    """Of a group that forgets half in a day, half is left of yesterday's rows."""
    schema = replace(day.folds.schema, half_life=86400.0)
    model = replace(day.model, schema=schema.canonical, fingerprint=schema.fingerprint)
    with House(tmp_path, schema=schema) as house:
        done = pushed(house, histories.file_of(day, model=model, monitors=()), "?weight=100")

    assert 86400.0 == done["half_life_s"]
    assert (100, 0.5, 50) == pytest.approx(
        [done["history"][key] for key in ("most_rows", "left", "counts_for")], rel=2e-3
    )


def test_what_covers_another_takes_its_place(house, day):
    """It is named."""
    old = pushed(house, histories.file_of(day))["history"]["name"]
    other = replace(day.chunks[0], key=bytes(32))
    done = pushed(house, histories.file_of(day, chunks=(other, *day.chunks)))

    assert [old] == done["replaces"]
    assert [done["history"]["name"]] == [each["name"] for each in house.asks("GET", HISTORIES).json]


def test_a_saved_fleet_names_the_files_that_it_holds(house, day):
    """Its counts, limits and sums are those of what merges, at that time: another fleet takes it,
    and this one does not.
    """
    pushed(house, histories.file_of(day))
    house.hears("c", histories.rows(60, 7), schema=day.folds.schema)
    learnt = unpacked(house.asks("GET", f"/model/{GROUP}?whole=1").body).learnt

    assert reported(day.chunks) == reported(learnt.chunks)
    assert 1500 == learnt.model.counts.learnt == pytest.approx(learnt.summary.weight)
    assert day.sketches.spe.n == learnt.sketches.spe.n
    refused = house.asks("POST", HISTORIES, packed(learnt))
    assert (400, True) == (refused.status, "this very fleet" in refused.json["error"])


def test_another_fleet_takes_a_saved_one_once(tmp_path, day):
    """Also where rows were newer than the model; what that fleet was given is not given again."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir(), other.mkdir()
    with House(one, schema=day.folds.schema) as house:
        pushed(house, histories.file_of(day))
        house.hears("c", histories.rows(60, 7), schema=day.folds.schema)
        saved = house.asks("GET", f"/model/{GROUP}?whole=1").body
    learnt = unpacked(saved).learnt
    saved = packed(replace(learnt, origin="room of-another-root"))
    with House(other, schema=day.folds.schema) as house:
        done = pushed(house, saved)
        again = house.asks("POST", HISTORIES, histories.file_of(day))

    assert 1500 == done["learnt"]
    assert (400, True) == (again.status, "nothing new" in again.json["error"])


@pytest.mark.parametrize(
    ("query", "data", "status", "why"),
    [
        ("", b"", 400, "expected a first line that says so"),
        ("", b"submerge model 9 {}\n", 400, "update submerge"),
        ("?weight=-1", None, 400, "weight is a number of rows, 1 or more, got '-1'"),
        ("?weight=0.5", None, 400, "weight is a number of rows, 1 or more"),
        ("?anyway=yes", None, 400, "anyway is 0 or 1"),
    ],
)
def test_what_cannot_be_is_one_line(house, day, query, data, status, why):
    """And changes nothing."""
    answer = house.asks("POST", HISTORIES + query, histories.file_of(day) if data is None else data)

    assert (status, True) == (answer.status, why in answer.json["error"])
    assert [] == house.asks("GET", HISTORIES).json


def test_what_the_group_refuses_is_its_line(house, day):
    """The machine's own words, and those of an unknown group and of an unknown history."""
    data = histories.file_of(day)
    pushed(house, data)
    again = house.asks("POST", HISTORIES, data)
    nowhere = house.asks("POST", "/histories/attic", data)
    unknown = house.asks("POST", f"{HISTORIES}/abc/forget")

    assert (400, True) == (again.status, "nothing new" in again.json["error"])
    assert (404, "no group attic here, but room") == (nowhere.status, nowhere.json["error"])
    assert (404, True) == (unknown.status, "has no history abc, but" in unknown.json["error"])
    assert 404 == house.asks("GET", "/histories/attic").status


def test_a_file_is_bounded(house, day, monkeypatch):
    """Before it is read."""
    monkeypatch.setattr(admin, "MOST_PUSHED_BYTES", 100)
    answer = house.asks("POST", HISTORIES, histories.file_of(day))

    assert (400, True) == (answer.status, "at most 100 bytes" in answer.json["error"])


def test_a_refusal_between_the_question_and_the_order_is_an_error(house, day, monkeypatch):
    """Another operator was faster: what was asked for is not there."""
    check, seen = admin.histories.check_push, []

    def first_yes(node, now, order):
        found = check(node, now, order)
        rival = order._replace(history=replace(order.history, pushed=1.0))
        seen.append(node.step(rival, now))
        return found

    monkeypatch.setattr(admin.histories, "check_push", first_yes)
    answer = house.asks("POST", HISTORIES, histories.file_of(day))

    assert (1, 400, True) == (len(seen), answer.status, "nothing new" in answer.json["error"])


def test_what_cannot_be_kept_is_refused_before_it_is_ordered(house, day, monkeypatch):
    """It would cost the batch of its commit."""

    def fails(_):
        raise UsageError("cannot be kept")

    monkeypatch.setattr(admin.kept, "HISTORY", replace(admin.kept.HISTORY, made=fails))
    assert 400 == house.asks("POST", HISTORIES, histories.file_of(day)).status
    assert [] == house.asks("GET", HISTORIES).json


def test_the_log_says_what_the_operator_did(house, day, capsys):
    """With rows, weight and `anyway`."""
    logs.begin("info", as_json=True)
    name = pushed(house, histories.file_of(day), "?weight=100&anyway=1")["history"]["name"]
    house.asks("POST", f"{HISTORIES}/{name}/forget")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    orders = [line for line in lines if "verb" in line]

    known = {"group": GROUP, "history": name, "rows": 1440}
    assert {"verb": "push", "weight": 100, "anyway": True, **known}.items() <= orders[0].items()
    assert {"verb": "forget", **known}.items() <= orders[1].items()
