"""Which channels have no value, and for how long there was no row."""

from __future__ import annotations

import numpy as np
import pytest

from submerge_client.config.sensors import HostSensor, MqttSensor, NdjsonSensor
from submerge_fleet.up.arrivals import Arrivals

NAMES = ("a/heat", "b/heat")
MQTT = MqttSensor(url="mqtt://b", insecure=True, topics=("z/+",), period_s=60.0)


def test_a_channel_that_never_speaks_is_named_until_it_does():
    arrivals = Arrivals(NAMES, NdjsonSensor(), 0.0)
    arrivals.mark(10, np.array([10, 0]))
    assert ("b/heat",) == arrivals.absent
    arrivals.mark(20, np.array([20, 15]))
    assert () == arrivals.absent
    arrivals.mark(30, np.array([20, 30]))
    assert ("a/heat",) == arrivals.absent


def test_without_rows_no_channel_is_to_blame():
    arrivals = Arrivals(NAMES, NdjsonSensor(), 0.0)
    arrivals.mark(0, np.array([0, 0]))
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
    assert advice in arrivals.advice
    arrivals.look(1, 500.0)
    assert 0.0 == arrivals.quiet_s(510.0)
    assert "" == arrivals.advice
