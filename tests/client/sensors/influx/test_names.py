"""Names of channels from measurement, tags and field."""

from __future__ import annotations

import pytest

from submerge import UsageError
from submerge_client.config.sensors import InfluxSensor
from submerge_client.sensors.influx.readings import MOST_SERIES, SeriesNames


@pytest.mark.parametrize(
    ("template", "series", "name"),
    [
        ("{device}/{field}", "modbus,host=h,name=pump,slave_id=1", "modbus.pump.1/flow"),
        ("{device}/{field}", "mem,host=h", "mem/flow"),
        ("{device}/{field}", "cpu,z=1,a=2", "cpu.2.1/flow"),
        ("{name}/{field}", "modbus,name=pump\\ 1,slave_id=1", "pump 1/flow"),
        ("{device}/{slave_id} {field}", "modbus,name=pump,slave_id=1", "modbus.pump/1 flow"),
        ("{field}", "modbus,name=pump", "flow"),
        ("{host}:{device}:{field}", "m,host=h,k=v", "h:m.v:flow"),
        ("{measurement} {field}", "m,measurement=tag", "m flow"),
    ],
)
def test_template(template, series, name):
    """A template says which channel a field is, and the names of fields without one."""
    names = SeriesNames(["other", name], template=template, ignored=("host",))

    found, is_new = names.find(series)

    assert (1, name, True) == (found.places["flow"], found.name_of("flow"), is_new)
    assert names.find(series) == (found, False)


def test_tag_that_is_not_there():
    """A series without a tag that the template names has no channels."""
    found, _ = SeriesNames(["pump/flow"], template="{name}/{field}").find("modbus,slave_id=1")

    assert ({}, None) == (found.places, found.name_of("flow"))


def test_made_up_series():
    """However many series come, so many are remembered, and all are found."""
    names = SeriesNames(["m.7/f"], template="{device}/{field}")

    for i in range(MOST_SERIES + 10):
        names.find(f"m,k={i}")

    assert names.find("m,k=7")[0].places == {"f": 0}
    assert len(names._known) <= MOST_SERIES


@pytest.mark.parametrize(
    "name", ["{device}", "{field}{field}", "{device/{field}", "field", "{}{field}"]
)
def test_wrong_templates(name):
    """A template without a field, or with a brace that opens nothing, is refused."""
    with pytest.raises(UsageError, match=r"^name: expected "):
        InfluxSensor(name=name)
