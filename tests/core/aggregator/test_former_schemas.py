"""FormerSchemas: the schemas that a group has had, in memory and in its store."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema
from submerge.aggregator.rows.former_schemas import MOST, FormerSchemas
from submerge.schema import Channel

GROUP = "room"


def schema_of(names: str) -> Schema:
    return Schema(tuple(map(Channel, names)))


A, B, C = map(schema_of, ("a", "ab", "abc"))


def again(changes: dict) -> FormerSchemas:
    """What the next process knows."""
    earlier = FormerSchemas(GROUP, {})
    earlier.load({key: each for key, each in changes.items() if each is not None})
    return earlier


@given(st.lists(st.sampled_from([A, B, C, schema_of("c")]), max_size=12))
def test_the_newest_is_the_first_and_each_is_there_once(left):
    """Also for the next process."""
    changes: dict = {}
    earlier = FormerSchemas(GROUP, changes)
    for schema in left:
        earlier.leave(schema, used=())

    expected = tuple(dict.fromkeys(reversed(left)))
    assert expected == earlier.schemas == again(changes).schemas


def test_a_schema_under_which_readings_are_only_measured_is_not_remembered():
    """They count under the one that the fleet settles; but rows of it would be rows."""
    earlier = FormerSchemas(GROUP, {})
    earlier.leave(A, used=(), learns=False)
    assert () == earlier.schemas

    earlier.leave(A, used={A.fingerprint}, learns=False)
    assert (A,) == earlier.schemas


def test_the_oldest_without_rows_is_forgotten_first():
    """An operator who changes channels for years does not fill the store, or lose a row."""
    changes: dict = {}
    earlier = FormerSchemas(GROUP, changes)
    many = [schema_of(f"a{chr(1000 + i)}") for i in range(MOST + 10)]
    for schema in many:
        earlier.leave(schema, used={many[0].fingerprint, many[3].fingerprint})
    kept = [many[0], many[3], *many[12:]]
    assert tuple(reversed(kept)) == earlier.schemas == again(changes).schemas
    assert len(kept) == MOST

    more = schema_of("z")
    used = {each.fingerprint for each in kept}
    earlier.leave(more, used=used)
    assert tuple(reversed(kept)) == earlier.schemas, "rows go before what may still come"

    earlier.leave(more, used={*used, more.fingerprint})
    assert (more, *reversed(kept[1:])) == earlier.schemas
    assert MOST == sum(each is not None for each in changes.values())


def test_only_schemas_of_one_family_are_read_and_never_the_present_one():
    """Other centers and half-lives measure something else."""
    earlier = FormerSchemas(GROUP, {})
    for schema in (A, B, Schema(2), replace(C, center="own"), replace(C, half_life=9.0)):
        earlier.leave(schema, used=())

    assert {A.fingerprint: A, B.fingerprint: B} == earlier.read_as(C)
    assert {A.fingerprint: A} == earlier.read_as(B)
    assert {} == earlier.read_as(Schema(3))


def test_records_of_other_groups_are_left_alone():
    """A store holds all groups."""
    changes: dict = {}
    FormerSchemas("hall", changes).leave(A, used=())

    assert () == again(changes).schemas
