"""Histories: what is kept of them is what they are."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from submerge.aggregator.rows.histories import Histories
from submerge.protocol.history import Chunk, History
from submerge.protocol.messages import Counts, Model
from submerge_lab.simulator.samples import Samples

GROUP = "room"
FILES = 4


def history(files: frozenset[int], *, fleet: int = 0, version: int = 1) -> History:
    """What was learnt of some files; or of another fleet, if it has a number."""
    chunks = tuple(Chunk(bytes([each] * 32), "old", 1 + each, 0.0, 1.0) for each in sorted(files))
    counts = Counts(sum(chunk.rows for chunk in chunks))
    facts = {"summary": None, "limits": None, "counts": counts, "nodes": 0}
    model = Model(
        GROUP, version, b"", "f", **facts, staleness=(0.0, 0.0, 0.0), created=1.0, expires=2.0
    )
    summary = Samples(sum(1 << each for each in files))
    return History(model, summary, None, chunks, f"other {fleet}" if fleet else "")


SETS = [frozenset(each) for n in range(FILES + 1) for each in combinations(range(1, FILES + 1), n)]
ALL = [history(files) for files in SETS if files]
ALL += [history(files, fleet=1 + i % 2, version=1 + i % 3) for i, files in enumerate(SETS)]

orders = st.lists(
    st.tuples(st.sampled_from(["put", "put", "remove", "write"]), st.sampled_from(ALL)), max_size=20
)


def covers(one: History, other: History) -> bool:
    """Whether a history has all rows of another."""
    if one.origin:
        return one.origin == other.origin and other.model.version <= one.model.version
    return not other.origin and other.keys <= one.keys


def written(table: Histories, records: dict) -> None:
    """Keep the changes, as a store does."""
    for key, record in table.changes.items():
        if record is None:
            records.pop(key, None)
        else:
            records[key] = record
    table.changes.clear()


@given(orders)
def test_what_is_kept_is_what_there_is(some):
    """After any orders, and writes between any two: a table that loads the store is the same."""
    table, records = Histories(GROUP), {}
    for verb, each in some:
        if verb == "put":
            table.put(each)
        elif verb == "remove":
            table.remove(each.name)
        else:
            written(table, records)
    written(table, records)
    again = Histories(GROUP)
    again.load({**records, ("history", "another group", "x"): history(frozenset({1}))})

    assert dict(table.by_name) == dict(again.by_name)
    assert {} == again.changes
    assert table.counts("f") == again.counts("f")


@given(orders)
def test_one_takes_the_place_of_those_that_it_covers(some):
    """Of exactly those, and of itself: all others stay. A later model of a fleet covers all."""
    table = Histories(GROUP)
    for verb, each in some:
        if verb != "put":
            continue
        before = dict(table.by_name)
        covered = {name for name, held in before.items() if covers(each, held)}

        assert covered == set(table.put(each))
        assert (before.keys() - covered) | {each.name} == table.by_name.keys()


@given(orders)
def test_a_chunk_is_found_where_it_is(some):
    """`holders` names a history for each chunk that is held, and for no other."""
    table = Histories(GROUP)
    for verb, each in some:
        (table.put if verb == "put" else lambda one: table.remove(one.name))(each)
    all_chunks = history(frozenset(range(1, FILES + 1))).chunks
    found = table.holders(all_chunks)

    assert {key for each in table.by_name.values() for key in each.keys} == set(found)
    assert all(key in table.by_name[name].keys for key, name in found.items())
