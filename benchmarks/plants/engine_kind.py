"""The kind of engine in `engine`: its channels, and how it wears."""

from __future__ import annotations

from submerge import Channel, Scaling

# Name, unit, value on paper, scale: what varies within a regime, about.
SENSORS: tuple[tuple[str, str, float, float], ...] = (
    ("altitude", "kft", 20.0, 0.5),
    ("Mach number", "1", 0.6, 0.02),
    ("throttle", "%", 80.0, 1.5),
    ("fan inlet temperature", "K", 288.0, 1.2),
    ("booster outlet temperature", "K", 357.0, 1.5),
    ("compressor outlet temperature", "K", 880.0, 4.0),
    ("turbine outlet temperature", "K", 780.0, 5.0),
    ("fan inlet pressure", "kPa", 101.0, 0.6),
    ("bypass pressure", "kPa", 149.0, 0.9),
    ("compressor outlet pressure", "kPa", 3810.0, 30.0),
    ("fan speed", "rpm", 2390.0, 7.0),
    ("core speed", "rpm", 9050.0, 20.0),
    ("pressure ratio", "1", 1.3, 0.01),
    ("combustor static pressure", "kPa", 327.0, 2.0),
    ("fuel to pressure ratio", "1", 521.0, 3.0),
    ("corrected fan speed", "rpm", 2388.0, 6.0),
    ("corrected core speed", "rpm", 8130.0, 18.0),
    ("bypass ratio", "1", 8.4, 0.03),
    ("fuel to air ratio", "1", 0.03, 0.0003),
    ("bleed enthalpy", "kJ/kg", 392.0, 1.5),
    ("demanded fan speed", "rpm", 2388.0, 6.0),
    ("high turbine coolant", "kg/s", 17.6, 0.1),
    ("low turbine coolant", "kg/s", 10.6, 0.06),
    ("fuel flow", "kg/h", 3600.0, 40.0),
)
NAMES = tuple(name for name, *_ in SENSORS)
CHANNELS = tuple(Channel(name, unit) for name, unit, *_ in SENSORS)
SCALING = Scaling(tuple(p for *_, p, _ in SENSORS), tuple(s for *_, s in SENSORS))
SETTINGS = 3
"""The first channels are set by the pilot."""

WEAR: dict[str, dict[str, float]] = {
    "compressor wear": {
        "compressor outlet temperature": 0.7,
        "turbine outlet temperature": 1.0,
        "compressor outlet pressure": -0.6,
        "core speed": 0.5,
        "combustor static pressure": 0.8,
        "fuel to pressure ratio": -0.7,
        "corrected core speed": 0.4,
        "bypass ratio": 0.6,
        "bleed enthalpy": 0.4,
        "high turbine coolant": -0.7,
        "low turbine coolant": -0.6,
        "fuel flow": 0.3,
    },
    "fan wear": {
        "booster outlet temperature": 0.6,
        "turbine outlet temperature": 0.5,
        "bypass pressure": -1.0,
        "fan speed": 0.7,
        "pressure ratio": -0.8,
        "corrected fan speed": 0.7,
        "bypass ratio": -0.8,
        "fuel flow": 0.5,
    },
}
"""Channels that each kind of wear moves, at its end, as shares of `size` scales."""
