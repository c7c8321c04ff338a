"""A box that reads a household behind Zigbee2MQTT, in virtual time: its remarks and alarms."""

from __future__ import annotations

import copy
import itertools
import json
from collections import defaultdict

import numpy as np
import pytest
from msgspec.structs import replace

from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.sensors.mqtt.readings import NEW, RENAMED, SILENT, SPEAKS
from support.zigbee import BASE, DAY_S, DEVICES, HOUR_S, NEW_NAME, Household
from support.zigbee import NEW as ATTIC
from support.zigbee import RENAMED as STUDY
from support.zigbee_box import VirtualBox, VirtualSensor, box_config, channels, named
from support.zigbee_faults import Fault, with_fault


def test_the_household_is_as_it_says() -> None:
    """Twelve devices, each in its rhythm; the same seed gives the same messages."""
    first, again = (list(Household(1, 2).messages()) for _ in range(2))
    times = defaultdict(list)
    for message in first:
        if not message.retained:
            times[message.topic.removeprefix(f"{BASE}/")].append(message.time)
    rhythms = {
        device.name: np.median(np.diff(times[device.name])) / device.every_s
        for device in DEVICES
        if device.every_s
    }

    assert first == again
    assert first == sorted(first, key=lambda message: message.time)
    assert {device.name for device in DEVICES} == set(times)
    assert all(0.9 < rhythm < 1.1 for rhythm in rhythms.values())
    assert all(len(np.unique(np.diff(t).round())) > 20 for t in times.values())


def test_descriptions_name_the_new_device_and_the_renamed_one() -> None:
    """Once they are there."""
    house = Household(1, 2, new_on=0.5, renamed_on=1.0)
    told = [
        {each["friendly_name"] for each in json.loads(message.payload)}
        for message in house.messages()
        if message.retained
    ]

    assert [{STUDY}, {STUDY, ATTIC}, {NEW_NAME, ATTIC}] == [
        names & {STUDY, NEW_NAME, ATTIC} for names in told
    ]


@pytest.mark.parametrize("restarts", [False, True])
def test_the_first_score_comes_at_once_and_a_late_device_raises_no_alarm(restarts: bool) -> None:
    """Units say the scales. A garden that speaks after an hour lies a thousand hPa off nothing.

    Nor does it move the model: what lives before a restart have in its place is no reading.
    """
    heard = [
        message
        for message in Household(1, 2 * HOUR_S / DAY_S).messages()
        if not message.topic.endswith("/garden") or message.time > HOUR_S
    ]
    box = VirtualBox(box_config(channels()), step_s=10.0)
    box.hear((message for message in heard if message.time < 450), 450)

    assert box.scored > 0
    assert box.rows < 45
    box.hear((message for message in heard if 450 <= message.time < HOUR_S), HOUR_S)
    if restarts:
        box = VirtualBox(box_config(channels()), step_s=10.0, before=box)
    box.hear((message for message in heard if message.time >= HOUR_S), 2 * HOUR_S)
    assert box.client.model is not None
    model = box.client.model.scoring_summary.parts[-1]
    assert model.channel_energies is not None
    variance = model.channel_energies / model.weight
    assert variance[[name.startswith("garden") for name in channels()]].max() < 30.0
    assert [] == [alarm for alarm in box.alarms.values() if named(alarm).startswith("garden")]


def test_a_channel_without_a_known_unit_is_measured_and_no_other_waits() -> None:
    """Fifty rows are enough, though the garden says nothing."""
    config = box_config(channels())
    odd = tuple(
        ChannelConfig(name=each.name, unit="beats" if each.name == "fridge/power" else each.unit)
        for each in config.schema.tables
    )
    schema = SchemaConfig(channels=odd, scaling="units")
    box = VirtualBox(replace(config, schema=schema), step_s=10.0)
    heard = Household(1, 2 * HOUR_S / DAY_S).messages()
    box.hear((each for each in heard if not each.topic.endswith("/garden")), 2 * HOUR_S)

    assert box.client.current.schema.scaling is not None
    assert box.scored > 400


