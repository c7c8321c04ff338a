"""Sinks that hear of several nodes, as an aggregator's do: each alarm has its own start and end."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms import journal as module
from submerge_client.alarms.journal import MOST, Delivered, Journal, undelivered
from submerge_client.alarms.webhook import REPEATED_S, HttpAnswer, WebhookDelivery, payload_of
from submerge_client.config.alarms import WebhookConfig
from support.alarms import BEGAN, alarm


def of(node: str, n: int = 0, *, over: bool = False) -> Alarm:
    return replace(alarm(n, over=over), node=node)


def said(delivered: Delivered, *alarms: Alarm) -> tuple[Delivered, list[str]]:
    """Tell all that is new."""
    lines = []
    for each in undelivered(delivered, alarms):
        lines.append(f"{each.kind} {each.alarm.node}")
        delivered = delivered.after(each)
    return delivered, lines


def test_alarms_that_began_in_one_moment_are_two():
    """Numbers are of a clock, and a plant fails at once."""
    delivered, lines = said(Delivered(), of("a"), of("b"))
    assert ["start a", "start b"] == lines
    delivered, lines = said(delivered, of("a", over=True), of("b"))
    assert ["end a"] == lines
    assert ["end b"] == said(delivered, of("a", over=True), of("b", over=True))[1]


def test_a_node_with_many_alarms_pushes_out_no_other(monkeypatch):
    """What is remembered is each node's last, and never more than there is room for."""
    delivered, _ = said(Delivered(), of("quiet", over=True))
    for n in range(MOST + 5):
        delivered, _ = said(delivered, of("quiet", over=True), of("busy", n, over=True))
    counts = Counter(name.rpartition("-")[0] for name in delivered.over)
    assert {"quiet": 1, "busy": MOST} == counts

    monkeypatch.setattr(module, "MOST_IN_ALL", 10)
    delivered, _ = said(delivered, of("new", over=True))
    assert 10 == len(delivered.over)


@pytest.fixture
def delivery(tmp_path):
    """A delivery to Alertmanager, what it has posted, and its clock."""
    posted: list[str] = []
    clock = [BEGAN]

    def post(request) -> HttpAnswer:
        (alert,) = json.loads(request.body)
        posted.append(alert["labels"]["node"])
        return HttpAnswer()

    hook = WebhookConfig(url="https://alertmanager.example:9093", shape="alertmanager")
    delivery = WebhookDelivery(
        payload_of(hook, "pumps"),
        post,
        Journal(tmp_path / "root.db.alarms", ("hook",)),
        name="hook",
        where="https://alertmanager.example",
        clock=lambda: clock[0],
        wall=lambda: clock[0],
        rng=np.random.default_rng(0),
    )
    return delivery, posted, clock


def test_each_open_alarm_is_repeated_for_who_wants_that(delivery):
    """Every three minutes, each of them; one that is over no more."""
    delivery, posted, clock = delivery
    delivery.begin(())

    def works(*alarms: Alarm, for_s: float) -> Counter[str]:
        posted.clear()
        until = clock[0] + for_s
        while (wait := delivery.post_due(alarms)) + clock[0] <= until:
            clock[0] += wait
        clock[0] = until
        return Counter(posted)

    both = of("a"), of("b"), of("c", over=True)
    assert {"a": 4, "b": 4, "c": 2} == works(*both, for_s=3 * REPEATED_S + 1)
    assert {"a": 1, "b": 3} == works(of("a", over=True), of("b"), for_s=3 * REPEATED_S)
