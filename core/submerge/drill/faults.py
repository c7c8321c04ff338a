"""Faults of a sensor, as what they add to its readings.

They are the kinds that people know from sensors: a reading is off by a constant (bias), runs away
(drift), scatters (noise), repeats one value (stuck), or is that of another sensor (swap: two
cables are exchanged). Bias, drift and noise have a size; the others have none.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array

Kind = Literal["bias", "drift", "noise", "stuck", "swap"]

SIZED: tuple[Kind, ...] = ("bias", "drift", "noise")
"""Kinds with a size, in the unit of the channel."""


def shape(kind: str, ages: Array, noise: Array) -> Array | None:
    """Return what a fault of size 1 adds to readings; None for a kind without a size.

    ages : (..., n). Time since the fault began, in units of the time in which a drift reaches its
        size.
    noise : (..., n). Standard normal.
    """
    match kind:
        case "bias":
            return np.ones_like(ages)
        case "drift":
            return ages
        case "noise":
            return noise
        case _:
            return None


def held(readings: Array, starts: npt.NDArray[np.intp], rows: int) -> Array:
    """Return what a stuck sensor adds: its last reading before each start, less what it would read.

    readings : (n,), of one channel
    starts : (spans,), the first row of each fault

    Returns
    -------
    (spans, rows)
    """
    return np.asarray(readings[starts - 1, None] - readings[starts[:, None] + np.arange(rows)])


def most_alike(readings: Array, others: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return the channel that each is most likely taken for: (channels,), itself if there is none.

    It is the one whose readings differ least from its own: a swap with any other shows more.

    readings : (n, channels), in their units
    others : (channels, channels) of bool. With which channels each may be exchanged.
    """
    squares = np.einsum("ij,ij->j", readings, readings)
    apart = squares[:, None] + squares - 2 * readings.T @ readings
    apart = np.where(others & ~np.eye(len(squares), dtype=bool), apart, np.inf)
    nearest = apart.argmin(axis=1)
    return np.where(np.isfinite(apart.min(axis=1)), nearest, np.arange(len(squares)))