def test_the_log_says_which_devices_come_and_go() -> None:
    """One that is new, one under another name, and one that falls silent for a while."""
    sensor = VirtualSensor(box_config(channels(without=(ATTIC,))))
    heard = [
        message
        for message in Household(2, 1.5, new_on=0.4, renamed_on=0.8).messages()
        if message.topic != f"{BASE}/garden" or not 0.5 < message.time / DAY_S < 1.0
    ]
    coming = itertools.chain(heard, [None])
    message = next(coming)
    for now in np.arange(60.0, 1.5 * DAY_S, 60.0):
        while message is not None and message.time <= now:
            sensor.hear(message)
            message = next(coming)
        sensor.rows(now)
    said = [(remark.what, remark.facts["device"]) for _, remark in sensor.remarks]
    at = {each: time / DAY_S for (time, _), each in zip(sensor.remarks, said, strict=True)}

    once = ((NEW, ATTIC), (RENAMED, NEW_NAME), (SILENT, "garden"))

    assert [1, 1, 1] == [said.count(each) for each in once]
    assert 0.4 < at[NEW, ATTIC] < 0.45
    assert 0.8 < at[RENAMED, NEW_NAME] < 0.85
    assert 0.5 < at[SILENT, "garden"] < 0.6 < 1.0 <= at[SPEAKS, "garden"] < 1.05
    # None of the two contacts' fields is measured.
    assert {ATTIC, NEW_NAME, "front_door", "window"} == {
        device for what, device in said if what in (NEW, RENAMED)
    }


FAULTS = (
    Fault("jumps", "bedroom", "temperature", 5.0),
    Fault("sticks", "kitchen", "humidity"),
    Fault("zero", "radiator", "local_temperature"),
)


@pytest.mark.slow
def test_the_alarm_names_the_device_and_the_field() -> None:
    """After a week with the defaults of `submerge up`; a device is new, another renamed."""
    begins, ends = 7.6 * DAY_S, 7.8 * DAY_S
    heard = list(Household(1, ends / DAY_S, new_on=2.0, renamed_on=5.0).messages())
    later = [message for message in heard if message.time >= begins]
    box = VirtualBox(box_config(channels(without=(ATTIC,))), step_s=1800.0)
    box.hear(heard[: len(heard) - len(later)], begins)
    blamed = {}
    for fault in FAULTS:
        faulty = copy.deepcopy(box)
        faulty.hear(with_fault(later, fault, begins), ends)
        blamed[fault.text] = [named(alarm) for alarm in faulty.raised(begins)]

    assert len(box.raised()) <= 2  # the promise is one false alarm in a week
    assert {fault.text: [f"{fault.device}/{fault.field}"] for fault in FAULTS} == blamed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "hour", "fault"),
    [
        (1, 2, Fault("jumps", "bedroom", "temperature", 6.0)),
        (1, 2, Fault("zero", "radiator", "local_temperature")),
        # After a wrong start: an hour whose scores were taken for usual.
        (3, 2, Fault("zero", "bath", "humidity")),
    ],
    ids=str,
)
def test_a_thing_that_is_broken_three_times_is_noticed_three_times(
    seed: int, hour: int, fault: Fault
) -> None:
    """Twenty minutes each: by a provisional alarm of its own, whatever else is open."""
    heard = list(Household(seed, (hour + 3) * HOUR_S / DAY_S).messages())
    box = VirtualBox(box_config(channels()), step_s=30.0)
    box.hear((message for message in heard if message.time < hour * HOUR_S), hour * HOUR_S)
    for begins in (hour * HOUR_S, (hour + 1) * HOUR_S, (hour + 2) * HOUR_S):
        some, before = [m for m in heard if begins <= m.time < begins + HOUR_S], set(box.alarms)
        broken = [message for message in some if message.time < begins + 1200]
        box.hear(with_fault(broken, fault, begins), begins + 1200)
        new = [alarm for number, alarm in box.alarms.items() if number not in before]
        box.hear(some[len(broken) :], begins + HOUR_S)

        assert f"{fault.device}/{fault.field}" in {named(alarm) for alarm in new}
        assert all(alarm.provisional for alarm in new)
