"""FirstReadings: what clients had learnt before their first join, and how a join says it."""

from __future__ import annotations

import numpy as np

from submerge.aggregator.group import REMEMBERED, FirstReadings
from submerge.client.node import ClientNode
from submerge.protocol.machine import Now, Reading, Send, Start, Tick
from submerge.protocol.messages import Incarnation, Join, Stamp
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Schema
from submerge_proto.wire import codec


def test_a_join_that_is_repeated_counts_once():
    """The second says more; the sum then holds what it says."""
    early = FirstReadings()
    for readings in (3, 5, 5, 4):
        early.note("pump", Incarnation(1, 1), readings)
    early.note("pump", Incarnation(1, 2), 2)

    assert 7 == early.total


def test_joins_are_forgotten_and_the_sum_is_not():
    """However many incarnations a node draws, few are remembered."""
    early = FirstReadings()
    for nonce in range(3 * REMEMBERED):
        early.note("pump", Incarnation(1, nonce), 1)

    assert 3 * REMEMBERED == early.total
    assert REMEMBERED == len(early._joined)


def test_a_client_says_what_it_learnt_before_it_joined():
    """The join of a client that has learnt three rows alone says so."""
    settings = ClientSettings("pump", "room", "root", alarms=None)
    client = ClientNode(settings, Schema.anonymous(2), Subspaces(1), np.random.default_rng(0))
    client.step(Start({}), Now(0.0, 1e9))
    client.step(Reading(np.arange(6.0).reshape(3, 2)), Now(1.0, 1e9))
    effects = client.step(Tick(), Now(1e4, 1e9))

    joins = [each.message for each in effects if isinstance(each, Send)]
    assert [3] == [each.early for each in joins if isinstance(each, Join)]


def test_a_join_keeps_its_early_readings_on_the_wire():
    """And one of an earlier version says none."""
    stamp = Stamp("pump", "room", Incarnation(1, 1), 0)
    for early in (0, 7):
        join = Join(stamp, b"", (), b"", early)

        assert join == codec.decode("join", codec.encode(join))
