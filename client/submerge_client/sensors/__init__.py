"""Sensors: where rows come from; one kind of source a file.

A sensor has a thread of its own, in which it reads and hands rows over. It has no queue,
or one that is bounded and counts what it drops: `hand` blocks while the node is behind.
Whatever a sensor leaves out is in its `counts`. What one kind needs (paho-mqtt, psutil) is
loaded when that kind is opened. No row is scaled, filled or scored here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from submerge import Array, UsageError
from submerge_client.config.sensors import (
    AnySensor,
    FileSensor,
    HostSensor,
    MqttSensor,
    NdjsonSensor,
)
from submerge_client.sensors.tally import SensorLog, unheard

__all__ = ["Sensor", "SensorLog", "opened"]


class Sensor(Protocol):
    """A source of rows. A mistake in its configuration is a UsageError of its constructor."""

    @property
    def counts(self) -> dict[str, int]:
        """What was left out, dropped or late, by kind; read from any thread."""

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over rows until the source ends or `stop` is set.

        Parameters
        ----------
        hand : callable
            Takes rows (n, channels) in the schema's order, float64, NaN for a gap. It
            blocks while the node is behind, and keeps what it is given.
        stop : threading.Event
            Looked at twice a second or more often.

        Raises
        ------
        UsageError
            If the source turns out to be unusable on the way.
        """


def opened(config: AnySensor, channels: Sequence[str], *, note: SensorLog = unheard) -> Sensor:
    """Return the sensor that a configuration describes.

    Parameters
    ----------
    config : AnySensor
    channels : sequence of str
        The schema's names, in its order.
    note : Note
        Takes remarks for the log, from any thread.

    Raises
    ------
    UsageError
        If it cannot be what it is told to be, or an extra is not installed.
    """
    match config:
        case NdjsonSensor():
            from submerge_client.sensors.ndjson import NdjsonReadings

            return NdjsonReadings(channels, note=note)
        case FileSensor():
            from submerge_client.sensors.files import FileReplay

            return FileReplay(
                channels,
                paths=config.paths,
                speed=config.speed,
                loop=config.loop,
                skip=config.skip,
                zero_is_missing=config.zero_is_missing,
                quantity=config.quantity,
                note=note,
            )
        case MqttSensor():
            with _extra("paho", "mqtt"):
                from submerge_client.sensors.mqtt import MqttReadings

            return MqttReadings(
                channels,
                url=config.url,
                insecure=config.insecure,
                ca=config.ca,
                cert=config.cert,
                key=config.key,
                username=config.username,
                password_file=config.password_file,
                topic=config.topic,
                value=config.value,
                time=config.time,
                period_s=config.period_s,
                max_age_s=config.max_age_s,
                lateness_s=config.lateness_s,
                missing=config.missing,
                note=note,
            )
        case HostSensor():
            return _host(config, channels, note)


def _host(config: HostSensor, channels: Sequence[str], note: SensorLog) -> Sensor:
    with _extra("psutil", "host"):
        from submerge_client.sensors.host import HostMeter

    return HostMeter(channels, period_s=config.period_s, note=note)


@contextmanager
def _extra(module: str, extra: str) -> Iterator[None]:
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
