"""What is said of devices that come, go, or get another name."""

from __future__ import annotations

import numpy as np

from submerge_client.sensors.mqtt import readings as module
from submerge_client.sensors.mqtt.decoder import MOST_NAMES, Heard
from submerge_client.sensors.mqtt.readings import (
    AT_ONCE,
    MOST_FIELDS,
    NEW,
    RENAMED,
    SILENT,
    SPEAKS,
    Comings,
)

CHANNELS = ("study/temperature", "study/humidity", "bath/temperature")
FIELDS = ("temperature", "humidity", "battery")


class Telling:
    """A household whose devices speak each two minutes, and what is said of them."""

    def __init__(self) -> None:
        self.heard, self.comings, self.now = Heard(), Comings(CHANNELS), 0.0
        self.absent = np.zeros(len(CHANNELS), dtype=bool)
        self.said = list[tuple[str, object]]()
        self.facts = list[dict[str, object]]()
        self.levels = dict[str, str]()

    def pass_time(self, minutes: int, *devices: str, fields: tuple[str, ...] = FIELDS) -> None:
        for _ in range(0, minutes, 2):
            self.now += 120.0
            for device in devices:
                for field in fields:
                    self.heard.add(f"{device}/{field}", self.now % 7, self.now, unit="K")
            for what, facts, level in self.comings.remarks(
                self.heard.fields, self.absent, self.now
            ):
                self.said.append((what, facts["device"]))
                self.facts.append(facts)
                self.levels[what] = level


def test_a_new_device_is_announced_once_when_its_rate_is_known() -> None:
    """With its fields, their units and ranges."""
    house = Telling()
    house.pass_time(6, "study", "bath", "attic")
    early = list(house.said)
    house.pass_time(60, "study", "bath", "attic")

    assert ([], [(NEW, "attic")]) == (early, house.said)
    assert "temperature [K] 1 to 4, every 2 min" in str(house.facts)


def test_a_renamed_device_looks_like_the_one_that_went() -> None:
    """Once that has been silent for three times as long as usual."""
    house = Telling()
    house.pass_time(60, "study", "bath")
    house.pass_time(4, "bath", "office")
    early = list(house.said)
    house.pass_time(60, "bath", "office")

    assert ([], [(RENAMED, "office")]) == (early, house.said)
    assert "study" == house.facts[0]["looks_like"]
    assert house.facts[0]["todo"].startswith("call it study again, or write office for study")


def test_a_new_device_beside_the_others_is_no_renamed_one() -> None:
    """The one that it looks like still speaks."""
    house = Telling()
    house.pass_time(60, "study", "bath")
    house.pass_time(20, "study", "bath", "office")

    assert [(NEW, "office")] == house.said


def test_a_device_that_is_silent_as_it_often_is_has_no_new_name() -> None:
    """The thermometer in the bath speaks when something changes."""
    house = Telling()
    for _ in range(3):
        house.pass_time(40, "study")
        house.pass_time(20, "study", "bath")
    house.pass_time(30, "study", "attic")
    early = list(house.said)
    house.pass_time(10, "study", "bath", "attic")

    assert ([], [(NEW, "attic")]) == (early, house.said)


def test_a_message_that_was_lost_makes_no_new_name() -> None:
    """A device is gone after three of its silences, not after the longest so far."""
    house = Telling()
    for _ in range(6):
        house.pass_time(8)
        house.pass_time(2, "study")
    house.pass_time(18, "attic")
    early = list(house.said)
    house.pass_time(2, "study", "attic")

    assert ([], [(NEW, "attic")]) == (early, house.said)


def test_an_announcement_waits_no_longer_than_an_hour() -> None:
    """For a device that speaks once in two."""
    house = Telling()
    for _ in range(3):
        house.pass_time(118)
        house.pass_time(2, "study")
    house.pass_time(58, "attic")
    early = list(house.said)
    house.pass_time(8, "attic")

    assert ([], [(NEW, "attic")]) == (early, house.said)


def test_of_several_that_are_gone_it_is_the_one_that_was_heard_last() -> None:
    """The other broke long ago."""
    house = Telling()
    house.pass_time(60, "study", "bath")
    house.pass_time(60, "bath")
    house.pass_time(20, "office")

    assert [(RENAMED, "office")] == house.said
    assert "bath" == house.facts[0]["looks_like"]


def test_two_readings_do_not_make_a_rate() -> None:
    """However far apart they are."""
    house = Telling()
    for _ in range(2):
        house.pass_time(2, "attic")
        house.pass_time(8)
    early = list(house.said)
    house.pass_time(2, "attic")

    assert ([], [(NEW, "attic")]) == (early, house.said)


def test_of_many_fields_a_few_are_listed() -> None:
    """A line is for people."""
    house = Telling()
    house.pass_time(10, "attic", fields=tuple(f"f{i}" for i in range(2 * MOST_FIELDS)))
    (facts,) = house.facts

    assert MOST_FIELDS + 1 == len(facts["fields"])


def test_a_device_with_other_fields_is_no_renamed_one() -> None:
    """Another kind of device took its place."""
    house = Telling()
    house.pass_time(60, "study", "bath")
    house.pass_time(20, "plug", fields=("power",))

    assert [(NEW, "plug")] == house.said


def test_a_device_is_not_two_devices_under_new_names() -> None:
    """The second one that looks like it is new."""
    house = Telling()
    house.pass_time(60, "study", "bath")
    house.pass_time(60, "bath", "office")
    house.pass_time(20, "bath", "office", "cellar")

    assert [(RENAMED, "office"), (NEW, "cellar")] == house.said


def test_a_silence_is_said_once_and_its_end_as_well() -> None:
    """When all channels of the device are gaps; one that never had a value is not silent."""
    house = Telling()
    house.absent[2] = True
    house.pass_time(60, "study")
    house.absent[:] = (True, False, True)
    house.pass_time(10)
    partly = list(house.said)
    house.absent[:] = True
    house.pass_time(10, "bath")
    house.absent[:] = (False, False, True)
    house.pass_time(10, "study")

    assert [] == partly
    assert {SILENT: "warning", SPEAKS: "info"} == house.levels
    assert [(SILENT, "study"), (SPEAKS, "study")] == house.said


def test_a_flood_of_names_is_announced_a_few_at_a_time() -> None:
    """Each once, as long as the names are remembered."""
    house = Telling()
    many = [f"d{i}" for i in range(MOST_NAMES)]
    house.pass_time(8, *many, fields=("x",))
    first = len(house.said)
    house.pass_time(2 * (MOST_NAMES // AT_ONCE), *many[:1], fields=("x",))

    assert AT_ONCE == first
    assert MOST_NAMES == len(house.said) == len(set(house.said))


def test_a_look_at_many_new_devices_holds_each_against_the_schema_once(monkeypatch) -> None:
    """Meanwhile no message is read: names of a whole network must not take seconds."""
    looks, last_s = list[int](), module._last_s
    monkeypatch.setattr(module, "_last_s", lambda fields: looks.append(1) or last_s(fields))
    heard, channels = Heard(), [f"d{i}/t" for i in range(400)]
    for name in channels:
        heard.add(name, 1.0, 0.0)
    for i in range(MOST_NAMES - 400):
        for k in range(4):
            heard.add(f"new{i}/t", float(k), 100.0 + 200.0 * k)

    Comings(channels).remarks(heard.fields, np.zeros(400, dtype=bool), 800.0)
    assert len(looks) < 2 * MOST_NAMES
