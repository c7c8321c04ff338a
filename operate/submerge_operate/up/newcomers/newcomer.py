"""Newcomer: a field that was heard and is no channel, and whether it can be one by now."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from submerge.stats.moments import FLAT
from submerge_client.config.schemas import ChannelConfig
from submerge_client.sensors.mqtt.heard import HeardField
from submerge_operate.init.choosing import why_not

READINGS, SPAN_S = 10, 1800.0
"""Readings and seconds after which a field's mean and deviation are known well enough."""

EARLY, CONSTANT = "not heard for long enough", "constant so far"


class Newcomer(msgspec.Struct, frozen=True, kw_only=True):
    """A field that was heard.

    offset, scale : Mean and standard deviation of what was heard, in its unit.
    every_s : The mean time between readings.
    why_not : Why it cannot be a channel yet, or should not; "" if it can.
    """

    name: str
    unit: str
    offset: float
    scale: float
    readings: int
    every_s: float
    why_not: str = ""

    @property
    def channel(self) -> ChannelConfig:
        """The field as a channel."""
        return ChannelConfig(
            name=self.name, unit=self.unit, offset=self.offset, scale=self.scale or 1.0
        )


def newcomers_of(sensor: object) -> list[Newcomer]:
    """Return what a sensor has heard beside its channels; none from most kinds of sensors."""
    heard: Iterable[HeardField] = getattr(sensor, "newcomers", ())
    return [_newcomer(field) for field in heard]


def _newcomer(field: HeardField) -> Newcomer:
    if field.count < READINGS or field.last_s - field.first_s < SPAN_S:
        why = EARLY
    elif not field.deviation > FLAT * abs(field.mean):
        # As when a scale is measured: by what rounding leaves, the next change would be too large.
        why = CONSTANT
    else:
        why = why_not(field.name, field, None)
    return Newcomer(
        name=field.name,
        unit=field.unit,
        offset=field.mean,
        scale=field.deviation,
        readings=field.count,
        every_s=field.every_s or 0.0,
        why_not=why,
    )
