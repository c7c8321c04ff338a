"""A household behind Zigbee2MQTT: false alarms, and which faults are found.

Twelve devices speak once in one to ten minutes, or when something changes: thermometers, contacts,
plugs, a light and motion sensor, a thermostat. Weather, a daily rhythm and people move them. Their
messages go through the MQTT sensor, a client and its root with the defaults of `submerge up`, on a
virtual clock. *Measured* are the fields that these causes move; *every number* adds batteries,
radio links and energy counters, which `--everything` takes as channels.

An alarm is *false* if it was raised without a fault, by limits that are more than provisional; the
default promises one in a week. A fault begins after two weeks and lasts two days; it is *found* if
an alarm names its device and field first, after so many *hours* in the median; *device* counts runs
in which alarms only named another field of that device. *Others* are alarms in these two days that
name another device first. A device that says nothing is a gap, and raises no alarm; the log says
so. Rows are read five minutes at a time.

With `--again`, which takes the place of these tables, each fault begins after some hours of a new
household, lasts twenty minutes, and comes again an hour later, three times; rows are read a minute
at a time. A break is *shown* if a reading of it is off by what a person would notice (20 W: a
fridge that is off draws as little when it is broken). It is *found* if an alarm of any kind that
names its device and field first, provisional or not, begins in it, or still is open from the break
before. *Raised* are the alarms of the household before that and without a fault.
"""

from __future__ import annotations

import copy
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import blas
from alarms import seeds_of
from page import document
from report import Table
from submerge.protocol.alarm_status import BESIDE, Alarm
from submerge_client.sensors.mqtt.readings import SILENT
from support.zigbee import BASE, DAY_S, HOUR_S, Household
from support.zigbee_box import BEGAN, VirtualBox, box_config, channels, named
from support.zigbee_faults import FAULTS, Fault, with_fault

BEGINS, LASTS, WEEKS = 14.6, 2.0, 4
"""Days until a fault, and of it; weeks without one."""

STEP_S = 300.0
"""Rows of so much time are read at once, to save time; an alarm is up to that much later."""

SETTLED = 3.0
"""Days until limits are promised."""


AGAIN = (
    *(fault for fault in FAULTS if fault.kind in ("jumps", "times", "zero")),
    Fault("jumps", "study", "temperature", 5.0),
    Fault("jumps", "kitchen", "humidity", -20.0),
)
BROKEN_S, HOURS = 1200.0, (2, 5, 9, 30, 130)


class Quiet(NamedTuple):
    """What a household without a fault gave.

    false : the channel that each false alarm named first, and its cause
    """

    seed: int
    channels: int
    weeks: float
    false: list[str]


class Found(NamedTuple):
    """What became of a fault.

    hours : until it was found; None if it was not
    device : whether an alarm named its device first, with another field, and it was not found
    others : alarms that named another device first
    """

    fault: Fault
    hours: float | None
    device: bool
    others: int


def quiet(seed: int, weeks: int, everything: bool) -> Quiet:
    """Let a household live without a fault."""
    names, days = channels(everything=everything), 7.0 * weeks
    box = VirtualBox(box_config(names), seed=seed, step_s=STEP_S)
    box.hear(Household(seed, days).messages(), days * DAY_S)
    false = [f"{named(alarm)} ({alarm.cause})" for alarm in box.raised()]
    return Quiet(seed, len(names), (days - SETTLED) / 7, false)


def faults(seed: int, everything: bool) -> list[Found]:
    """Let each fault happen to the same household."""
    begins, ends = BEGINS * DAY_S, (BEGINS + LASTS) * DAY_S
    heard = list(Household(seed, BEGINS + LASTS).messages())
    later = [message for message in heard if message.time >= begins]
    box = VirtualBox(box_config(channels(everything=everything)), seed=seed, step_s=STEP_S)
    box.hear(heard[: len(heard) - len(later)], begins)
    return [_found(copy.deepcopy(box), fault, later, begins, ends) for fault in FAULTS]


def _found(box: VirtualBox, fault: Fault, later: list, begins: float, ends: float) -> Found:
    box.hear(with_fault(later, fault, begins), ends)
    raised = box.raised(begins)
    ours = [alarm.began - BEGAN for alarm in raised if named(alarm) in fault.channels]
    if fault.kind == "silent":
        ours = [
            at
            for at, remark in box.sensor.remarks
            if at > begins and (remark.what, remark.facts["device"]) == (SILENT, fault.device)
        ]
    devices = [named(alarm).partition("/")[0] == fault.device for alarm in raised]
    hours = (ours[0] - begins) / HOUR_S if ours else None
    return Found(fault, hours, any(devices) and not ours, devices.count(False))


class Again(NamedTuple):
    """Which of three breaks of each fault were shown, and found; and alarms without a fault."""

    shown: list[list[bool]]
    found: list[list[bool]]
    raised: list[Alarm]


