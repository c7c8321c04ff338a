"""Sensors: the sources of rows, one kind in each module.

Libraries of one kind (paho-mqtt, psutil) are loaded when that kind is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from submerge import UsageError
from submerge_client.config.sensor_kind import Sensor as Sensor
from submerge_client.config.sensor_kind import SensorKind
from submerge_client.sensors.tally import SensorLog, no_log

if TYPE_CHECKING:
    from submerge_client.sensors.influx.outlet import MetricOutlet


def open_sensor(
    config: SensorKind,
    channels: Sequence[str],
    *,
    note: SensorLog = no_log,
    gather_s: float = 0.0,
    habits: Path | None = None,  # where what it learns of its devices is kept
    outlet: MetricOutlet | None = None,  # for metrics that go on
) -> Sensor:
    """Return a sensor of the schema's channels; UsageError also if an extra is missing."""
    # Late: kinds of other packages, which it loads, may import this package.
    from submerge_client.config import sensors as kinds

    match config:
        case kinds.NdjsonSensor():
            from submerge_client.sensors.ndjson import NdjsonReadings

            return NdjsonReadings(
                channels, note=note, pause_s=gather_s, zero=config.absent == "zero"
            )
        case kinds.InfluxSensor():
            from submerge_client.sensors.influx.readings import InfluxReadings

            return InfluxReadings(channels, config, outlet=outlet, note=note, gather_s=gather_s)
        case kinds.FileSensor():
            from submerge_client.sensors.files import FileReplay

            return FileReplay(channels, config, note=note)
        case kinds.MqttSensor():
            with needs_extra("paho", "mqtt"):
                from submerge_client.sensors.mqtt.readings import MqttReadings

            return MqttReadings(channels, config, note=note, habits=habits)
        case kinds.HostSensor():
            with needs_extra("psutil", "host"):
                from submerge_client.sensors.host import HostMeter

            return HostMeter(channels, period_s=config.period_s, note=note)
        case kinds.ProgramSensor():
            from submerge_client.sensors.program import ProgramReadings

            return ProgramReadings(channels, config.command, note=note, pause_s=gather_s)
        case _:
            return config.open(channels, note=note, gather_s=gather_s)


@contextmanager
def needs_extra(module: str, extra: str) -> Iterator[None]:
    """Name the extra if a module is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module:
            raise
        raise UsageError(
            f"this kind of sensor needs {module}, which is not installed:"
            f" pip install 'submerge[{extra}]'"
        ) from error
