"""HostMeter: a machine's own figures: processor, memory, disk, network, temperature.

A name that ends in `_Bps` is the growth of a total since the last row, in bytes a second.
"""

from __future__ import annotations

import difflib
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import psutil

from submerge import Array, UsageError
from submerge_client.sensors.tally import ProblemTally, SensorLog, no_log

# A scale is a step that a person would notice in the figure of a small machine, so that one of
# them weighs about as much as one of another.


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


RATE = "_Bps"
UNREADABLE = (OSError, psutil.Error, NotImplementedError)
"""The errors of a system that does not have a figure, or does not show it."""

Look = dict[str, float]


class HostMeter:
    """A sensor of this machine's figures, a row every `period_s`, which counts what is missing."""

    def __init__(
        self,
        channels: Sequence[str],
        *,
        period_s: float,
        note: SensorLog = no_log,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        if not 0 < period_s < math.inf:
            raise UsageError(f"period_s must be a time in seconds, above 0, got {period_s}")
        self._channels = tuple(channels)
        self._period = period_s
        self._clock = clock
        self._wait = wait
        self._tally = ProblemTally(note, "failed", "missing", "skipped")
        self.counts = self._tally.counts
        self._families = sorted({name.split(".")[0] for name in channels} & FAMILIES.keys())
        here = self._look(self._families)
        for name in channels:
            if name not in here:
                raise _unknown_channel(name)

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over a row every period, the first after one, until `stop` is set."""
        # Rates and the processor's shares cover the time between two looks.
        before, then = self._look(self._families), self._clock()
        due = then + self._period
        while True:
            while (left := due - self._clock()) > 0 and not stop.is_set():
                self._wait(stop, left)
            if stop.is_set():
                return
            look, now = self._look(self._families), self._clock()
            row = [_value(name, look, before, now - then) for name in self._channels]
            self.counts["missing"] += sum(map(math.isnan, row))
            hand(np.array([row]))
            before, then = look, now
            missed = max(int((self._clock() - due) / self._period), 0)
            self.counts["skipped"] += missed
            due += (missed + 1) * self._period

    def _look(self, families: Sequence[str]) -> Look:
        look: Look = {}
        for family in families:
            try:
                look |= FAMILIES[family]()
            except UNREADABLE as error:
                self._tally.add("failed", "cannot be read", channels=family, error=str(error))
        return look


def channel_names() -> list[str]:
    names: list[str] = []
    for look in FAMILIES.values():
        try:
            names += look()
        except UNREADABLE:
            continue
    return names


def _value(name: str, look: Look, before: Look, seconds: float) -> float:
    """Return a channel's value, or NaN if it is not there or its total began again at 0."""
    value = look.get(name, math.nan)
    if not name.endswith(RATE):
        return value
    grown = value - before.get(name, math.nan)
    return grown / seconds if grown >= 0 and seconds > 0 else math.nan


def _unknown_channel(name: str) -> UsageError:
    names = channel_names()
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UsageError(
        f"expected channels that this host has, got {name!r}: {hint}it has {', '.join(names)}"
    )


def _cpu() -> Look:
    times = psutil.cpu_times_percent()
    look = {"cpu.percent": psutil.cpu_percent()}
    shares = ("user", "system", "iowait")
    look |= {f"cpu.{each}": getattr(times, each) for each in shares if hasattr(times, each)}
    each_core = enumerate(psutil.cpu_percent(percpu=True))
    return look | {f"cpu.{core}.percent": percent for core, percent in each_core}


def _mem() -> Look:
    memory = psutil.virtual_memory()
    return {"mem.percent": memory.percent, "mem.available_bytes": float(memory.available)}


def _disk() -> Look:
    look = {"disk.percent": psutil.disk_usage("/").percent}
    total = psutil.disk_io_counters()
    if total is not None:
        look |= {"disk.read_Bps": total.read_bytes, "disk.write_Bps": total.write_bytes}
    return look


def _net() -> Look:
    # Without loopback, which is no traffic.
    cards = {n: c for n, c in psutil.net_io_counters(pernic=True).items() if n != "lo"}
    look: Look = {
        "net.rx_Bps": sum(card.bytes_recv for card in cards.values()),
        "net.tx_Bps": sum(card.bytes_sent for card in cards.values()),
    }
    for name, card in cards.items():
        look |= {f"net.{name}.rx_Bps": card.bytes_recv, f"net.{name}.tx_Bps": card.bytes_sent}
    return look


def _temp() -> Look:
    """`temp.max`, and each sensor by its chip and label: `temp.coretemp.core_0`, in Celsius."""
    read = getattr(psutil, "sensors_temperatures", dict)
    look: Look = {}
    for chip, sensors in read().items():
        for i, sensor in enumerate(sensors):
            label = (sensor.label or str(i)).lower().replace(" ", "_")
            look[f"temp.{chip}.{label}" if len(sensors) > 1 else f"temp.{chip}"] = sensor.current
    return {"temp.max": max(look.values()), **look} if look else {}


FAMILIES: dict[str, Callable[[], Look]] = {
    "cpu": _cpu,
    "load": lambda: dict(zip(("load.1", "load.5", "load.15"), psutil.getloadavg(), strict=True)),
    "mem": _mem,
    "swap": lambda: {"swap.percent": psutil.swap_memory().percent},
    "disk": _disk,
    "net": _net,
    "temp": _temp,
}
"""Channels by the first word of their names; a family is read as a whole."""
