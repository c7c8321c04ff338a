"""Scores as metrics: the row's time, its scores, the channel to blame, and its alarm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from submerge import Channel, Schema
from submerge.stats.score_limits import Limits
from submerge_client.config.alarms import AlarmsConfig
from submerge_client.score_outputs.lines import ScoredBlock
from submerge_client.score_outputs.metrics import ScoreMetrics
from submerge_client.sensors.influx.line_protocol import ParsedLine, parse
from submerge_client.sensors.influx.outlet import MetricOutlet
from support.alarms import alarm
from support.scored import scored_rows

SCHEMA = Schema(tuple(map(Channel, ("flow", "temp", 'a "hum"'))))
LIMITS = Limits((0.5, 0.95, 0.99), (0.1, 0.5, 1.0), (1.0, 2.0, 3.0), 100, ())
TIMES = (7, 1_767_225_600_000_000_000, -3)


@pytest.fixture
def outlet() -> Iterator[MetricOutlet]:
    end, into = os.pipe()
    outlet = MetricOutlet(into)
    outlet.times.add([0] * 10)
    outlet.times.add(TIMES)
    outlet.end = end
    yield outlet
    outlet.waker.close()
    os.close(end)
    os.close(into)


def metrics(outlet, scored, *, alarms=(), provisional=False) -> list[ParsedLine]:
    """What stands on standard output after these scores."""
    sends = AlarmsConfig(provisional=provisional).sends
    scores = ScoreMetrics(SCHEMA, node="n", group="g", outlet=outlet, sends=sends)
    scores.write(ScoredBlock(scored, SCHEMA, 10, 99.0, alarms))
    scores.close()
    return [parse(line) for line in os.read(outlet.end, 1 << 16).splitlines()]


def test_rows(outlet):
    """A metric for each row that was scored, at the row's own time."""
    first, second, third = metrics(outlet, scored_rows([0.05, 0.7, np.inf], limits=LIMITS))

    assert list(TIMES) == [first.time, second.time, third.time]
    assert ("submerge", {"node": "n", "group": "g"}) == second[:2]
    assert {
        "spe": 0.7,
        "t2": 1.4,
        "over": 0.95,
        "over_spe": 0.95,
        "over_t2": 0.0,
        "top": 'a "hum"',
        "top_share": 1.0,
        "alarm": False,
        "provisional": False,
        "withheld": False,
        "expired": False,
    } == second.fields
    assert (0.0, 0.05) == (first.fields["over"], first.fields["spe"])
    assert "spe" not in third.fields


@pytest.mark.parametrize("sent", [False, True])
@pytest.mark.parametrize("provisional", [False, True])
def test_alarms(outlet, provisional, sent):
    """A row of an alarm has its name; a provisional one counts where the settings say so."""
    scored, raised = scored_rows([0.05, 0.7]), alarm(provisional=provisional)
    decision = replace(scored.decision, alarmed=np.array([False, True]))
    scored = replace(scored, decision=decision)
    quiet, loud = metrics(outlet, scored, alarms=(raised,), provisional=sent)

    assert (False, False) == (quiet.fields["alarm"], "alarm_id" in quiet.fields)
    apart = provisional and not sent
    assert (not apart, apart, raised.name) == tuple(
        loud.fields[name] for name in ("alarm", "provisional", "alarm_id")
    )
