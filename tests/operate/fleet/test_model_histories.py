"""`submerge model push`, `histories` and `forget`: what a root has learnt of files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from submerge.history.fit import Fitted
from submerge_aggregator.questions import histories as history_views
from submerge_aggregator.questions.histories import HistoryView, PushedView
from submerge_files.console.admin_client import console_of
from submerge_operate.fleet.model import pushed_text, table_of, weight_warning
from submerge_proto.wire import codec
from support import histories
from support.commands import shell, stands_at_its_socket
from support.house import House

ROW = HistoryView(
    group="room",
    name="0123456789ab",
    rows=5760,
    counts_for=5760.0,
    most_rows=None,
    left=1.0,
    first_s=None,
    last_s=None,
    machines=(),
    files=(),
    chunks=1,
    origin="",
    pushed_s=0.0,
    current=True,
)


@pytest.fixture(scope="module")
def day() -> Fitted:
    """What is learnt of one file."""
    return histories.fitted(histories.recorded(1))


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture
def house(tmp_path, monkeypatch, day) -> Iterator[House]:
    """A root without nodes, and a model file beside it."""
    (tmp_path / "plant.model").write_bytes(histories.file_of(day))
    with House(tmp_path, schema=day.folds.schema) as house:
        stands_at_its_socket(house, monkeypatch)
        yield house


@pytest.fixture
def plant(house):
    """The model file."""
    return house.store.with_name("plant.model")


def name_of(house: House) -> str:
    """The name of the only history."""
    (view,) = house.asks("GET", "/histories/room").json
    return view["name"]


def test_a_push_says_what_is_at_work(submerge, house, plant):
    """In one line."""
    ran = submerge("model", "push", plant, "--store", house.store)
    expected = (
        f"plant.model: history {name_of(house)} of group room, 1,440 rows; its limits hold for"
        " nodes from their first rows on\n"
    )

    assert (0, expected, "") == ran


def test_a_push_may_be_for_few_rows(submerge, house, plant):
    """The answer of the aggregator is there for programs."""
    ran = submerge("model", "push", plant, "--store", house.store, "--weight", 100, "--json")
    view = json.loads(ran.out)["history"]

    assert (0, 100, 100) == (ran.status, view["most_rows"], view["counts_for"])


def test_what_is_refused_is_one_line_of_the_aggregator(submerge, house, plant):
    """With the status of bad input."""
    submerge("model", "push", plant, "--store", house.store)
    ran = submerge("model", "push", plant, "--store", house.store)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert "nothing new: all of its rows are held already" in ran.err


def test_rows_that_a_node_may_have_reported_need_a_word(submerge, house, plant, day):
    """`--anyway`."""
    house.hears("old", histories.rows(60, 7), schema=day.folds.schema)
    late = replace(day.chunks[0], last=house.time().wall)
    plant.write_bytes(histories.file_of(day, chunks=(late,)))
    refused = submerge("model", "push", plant, "--store", house.store)
    taken = submerge("model", "push", plant, "--store", house.store, "--anyway")

    assert (2, True) == (refused.status, "node old has reported here" in refused.err)
    assert 0 == taken.status


def test_they_are_listed(submerge, house, plant):
    """A line each; all that is known, for programs."""
    empty = submerge("model", "histories", "--store", house.store)
    submerge("model", "push", plant, "--store", house.store, "--weight", 100)
    table = submerge("model", "histories", "--store", house.store).out.splitlines()
    (view,) = json.loads(submerge("model", "histories", "--store", house.store, "--json").out)

    assert "no history has been pushed: the model is of what nodes report\n" == empty.out
    assert ["name", "rows", "weight", "cap", "span", "machines", "files", "pushed"] == table[
        1
    ].split()
    days = "2023-11-12 to 2023-11-13"
    assert [f"{view['name']}", "1,440", "100", *days.split()] == table[3].split()[:6]
    assert ["old", "day-1.csv", "2023-11-14"] == table[3].split()[6:]
    assert (1440, ["day-1.csv"]) == (view["rows"], view["files"])


def test_one_is_forgotten_after_a_yes(submerge, house, plant, monkeypatch):
    """Without a terminal the yes has to be given."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    submerge("model", "push", plant, "--store", house.store)
    name = name_of(house)
    asked = submerge("model", "forget", name, "--store", house.store)
    done = submerge("model", "forget", name, "--store", house.store, "--yes")

    assert (2, True) == (asked.status, "add --yes" in asked.err)
    assert "1,440 rows leave the model" in asked.err
    expected = f"history {name} of group room is forgotten: 1,440 rows have left the model\n"
    assert (0, expected, "") == done
    assert [] == house.asks("GET", "/histories/room").json


