"""From a broker's first messages to an alarm: nothing is written by hand, on a virtual clock.

`submerge init --yes` hears a minute of a household, `submerge up` grows with the devices that speak
later, and a fault on one of them raises an alarm that names its device and field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner

from submerge_operate.init import command, mqtt
from submerge_operate.init.devices import Hearing
from submerge_operate.up.config import BoxConfig, load
from submerge_operate.up.newcomers import ACCEPTED, Looking, newcomers_of, read
from support.zigbee import BASE, DAY_S, MINUTE_S, NEW, NEW_NAME, Household
from support.zigbee_box import VirtualBox, named
from support.zigbee_faults import Fault, with_fault

pytestmark = pytest.mark.soak  # eight virtual days: five minutes

FAULT = Fault("jumps", "bedroom", "temperature", 5.0)
BEGINS, ENDS = 7.6 * DAY_S, 7.8 * DAY_S


@dataclass
class Heard:
    """What the sensor of a virtual box has heard beside its channels."""

    box: VirtualBox

    @property
    def newcomers(self) -> tuple[Any, ...]:
        listed = self.box.client.current.schema.names
        return tuple(self.box.sensor.decoder.heard.copies(lambda name: name not in listed))


def proposed(folder, monkeypatch, messages) -> BoxConfig:
    """What `submerge init --yes` writes after it has heard these messages."""

    def hear(_: Any, topics: Any, **__: Any) -> Hearing:
        hearing = Hearing(topics)
        for message in messages:
            if message.retained:
                hearing.describe(message.topic, message.payload)
        hearing.begin()
        for message in messages:
            if not message.retained:
                hearing.take(message.topic, message.payload, retained=False)
        return hearing

    monkeypatch.chdir(folder)
    monkeypatch.setattr(mqtt, "hear", hear)
    options = ("--from", "mqtt://localhost", "--topics", f"{BASE}/#", "--yes", "--node", "home")
    result = CliRunner().invoke(command.command, options, catch_exceptions=False)
    assert 0 == result.exit_code, result.output
    return load(folder / "box.toml", {})


def test_a_fault_is_named_by_a_machine_that_nothing_was_typed_for(tmp_path, monkeypatch):
    """Devices join as they speak; what is counted adds up."""
    heard = list(Household(1, ENDS / DAY_S, new_on=1.0, renamed_on=2.0).messages())
    config = proposed(tmp_path, monkeypatch, [m for m in heard if m.time < MINUTE_S])
    at_first = set(config.schema.names)
    heard = with_fault(heard, FAULT, BEGINS)
    box = VirtualBox(config, step_s=300.0)
    looking = Looking(tmp_path, lambda: newcomers_of(Heard(box)), discover=True, now=0.0)
    grown = list[float]()
    coming, now = iter([*heard, None]), 0.0
    message = next(coming)
    while now < ENDS:
        now += 300.0
        due = []
        while message is not None and message.time <= now:
            due.append(message)
            message = next(coming)
        box.hear(due, now)
        looking.look(now)
        if looking.grows:
            grown.append((now / DAY_S, [each.name for each in read(tmp_path / ACCEPTED)][-3:]))
            accepted = read(tmp_path / ACCEPTED)
            more = config.with_channels(each.channel for each in accepted)
            box = VirtualBox(more, step_s=300.0, before=box)
            looking = Looking(
                tmp_path, lambda box=box: newcomers_of(Heard(box)), discover=True, now=now
            )
    channels = set(box.client.current.schema.names)

    assert at_first < channels
    assert {f"{each}/temperature" for each in (NEW, NEW_NAME)} < channels
    assert len(grown) <= 6
    assert not {name for name in channels if name.endswith(("linkquality", "battery", "energy"))}
    counts = box.root.ledger("box").counts()
    assert (box.rows, 0) == (counts.learnt + counts.withheld, counts.lost)
    # By limits that keep what was promised.
    raised = box.raised(BEGINS)
    assert [f"{FAULT.device}/{FAULT.field}"] == [named(alarm) for alarm in raised]
