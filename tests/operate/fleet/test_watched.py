"""`--watch` of nodes, alarms and the model, against a root in this process."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from submerge_operate.fleet.alarms import follow
from submerge_operate.fleet.watch import watch
from support.commands import shell, stands_at_its_socket
from support.house import House
from support.nodes import new_incarnation

ROWS = np.random.default_rng(0).normal(size=(60, 6))


@pytest.fixture
def house(tmp_path, monkeypatch) -> Iterator[House]:
    with House(tmp_path) as house:
        stands_at_its_socket(house, monkeypatch)
        house.hears("c", ROWS)
        yield house


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture
def between(monkeypatch) -> Callable[..., None]:
    """Do these things between looks, one at a time; then press Ctrl-C."""

    def plan(*things: Callable[[], Any]) -> None:
        left = [*things, lambda: signal.raise_signal(signal.SIGINT)]
        for each in (watch, follow):
            monkeypatch.setattr(each, "__kwdefaults__", {"wait": lambda _: left.pop(0)()})

    return plan


def test_nodes_are_a_line_each_and_then_a_line_a_change(submerge, house, between):
    """Time that passes is no change."""
    between(
        lambda: setattr(house.time, "steady", house.time.steady + 40.0),
        lambda: house.hears("d", ROWS[:9]),
        lambda: house.asks("POST", "/nodes/room/c/quarantine"),
        lambda: house.asks("POST", "/nodes/room/d/forget"),
    )
    ran = submerge("nodes", "--watch", "--store", house.store)

    assert (0, "") == (ran.status, ran.err)
    lines = [line.split(" ", 2)[1:] for line in ran.out.splitlines()]
    assert ["room/c", "room/d", "room/c", "room/d"] == [name for name, _ in lines]
    assert "kind=client readings=60 withheld=0 lost=0 model=0" in lines[0][1]
    assert "quarantined (operator)" in lines[2][1]
    assert "gone" == lines[3][1]


def test_nodes_as_json_are_an_object_a_change(submerge, house, between):
    between(
        lambda: house.hears("c", ROWS[:9], incarnation=new_incarnation(2)),
        lambda: house.asks("POST", "/nodes/room/c/forget"),
    )
    ran = submerge("nodes", "--watch", "--json", "--store", house.store)
    views = [json.loads(line) for line in ran.out.splitlines()]

    assert [("is", "c"), ("is", "c"), ("gone", "c")] == [(v["event"], v["node"]) for v in views]
    assert [1, 2] == [len(view["rows"]) for view in views[:2]]


def test_a_new_model_is_a_line(submerge, house, between):
    house.passes(61.0)
    between(
        lambda: None,
        lambda: [house.hears("d", ROWS), house.passes(61.0)],
    )
    ran = submerge("model", "show", "--watch", "--store", house.store)

    assert (0, 2) == (ran.status, ran.out.count("\n"))
    first, second = ran.out.splitlines()
    assert "60 readings of 1 node," in first
    assert "120 readings of 2 nodes" in second


def test_a_model_as_json_is_an_object(submerge, house, between):
    house.passes(61.0)
    between()
    ran = submerge("model", "show", "--watch", "--json", "--store", house.store)

    assert 60 == json.loads(ran.out)["learnt"]


def test_on_a_terminal_alarms_are_a_table_that_is_drawn_again(
    submerge, house, between, monkeypatch
):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    between(lambda: None)
    ran = submerge("alarms", "--watch", "--store", house.store)

    assert 0 == ran.status
    assert 2 <= ran.out.count("no alarms")


def test_elsewhere_alarms_are_followed(submerge, house, between):
    between()
    assert (0, "", "") == submerge("alarms", "--watch", "--store", house.store)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["alarms", "--watch", "--open"], "--follow prints starts and ends"),
        (["model", "show", "x.model", "--watch"], "--watch is for a running aggregator"),
    ],
)
def test_what_cannot_be_watched_is_refused(submerge, house, arguments, why):
    ran = submerge(*arguments, "--store", house.store)

    assert (2, 1) == (ran.status, ran.err.count("\n"))
    assert why in ran.err
