"""USUAL: the figures of a host that say most about it, and how much of each is much.

The channels are few on purpose: each processor core and each network card moves with the whole.
A scale is a step that a person would notice in the figure of a small machine, so that one of them
weighs about as much as one of another. It is no deviation that was measured: with these scales a
node learns from its first row on, where `scaling = "fleet"` measures a thousand rows first.
"""

from __future__ import annotations

from typing import NamedTuple


class HostChannel(NamedTuple):
    """A channel of the sensor `host`, its unit, and the scale that its readings count in."""

    name: str
    unit: str
    scale: float


USUAL = (
    HostChannel("cpu.percent", "%", 10.0),
    HostChannel("load.1", "", 1.0),
    HostChannel("mem.percent", "%", 5.0),
    HostChannel("swap.percent", "%", 5.0),
    HostChannel("disk.read_Bps", "B/s", 10e6),
    HostChannel("disk.write_Bps", "B/s", 10e6),
    HostChannel("net.rx_Bps", "B/s", 1e6),
    HostChannel("net.tx_Bps", "B/s", 1e6),
    HostChannel("temp.max", "°C", 5.0),
)
