"""Nodes that start from golden files go on with all that these hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import Alarmed, Flush, Keep, Note, Now, Start
from submerge.protocol.settings import AggregatorSettings, AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Schema
from submerge_proto.kept import records
from support.golden_kept import Key, of_that_version, packed, read, text_of
from support.golden_parts import KERNEL, LINEAR, NOW, OPEN_KERNEL, OPEN_LINEAR
from support.nodes import kept

SUMMARIES = Subspaces(2, oversample=1)


@pytest.fixture(autouse=True)
def _of_that_version() -> Iterator[None]:
    """A header names the software: in these files, the one that wrote them first."""
    with of_that_version():
        yield


def restored(file: str) -> dict[Key, Any]:
    """The records of a golden file, as a program reads them."""
    return records.unpack_all(read(file))


# -- clients -------------------------------------------------------------------------

CLIENTS = {
    "client_linear.checkpoint": ("pump-3", "pumps", LINEAR),
    "client_kernel.checkpoint": ("press-3", "presses", KERNEL),
}


def client(file: str) -> tuple[ClientNode, list[Any]]:
    """A client that has started from a golden checkpoint, and what it did."""
    node, group, schema = CLIENTS[file]
    settings = ClientSettings(node, group, "site-7", alarms=AlarmSettings())
    started = ClientNode(settings, schema, SUMMARIES, np.random.default_rng(0))
    return started, started.step(Start(restored(file)), Now(0.0, NOW + 60))


@pytest.mark.parametrize("file", CLIENTS)
def test_a_client_goes_on_with_all_that_it_has_learnt(file):
    """What it keeps before its first row is, byte for byte, what the process before kept."""
    node, _ = client(file)
    after = packed(kept(node.step(Flush(), Now(1.0, NOW + 61))))

    assert read(file)["lookout",] == after["lookout",]
    assert read(file)["model",] == packed({("model",): node.model})["model",]


@pytest.mark.parametrize("file", CLIENTS)
def test_a_client_tells_its_alarms_again(file):
    """The open one, and those that are over."""
    _, effects = client(file)
    (alarmed,) = (each for each in effects if isinstance(each, Alarmed))

    assert restored(file)["lookout",].detector.alarms == alarmed.alarms
    assert [True, False, False, False, False] == [each.is_open for each in alarmed.alarms]


@pytest.mark.parametrize("file", CLIENTS)
def test_the_last_checkpoint_becomes_a_final_behind_those_that_wait(file):
    """By the numbers of fields: two finals waited, and 21 readings were to be declared."""
    _, effects = client(file)
    said, was = (text_of(each) for each in (packed(kept(effects)), read(file)))
    past = was["past"] | {f"1[2].{at}": value for at, value in was["checkpoint"].items()}
    # The checkpoint has declared 17 of them, and knows of 600,012 readings in all.
    past |= {"2.1": 1_700_000_000_123, "2.2": 0x0123456789ABCDEF, "3": 4, "4": 600_012}

    assert {"past": past} == said


YOUNG = {
    "client_scaling.checkpoint": ("pump-4", "pumps", OPEN_LINEAR, True),
    "client_gamma.checkpoint": ("press-4", "presses", OPEN_KERNEL, False),
}


@pytest.mark.parametrize("file", YOUNG)
def test_a_client_starts_while_its_schema_is_worked_out(file):
    """Of what it measured a final is made if it has met a parent; else it is declared lost."""
    name, group, schema, learns_scaling = YOUNG[file]
    settings = ClientSettings(name, group, "site-7", learns_scaling=learns_scaling)
    node = ClientNode(settings, schema, SUMMARIES, np.random.default_rng(0))
    effects = node.step(Start(restored(file)), Now(0.0, NOW + 60))
    past = text_of(packed(kept(effects)))["past"]
    lost = [each.facts["readings"] for each in effects if isinstance(each, Note)]
    checkpoint = text_of(read(file))["checkpoint"]

    if learns_scaling:
        assert checkpoint == {at[5:]: said for at, said in past.items() if at.startswith("1[0].")}
        assert ([], 3, 600_003) == (lost, past["3"], past["4"])
    else:
        # The log has its own 64; the 2 before were logged then, and are declared with them.
        assert ([64], 66, 600_002) == (lost, past["3"], past["4"])
        assert 0 == node.finals.waiting


def test_a_client_starts_with_what_it_has_measured():
    """Of earlier incarnations, and of the last one: all wait for the fleet to settle its schema."""
    file = "client_measured.checkpoint"
    settings = ClientSettings("pump-5", "pumps", "site-7", learns_scaling=True)
    node = ClientNode(settings, OPEN_LINEAR, SUMMARIES, np.random.default_rng(0))
    effects = node.step(Start(restored(file)), Now(0.0, NOW + 60))

    assert [] == [each for each in effects if isinstance(each, Note)]
    assert 60 + 2 * 86_401 + 30 + 31 == node.finals.measured
    assert 3 == node.finals.waiting


# -- aggregators ---------------------------------------------------------------------


def aggregator(file: str, **schemas: Schema) -> tuple[AggregatorNode, list[Any]]:
    """An aggregator that has started from a golden store, and what it did.

    schemas : of each group, what a root is configured with; none below a root
    """
    root = file.startswith("root")
    settings = AggregatorSettings("root", None) if root else AggregatorSettings("site-7", "root")
    groups = {key[1] for key in read(file) if key[0] == "schema"}
    plans = {
        group: GroupPlan(
            SUMMARIES, schemas.get(group), learns_scaling=group == "pumps", robust=root
        )
        for group in groups
    }
    node = AggregatorNode(settings, plans, np.random.default_rng(0))
    return node, node.step(Start(restored(file)), Now(0.0, NOW + 60))


SITE = "site.store"
ROOTS = (
    "root.store",
    "root_ages.store",
    "root_histories.store",
)


def configured(file: str) -> dict[str, Schema]:
    """What an aggregator of that store is configured with."""
    if file == SITE:
        return {}
    if file == "root.store":
        return {"pumps": OPEN_LINEAR, "presses": OPEN_KERNEL}
    return {"pumps": LINEAR}


@pytest.mark.parametrize("file", [SITE, *ROOTS])
def test_an_aggregator_goes_on_with_all_that_it_holds(file):
    """At its start it writes what is new alone: a fence below a root, a model's version at one."""
    _, effects = aggregator(file, **configured(file))
    assert not any(effect.new_store for effect in effects if isinstance(effect, Keep))
    groups = {key[1] for key in read(file) if key[0] == "schema"}
    new = {("line" if file == SITE else "version", group) for group in groups}
    # Ages go on from here.
    new |= {("elapsed", group) for group in groups}
    # Kept for the first time, and empty: earlier versions had no such records.
    later = {(kind, group) for kind in ("suspected", "wishes", "heard") for group in groups}
    written = kept(effects)
    # An earlier version confirmed bans that it had not read: the parent sends its orders again.
    again = {("heard", group) for group in groups} if file == SITE else set()

    assert new == set(written) - (later - set(read(file))) - again
    assert not any(written[key] for key in set(written) - new)


