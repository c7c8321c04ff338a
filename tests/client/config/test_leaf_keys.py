"""How many settings there are: fewer is better, and more need a reason."""

from __future__ import annotations

import pytest

from submerge_aggregator.config import AggregatorConfig
from submerge_client.config.client_config import ClientConfig
from support.leaf_keys import advanced_keys, leaf_keys, settings


@pytest.mark.parametrize(("kind", "most"), [(ClientConfig, 103), (AggregatorConfig, 80)])
def test_a_person_has_to_know_no_more_settings(kind, most) -> None:
    """What one class declares counts once: a link's keys are the same wherever a link stands."""
    assert len(settings(kind)) <= most


@pytest.mark.parametrize(("kind", "most"), [(ClientConfig, 128), (AggregatorConfig, 92)])
def test_there_are_no_more_places_for_them(kind, most) -> None:
    """Each place counts: there were 106 and 70, counted like this. Apprise's file is new.

    So are five for messages of devices: topics, include, exclude, states and rebirth; and the
    command of a program that is read. So are four for the page of an aggregator, and
    `share_values`, which nothing else can say. So is the size of the history: disks differ. So are
    five for metrics of Telegraf: what becomes of them, and how their names, tags, words and times
    are read. So are the rows that a client holds for jobs, and how many of them may leave. So is
    what an absent channel of a line of JSON is: a gap, or zero in sparse rows. So are five of the
    paper's algorithm: the bounds of its rank, its hold-off, its lowest rank, and its memory. So are
    the program that prints a broker's password and the name of a shared port's protocol, at each
    of four and two links: nothing else reaches the brokers of the clouds. So is the
    order of machines, which nobody else knows.
    """
    paths = [key.path for key in leaf_keys(kind)]

    assert len(set(paths)) == len(paths) <= most


def test_what_is_for_tests_and_benchmarks_counts_apart() -> None:
    """[advanced] is in no sample, and in neither number."""
    assert ["advanced.patience_s", "advanced.cap_s"] == advanced_keys(ClientConfig)
    assert [
        *("advanced.patience_s", "advanced.cap_s"),
        *("advanced.scaling_rows", "advanced.bounds_after_s", "advanced.burst"),
    ] == advanced_keys(AggregatorConfig)


def test_the_count_goes_by_places_and_by_classes() -> None:
    """A link's keys are many places, and one setting each."""
    keys = [key for key in leaf_keys(ClientConfig) if key.name == "password_file"]

    assert {
        "uplink.password_file",
        "sensor.mqtt.password_file",
        "alarms.broker.password_file",
        "scores.broker.password_file",
    } == {key.path for key in keys}
    assert 1 == len({key.declared_by for key in keys})
