"""Channels of a plant of `loop`: 41 measurements and 11 valves, with noise and scale."""

from __future__ import annotations

import numpy as np

from plants import loop_process as process
from submerge import Channel, Scaling

# Name, unit, value on paper, noise, scale: about what one node's readings vary by.
MEASURED: tuple[tuple[str, str, float, float, float], ...] = (
    ("feed A", "kmol/h", 27.0, 0.25, 1.5),
    ("feed D", "kmol/h", 66.0, 0.5, 4.3),
    ("feed E", "kmol/h", 40.8, 0.4, 2.6),
    ("feed mix", "kmol/h", 90.0, 0.7, 5.0),
    ("recycle", "kmol/h", 480.0, 3.0, 3.2),
    ("reactor feed", "kmol/h", 700.0, 4.0, 13.0),
    ("reactor pressure", "kPa", 2700.0, 4.0, 16.0),
    ("reactor level", "%", 73.0, 0.4, 3.4),
    ("reactor temperature", "°C", 120.0, 0.06, 0.5),
    ("purge", "kmol/h", 28.0, 0.3, 4.3),
    ("separator temperature", "°C", 60.0, 0.1, 0.16),
    ("separator level", "%", 50.0, 0.4, 0.6),
    ("separator pressure", "kPa", 2590.0, 4.0, 16.0),
    ("separator underflow", "kmol/h", 124.0, 1.0, 5.4),
    ("stripper level", "%", 50.0, 0.4, 0.6),
    ("stripper pressure", "kPa", 2900.0, 2.0, 2.7),
    ("stripper underflow", "kmol/h", 97.0, 0.8, 4.5),
    ("stripper temperature", "°C", 80.0, 0.1, 0.18),
    ("steam", "kg/h", 111.0, 0.8, 4.1),
    ("compressor work", "kW", 350.0, 1.5, 1.8),
    ("reactor cooling outlet", "°C", 67.0, 0.15, 2.7),
    ("condenser outlet", "°C", 38.0, 0.15, 0.26),
    ("reactor feed/A", "mol%", 43.6, 0.12, 1.2),
    ("reactor feed/B", "mol%", 18.5, 0.12, 1.4),
    ("reactor feed/D", "mol%", 19.8, 0.1, 1.1),
    ("reactor feed/E", "mol%", 14.6, 0.06, 0.55),
    ("reactor feed/F", "mol%", 0.35, 0.004, 0.022),
    ("reactor feed/P", "mol%", 2.07, 0.012, 0.095),
    ("reactor feed/Q", "mol%", 1.0, 0.007, 0.049),
    ("purge/A", "mol%", 41.5, 0.16, 1.6),
    ("purge/B", "mol%", 25.4, 0.16, 1.7),
    ("purge/D", "mol%", 15.1, 0.1, 1.1),
    ("purge/E", "mol%", 12.9, 0.07, 0.61),
    ("purge/F", "mol%", 0.5, 0.006, 0.036),
    ("purge/P", "mol%", 3.0, 0.02, 0.18),
    ("purge/Q", "mol%", 1.46, 0.012, 0.086),
    ("product/D", "mol%", 1.14, 0.008, 0.062),
    ("product/E", "mol%", 1.58, 0.008, 0.051),
    ("product/F", "mol%", 1.66, 0.012, 0.092),
    ("product/P", "mol%", 60.2, 0.15, 1.4),
    ("product/Q", "mol%", 35.3, 0.15, 1.5),
)
VALVE_SCALES = (0.025, 0.033, 0.032, 0.028, 0.011, 0.056, 0.02, 0.02, 0.018, 0.057, 0.023)


NAMES = (*(name for name, *_ in MEASURED), *process.VALVE_NAMES)
CHANNELS = (
    *(Channel(name, unit) for name, unit, *_ in MEASURED),
    *(Channel(name, "open") for name in process.VALVE_NAMES),
)
SCALING = Scaling(
    (*(paper for _, _, paper, *_ in MEASURED), *process.OPEN[:, 0].tolist()),
    (*(scale for *_, scale in MEASURED), *VALVE_SCALES),
)

COUNT = len(MEASURED)
"""Of measurements."""

ANALYZERS = slice(process.CONTINUOUS, COUNT)
PAPER = np.array(SCALING.offset[:COUNT])[:, None]
NOISE = np.array([noise for *_, noise, _ in MEASURED])[:, None]
SCALE = np.array(SCALING.scale[:COUNT])[:, None]
