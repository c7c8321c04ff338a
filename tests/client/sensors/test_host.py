"""The host's own channels: names, rates, gaps and the beat of rows."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import pytest

from submerge import UsageError

psutil = pytest.importorskip("psutil")

from submerge_client.sensors import host  # noqa: E402
from submerge_client.sensors.host import HostMeter, channel_names  # noqa: E402


class Warmth(NamedTuple):
    """What psutil says of a sensor, as far as it is read."""

    label: str
    current: float


class Machine:
    """A clock that moves with each wait, and totals that grow with it."""

    def __init__(self, rows: int) -> None:
        self.now, self.rows = 50.0, rows
        self.got: list[np.ndarray] = []
        self.total = 0.0
        self.stop = threading.Event()

    def clock(self) -> float:
        return self.now

    def wait(self, stop: threading.Event, seconds: float) -> None:
        self.now += seconds
        self.total += 1000 * seconds

    def hand(self, rows: np.ndarray) -> None:
        self.got.append(rows)
        if len(self.got) == self.rows:
            self.stop.set()

    def look(self) -> dict[str, float]:
        return {"made.level": self.now, "made.up_Bps": self.total}

    def meter(self, monkeypatch: pytest.MonkeyPatch, *channels: str, **chosen: object) -> HostMeter:
        """A meter of this machine alone."""
        monkeypatch.setattr(host, "FAMILIES", {"made": lambda: self.look()})
        return HostMeter(channels, period_s=10.0, clock=self.clock, wait=self.wait, **chosen)


def test_a_host_has_the_usual_channels() -> None:
    """Wherever psutil runs, these can be read, twice, as finite numbers of a usable size."""
    usual = ("cpu.percent", "cpu.0.percent", "load.1", "mem.percent", "swap.percent")
    machine = Machine(rows=2)
    meter = HostMeter((*usual, "net.rx_Bps"), period_s=1.0, clock=machine.clock, wait=machine.wait)
    meter.read(machine.hand, machine.stop)
    rows = np.concatenate(machine.got)

    assert rows.shape == (2, 6)
    assert np.isfinite(rows).all()
    assert (rows >= 0).all()
    assert set(usual) <= set(channel_names())


def test_an_unknown_channel_is_refused_with_all_that_there_are() -> None:
    """The nearest comes first."""
    with pytest.raises(UsageError) as caught:
        HostMeter(("load.1", "cpu.precent"), period_s=1.0)
    message = str(caught.value)

    assert "got 'cpu.precent': did you mean 'cpu.percent'? it has cpu.percent, " in message
    assert "mem.percent" in message
    assert "\n" not in message


@pytest.mark.parametrize("period", [0, -1, np.inf, np.nan])
def test_a_period_is_a_time(period) -> None:
    """Zero would be a busy loop."""
    with pytest.raises(UsageError, match="period_s must be a time in seconds, above 0"):
        HostMeter(("load.1",), period_s=period)


def test_rows_come_every_period_in_the_schemas_order(monkeypatch) -> None:
    """Rates are what the total grew by, a second; levels are as they are."""
    machine = Machine(rows=3)
    machine.meter(monkeypatch, "made.up_Bps", "made.level").read(machine.hand, machine.stop)

    np.testing.assert_array_equal([[1000, 60], [1000, 70], [1000, 80]], np.concatenate(machine.got))


def test_a_total_that_begins_anew_is_a_gap(monkeypatch) -> None:
    """A card that was unplugged has not sent a negative number of bytes."""
    machine = Machine(rows=3)
    meter = machine.meter(monkeypatch, "made.up_Bps")

    def hand(rows: np.ndarray) -> None:
        machine.hand(rows)
        if len(machine.got) == 1:
            machine.total = 0.0

    machine.total = 1e9
    meter.read(hand, machine.stop)

    np.testing.assert_array_equal([[1000], [np.nan], [1000]], np.concatenate(machine.got))


def test_what_cannot_be_read_for_a_while_is_a_gap(monkeypatch) -> None:
    """It is counted and noted, and comes back."""
    machine, notes = Machine(rows=3), []
    meter = machine.meter(
        monkeypatch, "made.level", note=lambda what, /, **facts: notes.append((what, facts))
    )

    def look() -> dict[str, float]:
        if machine.now == 70:
            raise OSError("bus busy")
        return {"made.level": machine.now}

    machine.look = look
    meter.read(machine.hand, machine.stop)

    np.testing.assert_array_equal([[60], [np.nan], [80]], np.concatenate(machine.got))
    assert {"failed": 1, "missing": 1, "skipped": 0} == meter.counts
    facts = {"level": "info", "failed": 1, "channels": "made", "error": "bus busy"}
    assert [("cannot be read", facts)] == notes


def test_a_node_that_falls_behind_skips_rows(monkeypatch) -> None:
    """Rows keep their beat, and those that were missed are counted, not made up."""
    machine = Machine(rows=3)
    meter = machine.meter(monkeypatch, "made.level")

    def hand(rows: np.ndarray) -> None:
        machine.hand(rows)
        machine.now += 25 if len(machine.got) == 1 else 0

    meter.read(hand, machine.stop)

    np.testing.assert_array_equal([[60], [90], [100]], np.concatenate(machine.got))
    assert meter.counts["skipped"] == 2


def test_temperatures_are_named_by_chip_and_label(monkeypatch) -> None:
    """A lone sensor needs no label, and a host without any has no family of that name."""
    read = {
        "cpu_thermal": [Warmth("", 48.0)],
        "coretemp": [Warmth("Core 0", 50.0), Warmth("", 51.0)],
    }
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: read, raising=False)
    expected = {"cpu_thermal": 48, "coretemp.core_0": 50, "coretemp.1": 51, "max": 51}

    assert {f"temp.{name}": value for name, value in expected.items()} == host._temp()
    monkeypatch.setattr(psutil, "sensors_temperatures", dict, raising=False)
    assert {} == host._temp()