@pytest.mark.parametrize("file", [SITE, *ROOTS])
def test_an_aggregator_holds_every_row(file):
    """Rows, what closed lives have left, and what is remembered of nodes: the same bytes."""
    node, _ = aggregator(file, **configured(file))
    held: dict[Key, Any] = {}
    for group in node.groups:
        ledger = node.ledger(group)
        held |= {records.row_key(row): row for row in ledger.rows.values()}
        held |= {("sealed", group, *place): each for place, each in ledger.sealed.items()}
        members = [key for key in read(file) if key[:2] == ("member", group)]
        held |= {key: ledger.member(key[2]) for key in members}
        held["reference", group] = ledger._pool.reference
    kinds = {"row", "sealed", "member", "reference"}

    assert {k: data for k, data in read(file).items() if k[0] in kinds} == packed(held)


@pytest.mark.parametrize("file", [SITE, *ROOTS])
def test_an_aggregator_holds_what_is_said_of_nodes(file):
    """Who is banned, who is quarantined and why, and what operators want."""
    node, _ = aggregator(file, **configured(file))
    was = restored(file)
    for group in node.groups:
        banned, quarantined = node.excluded(group)

        assert was["banned", group] == banned
        assert was["quarantined", group] == quarantined
        assert was.get(("wishes", group), {}) == node.desired_states(group)


def test_a_root_holds_its_histories():
    """With what an operator said of each, the same bytes."""
    file = "root_histories.store"
    node, _ = aggregator(file, **configured(file))
    held = {("history", "pumps", name): each for name, each in node.histories("pumps").items()}

    assert {k: data for k, data in read(file).items() if k[0] == "history"} == packed(held)
    assert 2 == len(held)


def test_a_line_goes_on_under_another_fence():
    """The fence that was, and the number that it had come to, are past now."""
    _, effects = aggregator(SITE)
    said, was = (text_of(each) for each in (packed(kept(effects)), read(SITE)))
    for group in ("pumps", "presses"):
        line, before = (dict(each[f"line/{group}"]) for each in (said, was))
        past = {"3[2].1": before.pop("2"), "3[2].2": 41}

        assert line.pop("2") != past["3[2].1"]
        assert before | past == line
