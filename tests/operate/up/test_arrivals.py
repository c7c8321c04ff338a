"""Which channels have no value, and for how long there was no row."""

from __future__ import annotations

import numpy as np
import pytest

from submerge_client.agent import NewestValues
from submerge_client.config.sensors import HostSensor, MqttSensor, NdjsonSensor
from submerge_operate.up.line import Arrivals

NAMES = ("a/heat", "b/heat")
MQTT = MqttSensor(url="mqtt://b", insecure=True, topics=("z/+",), period_s=60.0)


def test_a_channel_that_never_speaks_is_named_until_it_does():
    arrivals, newest = Arrivals(NAMES, NdjsonSensor(), 0.0), NewestValues(2)
    newest.take(np.array([[1.0, np.nan], [2.0, np.nan]]), 2)
    arrivals.mark(2, newest)
    assert ("b/heat",) == arrivals.absent == arrivals.never
    newest.take(np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, np.nan]]), 5)
    assert [4, 4] == newest.at.tolist()
    arrivals.mark(5, newest)
    assert () == arrivals.absent
    newest.take(np.array([[np.nan, 3.0]]), 6)
    arrivals.mark(6, newest)
    assert ("a/heat",) == arrivals.absent
    assert () == arrivals.never, "it has had one"


def test_without_rows_no_channel_is_to_blame():
    arrivals = Arrivals(NAMES, NdjsonSensor(), 0.0)
    arrivals.mark(0, NewestValues(2))
    assert () == arrivals.absent


@pytest.mark.parametrize(
    ("sensor", "usual_s", "advice"),
    [(NdjsonSensor(), 30.0, "a line as"), (MQTT, 180.0, "z/+"), (HostSensor(), 30.0, "[sensor]")],
)
def test_a_silence_is_counted_from_the_last_row(sensor, usual_s, advice):
    """Three periods are nothing to speak of."""
    arrivals = Arrivals(NAMES, sensor, 0.0)
    arrivals.look(0, usual_s)
    assert 0.0 == arrivals.quiet_s(usual_s)
    assert usual_s + 1 == arrivals.quiet_s(usual_s + 1)
    assert advice in arrivals.advice({"taken": 9})
    assert arrivals.advice({"retained": 2, "rows": 5}).startswith("2 retained; ")
    arrivals.look(1, 500.0)
    assert 0.0 == arrivals.quiet_s(510.0)
    assert "" == arrivals.advice({"retained": 2})