def again(seed: int, hour: int) -> Again:
    """Break each device of a new household three times, an hour apart."""
    start, heard = hour * HOUR_S, list(Household(seed, (hour + 4) / 24).messages())
    box = VirtualBox(box_config(channels()), seed=seed)
    box.hear([message for message in heard if message.time < start], start)
    every = {
        channel.name: channel.step or 0.0 for channel in box_config(channels()).schema.channels
    }
    result = Again([], [], [each for each in box.alarms.values() if each.cause not in BESIDE[:2]])
    for fault in AGAIN:
        broken, shown, found = copy.deepcopy(box), list[bool](), list[bool]()
        for begins in (start, start + HOUR_S, start + 2 * HOUR_S):
            ends = begins + BROKEN_S
            part = [m for m in heard if begins <= m.time < begins + HOUR_S]
            before = [m for m in part if m.time < ends]
            wrong = list(with_fault(before, fault, begins))
            off = [
                abs(json.loads(w.payload)[fault.field] - json.loads(m.payload)[fault.field])
                for m, w in zip(before, wrong, strict=True)
                if m.topic == f"{BASE}/{fault.device}"
            ]
            least = every[f"{fault.device}/{fault.field}"]
            shown.append(max(off, default=0.0) >= least)
            broken.hear(wrong, ends + 60)
            ours = [a for a in broken.alarms.values() if named(a) in fault.channels]
            found.append(
                any(a.is_open or a.began >= BEGAN + begins for a in ours if a.cause != "silent")
            )
            broken.hear([m for m in part if m.time >= ends + 60], begins + HOUR_S)
        result.shown.append(shown)
        result.found.append(found)
    return result


def _again_table(runs: list[Again], seeds: list[int], hour: int) -> Table:
    rows = list[tuple[object, ...]]()
    for i, fault in enumerate(AGAIN):
        shown = [sum(run.shown[i][k] for run in runs) for k in range(3)]
        found = [sum(run.shown[i][k] and run.found[i][k] for run in runs) for k in range(3)]
        rows.append((fault.text, *shown, *found))
    told = sum(not alarm.provisional for run in runs for alarm in run.raised)
    raised = sum(len(run.raised) for run in runs)
    head = f"From hour {hour} of {len(seeds)} households; raised {raised}, told {told}"
    columns = {"fault": ""} | dict.fromkeys(("shown 1st", "2nd", "3rd"), "d")
    columns |= dict.fromkeys(("found 1st", "found 2nd", "found 3rd"), "d")
    return Table(head, columns, rows)


def _quiet_table(runs: list[Quiet], what: str) -> Table:
    rows = [
        (
            *(run.seed, run.channels, run.weeks, len(run.false), len(run.false) / run.weeks),
            ", ".join(f"{n} x {name}" for name, n in Counter(run.false).most_common()),
        )
        for run in runs
    ]
    columns = {"seed": "d", "channels": "d", "weeks": ".1f", "false": "d", "a week": ".1f"}
    return Table(f"False alarms: {what}", columns | {"named first (cause)": ""}, rows)


def _fault_table(runs: list[list[Found]], what: str) -> Table:
    rows = list[tuple[object, ...]]()
    for each in zip(*runs, strict=True):
        hours = sorted(found.hours for found in each if found.hours is not None)
        middle = hours[len(hours) // 2] if hours else None
        text = each[0].fault.text + (" (said in the log)" if not each[0].fault.field else "")
        device, others = (sum(getattr(found, of) for found in each) for of in ("device", "others"))
        rows.append((text, len(each), len(hours), middle, device, others))
    columns = {"fault": "", "runs": "d", "found": "d", "hours": ".1f", "device": "d", "others": "d"}
    return Table(f"Faults: {what}", columns, rows)


@click.command(help=__doc__)
@click.option("--seeds", default="1-3", show_default=True, help="Such as 3, or 100-104.")
@click.option("--weeks", default=WEEKS, show_default=True, help="Without a fault.")
@click.option("--everything", is_flag=True, help="Take every number as a channel, too.")
@click.option("--again", "repeated", is_flag=True, help="Break each device three times instead.")
@click.option("--processes", default=1, show_default=True, help="Runs at the same time.")
def main(seeds: str, weeks: int, everything: bool, repeated: bool, processes: int) -> None:
    """Run it, and print the page."""
    pools, numbers = blas.check(), seeds_of(seeds)
    tables = list[Table]()
    with ProcessPoolExecutor(processes) as pool:
        for hour in HOURS if repeated else ():
            broken = list(pool.map(again, numbers, [hour] * len(numbers)))
            tables.append(_again_table(broken, numbers, hour))
        kinds = ((False, "what is measured"), (True, "every number"))[: 1 + everything]
        for each, what in () if repeated else kinds:
            alike = [each] * len(numbers)
            runs = list(pool.map(quiet, numbers, [weeks] * len(numbers), alike))
            tables.append(_quiet_table(runs, what))
            tables.append(_fault_table(list(pool.map(faults, numbers, alike)), what))
    click.echo(document(sys.modules[__name__], " ".join(sys.argv[1:]), tables, pools))


if __name__ == "__main__":
    main()
