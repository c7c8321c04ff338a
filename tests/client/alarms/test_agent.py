"""The agent hands alarms to its sinks once these are kept, and names them in its scores."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from submerge import Schema
from submerge.client.node import ClientNode
from submerge.protocol.alarm_status import AlarmStatus
from submerge.protocol.machine import Alarmed, Keep, Now, Reading, Send, Start
from submerge.protocol.messages import Report
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge_client.agent import Agent
from submerge_client.alarms import Sinks
from submerge_client.checkpoint import RecordStore
from submerge_client.sensors.gather import Lags
from support.alarms import HISTORY, Log, alarm
from support.scored import scored_rows


class Ear:
    """A sink that writes down what it hears."""

    def __init__(self, order=None, *, fails=None):
        self.heard, self.closed = [], False
        self._order, self._fails = order, fails

    def update(self, alarms):
        self.heard.append(alarms)
        if self._order is not None:
            self._order.append("delivered")
        if self._fails:
            raise self._fails

    def close(self, patience_s):
        self.closed = True


class Deaf:
    """An uplink that does not answer, and a sensor with four rows."""

    counts: ClassVar[dict[str, int]] = {}

    def open(self, hear):
        pass

    def send(self, kind, group, data, *, final=False):
        pass

    def close(self):
        pass

    def read(self, hand, stop):
        for _ in range(4):
            hand(np.zeros((1, 4)))


class Scripted(ClientNode):
    """A node that says, after each event of a kind, what the script has for it."""

    def __init__(self, *, start=(), reading=()):
        settings = ClientSettings("pump-1", "g", "root")
        super().__init__(settings, Schema.anonymous(4), Subspaces(1), np.random.default_rng(0))
        self._start_says, self._reading_says = list(start), list(reading)

    def step(self, event, now):
        effects = super().step(event, now)
        if isinstance(event, Start):
            effects += self._start_says
        if isinstance(event, Reading) and self._reading_says:
            effects += self._reading_says.pop(0)
        return effects


class Written(RecordStore):
    """A disk that takes whatever it is given, and writes down that it was."""

    def __init__(self, order=None):
        super().__init__(None)
        self._order = [] if order is None else order

    def keep(self, effect):
        self._order.append("kept")


def run(node, *sinks, disk=None, scores=None):
    """Run a client to its end."""
    Agent(
        node,
        uplink=Deaf(),
        sensor=Deaf(),
        disk=disk or Written(),
        lags=Lags(1, 4),
        scores=scores,
        sinks=Sinks(sinks),
        clock=lambda: Now(0.0, 1e9),
        linger_s=0.0,
    ).run()


def delivered(report, alarms):
    """A report that carries alarms, on its way."""
    return Send("root", replace(report, alarm_status=AlarmStatus(AlarmStatus.at("armed"), alarms)))


def any_report():
    """Of a node that has seen a row."""
    node = Scripted()
    node.step(Start({}), Now(0.0, 1e9))
    return node._report(Now(0.0, 1e9))


def test_sinks_hear_each_state_once_it_is_there():
    """First that there is no alarm; in the end they are closed."""
    ear = Ear()
    run(Scripted(reading=[[Alarmed(state)] for state in HISTORY[1:]]), ear)

    assert list(HISTORY) == ear.heard
    assert ear.closed


def test_sinks_hear_at_the_start_what_was_kept():
    """And no empty state comes before: a sink would take it for an end."""
    ear = Ear()
    run(Scripted(start=[Alarmed(HISTORY[3])]), ear)

    assert [HISTORY[3]] == ear.heard


def test_what_is_told_was_kept_before():
    """Effects are performed in order: killed between the two, the next start delivers it."""
    order = []
    effects = [Keep({("lookout",): None}), Alarmed(HISTORY[1])]
    run(Scripted(reading=[effects]), Ear(order), disk=Written(order))

    assert ["delivered", "kept", "delivered"] == order[:3]


def test_a_report_brings_newer_figures_of_the_same_alarms():
    """How bad it has become; what is not the same alarms is not believed, nor a final."""
    worse = (alarm(0, worst=9.0),)
    report = any_report()
    assert isinstance(report, Report)
    reading = [
        [delivered(report, HISTORY[1]), Alarmed(HISTORY[1])],
        [delivered(report, worse)],
        [
            delivered(replace(report, final=True), (alarm(0, worst=1.0),)),
            delivered(report, HISTORY[2]),
        ],
    ]
    ear = Ear()
    run(Scripted(reading=reading), ear)

    assert [(), HISTORY[1], worse] == ear.heard


def test_a_sink_that_fails_costs_no_other_and_not_the_node():
    """It is said, once."""
    log = Log()
    fails, ear = Ear(fails=ZeroDivisionError("a bug")), Ear()
    run(Scripted(reading=[[Alarmed(state)] for state in HISTORY[1:]]), fails, ear)

    (line,) = [
        line for line in log.lines if line["what"] == "a bug in an alarm sink, please report it"
    ]
    assert ("Ear", "ZeroDivisionError: a bug") == (line["sink"], line["why"])
    assert list(HISTORY) == ear.heard


def test_rows_that_raise_an_alarm_already_have_its_name():
    """They are scored before it is delivered: both are effects of one step."""
    named = []

    class Lines:
        problem = ""

        def write(self, block):
            named.append(block.alarms)

        def close(self):
            named.append("closed")

    scored = scored_rows([0.0])
    reading = [[scored], [scored, Alarmed(HISTORY[1])], [scored]]
    node = Scripted(reading=reading)
    run(node, scores=Lines())

    assert [(), HISTORY[1], HISTORY[1], "closed"] == named
