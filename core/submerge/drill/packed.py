"""What a drill found out about a channel, in 16 bytes: it travels so, and is held so.

Little-endian: bias, drift and noise as float32; R2, then the shares of stuck and of exchanged
sensors that are found, as a byte each in steps of 1/200; a byte for later versions, 0. 255 stands
for a share that is not known. R2 is rounded down, so that what is blind stays blind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from submerge.drill.drill import ChannelAnswer
from submerge.errors import PeerError

FORM = np.dtype([("sizes", "<f4", 3), ("shares", "u1", 3), ("later", "u1")])

STEPS, UNKNOWN = 200, 255


def packed(channels: Sequence[ChannelAnswer]) -> bytes:
    """Return the answers of all channels as bytes, `FORM.itemsize` a channel."""
    table = np.zeros(len(channels), dtype=FORM)
    table["sizes"] = np.array(
        [(each.bias, each.drift, each.noise) for each in channels], dtype=np.float32
    ).reshape(-1, 3)
    table["shares"] = np.array(
        [(_share(each.r2), _share(each.stuck), _share(each.swap)) for each in channels],
        dtype=np.uint8,
    ).reshape(-1, 3)
    return table.tobytes()


def unpacked(data: bytes) -> tuple[ChannelAnswer, ...]:
    """Return the answers that bytes hold; deviations, which do not travel, are 1.

    Raises
    ------
    PeerError
        If no node sends these bytes.
    """
    if len(data) % FORM.itemsize:
        raise PeerError(f"expected {FORM.itemsize} bytes a channel, got {len(data)}", kind="shape")
    table = np.frombuffer(data, dtype=FORM)
    if not (table["sizes"] >= 0).all():
        raise PeerError("the size of a fault must not be negative", kind="range")
    shares = table["shares"]
    if ((shares > STEPS) & (shares != UNKNOWN)).any() or (shares[:, 0] == UNKNOWN).any():
        raise PeerError(f"a share has {STEPS} steps, got more", kind="range")
    known = np.where(shares == UNKNOWN, np.nan, shares / STEPS)
    return tuple(
        ChannelAnswer(1.0, r2, bias, drift, noise, stuck, swap)
        for (bias, drift, noise), (r2, stuck, swap) in zip(
            table["sizes"].tolist(), known.tolist(), strict=True
        )
    )


def _share(share: float) -> int:
    return UNKNOWN if math.isnan(share) else math.floor(STEPS * share + 1e-9)