@pytest.mark.parametrize("left", ["forget", "histories"])
def test_with_several_groups_one_has_to_be_named(submerge, tmp_path, monkeypatch, day, left):
    """Except to list those of all."""
    path = tmp_path / "plant.model"
    path.write_bytes(histories.file_of(day))
    with House(tmp_path, schema=day.folds.schema, groups=("room", "hall")) as house:
        stands_at_its_socket(house, monkeypatch)
        vague = submerge("model", "push", path, "--store", house.store)
        clear = submerge("model", "push", path, "--store", house.store, "--group", "hall")
        other = submerge(
            "model", left, *(["x"] if left == "forget" else []), "--store", house.store
        )

    assert (2, "submerge: expected --group, one of hall, room, got none\n") == vague[::2]
    assert 0 == clear.status
    assert (2 if left == "forget" else 0) == other.status


def test_bad_input_is_one_line(submerge, house, plant, day, monkeypatch):
    """What holds nothing that merges, is no model, is too long, or has no such name."""
    alone = plant.with_name("alone.model")
    alone.write_bytes(histories.file_of(day, summary=None))
    older = plant.with_name("older.model")
    older.write_bytes(codec.encode(day.model))
    at = "--store", house.store
    said = [
        (("push", alone), "expected what merges in"),
        (("push", older), "form 1 of it, from before 28 November 2026: fit or save it again"),
        (("push", plant.with_name("no.model")), "expected a saved model in"),
        (("push", house.store), "is not a model file"),
        (("push", plant, "--weight", 0), "0 is not in the range"),
        (("forget", "abc", "--yes"), "expected a history of group room (none), got 'abc'"),
    ]
    for arguments, why in said:
        ran = submerge("model", *arguments, *at)
        assert (2, "", True) == (ran.status, ran.out, why in " ".join(ran.err.split())), ran.err
    monkeypatch.setattr(history_views, "MOST_PUSHED_BYTES", 100)
    assert "expected at most 100 bytes in" in submerge("model", "push", plant, *at).err


def test_a_table_has_a_line_for_each(capsys):
    """Groups, old schemas, other fleets and paths, where there are such."""
    of_files = replace(
        ROW, files=("/data/march.csv",), machines=("a", "b"), first_s=0.0, last_s=86400.0
    )
    of_fleet = replace(ROW, name="f" * 12, group="hall", origin="pumps 18bc", current=False)
    console_of(wide=True).print(table_of([of_files, of_fleet]))
    _, heading, _, *lines = capsys.readouterr().out.splitlines()

    assert ["group", "name", "rows", "span", "machines", "files", "pushed", "state"] == (
        heading.split()
    )
    span = "1970-01-01", "to", "1970-01-02"
    expected = ["room", "0123456789ab", "5,760", *span, "2", "march.csv", "1970-01-01"]
    assert expected == lines[0].split()
    fleet = "of", "fleet", "pumps"
    expected = ["hall", "f" * 12, "5,760", *fleet, "-", "-", "1970-01-01", "old", "schema"]
    assert expected == lines[1].split()


def test_words_say_what_it_replaces_and_what_is_missing():
    """And how often it counts."""
    capped = replace(ROW, most_rows=1000.0)
    done = PushedView(capped, ("ba9876543210",), 5760, limits=False, half_life_s=0.0)
    expected = (
        "a.model: history 0123456789ab of group room, 5,760 rows, counted as at most 1,000, in"
        " place of ba9876543210; it has no limits: nodes learn theirs as they report"
    )

    assert expected == pushed_text("a.model", done)


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (1.0, ""),
        (0.1, ""),
        (2.0**-5, "35 d old|3.12%"),
        (0.0, "too old|0%"),
    ],
)
def test_a_half_life_that_leaves_little_is_a_warning(left, expected):
    """Of a tenth or more nothing is said."""
    done = PushedView(replace(ROW, left=left), (), 1, limits=True, half_life_s=7 * 86400.0)

    if expected:
        age, share = expected.split("|")
        expected = (
            f"warning: its last row is {age}, and the group has a half-life of 7 d: {share} of its"
            " weight is left"
        )
    assert expected == weight_warning(done)
