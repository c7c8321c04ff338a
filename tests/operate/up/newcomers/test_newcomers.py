"""Fields that are new: what is known of them, who accepts them, and when a machine begins again."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from msgspec.structs import replace

from submerge import UsageError
from submerge_client.sensors.mqtt.decoder import MOST_NAMES, Heard
from submerge_operate.init.proposal import MOST_CHANNELS
from submerge_operate.up.config import BoxConfig
from submerge_operate.up.newcomers import (
    ACCEPTED,
    CONSTANT,
    EARLY,
    FIRST_S,
    HEARD,
    KEEP_S,
    LONGEST_S,
    Looking,
    Pace,
    accept,
    newcomers_of,
    read,
)


class Ears:
    """A sensor that hears fields, each once in a minute."""

    def __init__(self, **values):
        self._values, self._heard, self._minutes = values, Heard(), 0

    def hear(self, minutes):
        for _ in range(minutes):
            self._minutes += 1
            for name, value in self._values.items():
                self._heard.add(name.replace("_", "/"), value(self._minutes), 60.0 * self._minutes)
        return self

    @property
    def newcomers(self):
        return tuple(self._heard.copies(lambda _: True))


def ears(minutes=60):
    """A plug whose power changes, a constant, and two fields that are no measurements."""
    return Ears(
        plug_power=lambda m: 40.0 + m % 7,
        plug_voltage=lambda _: 230.0,
        plug_linkquality=lambda m: 100.0 + m % 3,
        plug_energy=lambda m: 0.1 * m,
    ).hear(minutes)


def config(folder, *, channels='["a"]', exclude="[]", scaling="fleet", top=""):
    path = folder / "box.toml"
    path.write_text(
        f"""
node = "desk"
folder = "{folder}"
{top}
[sensor]
kind = "mqtt"
url = "mqtt://localhost"
insecure = true
topics = ["t/+"]
exclude = {exclude}
[schema]
channels = {channels}
scaling = "{scaling}"
"""
    )
    from submerge_operate.up.config import load

    return load(path, {})


def looking(folder, sensor, *, discover, now=0.0):
    return Looking(folder, lambda: newcomers_of(sensor), discover=discover, now=now)


def accepted(folder):
    return [each.name for each in read(folder / ACCEPTED)]


def test_what_only_rounding_changes_is_constant():
    """A channel with such a scale would make each row too large at its first real change."""
    sensor = Ears(bath_temperature=lambda m: 21.3 if m % 2 else 21.299999999999997).hear(60)
    (field,) = newcomers_of(sensor)
    assert CONSTANT == field.why_not


def test_what_was_heard_says_whether_it_can_be_a_channel():
    """A measurement with enough readings; its mean and deviation are those of the readings."""
    found = {each.name: each for each in newcomers_of(ears())}
    power, early = found["plug/power"], {each.name: each for each in newcomers_of(ears(20))}

    assert ("", 60, 60.0) == (power.why_not, power.readings, power.every_s)
    readings = [40.0 + m % 7 for m in range(1, 61)]
    assert sum(readings) / 60 == pytest.approx(power.offset)
    assert 2.0 == pytest.approx(power.scale, abs=0.05)
    assert CONSTANT == found["plug/voltage"].why_not
    assert found["plug/linkquality"].why_not
    assert found["plug/energy"].why_not
    assert EARLY == early["plug/power"].why_not
    assert [] == newcomers_of(object())


def test_a_machine_that_discovers_accepts_what_can_be_a_channel(tmp_path):
    """After half an hour, and then at twice the time each; never what is no measurement."""
    look = looking(tmp_path, ears(), discover=True)
    look.look(FIRST_S - 1)
    assert not look.grows
    look.look(FIRST_S)

    assert look.grows
    assert ["plug/power"] == accepted(tmp_path)
    again = looking(tmp_path, ears(), discover=True, now=FIRST_S)
    again.look(2 * FIRST_S)
    assert not again.grows


def test_new_devices_are_taken_together_and_at_most_once_a_day(tmp_path):
    """Each change makes limits provisional again."""
    late = Ears(lamp_power=lambda m: float(m % 5))
    look = looking(tmp_path, late, discover=True)
    times, now = [], 0.0
    while now < 8 * LONGEST_S:
        now += 60.0
        before = look._accept_at
        look.look(now)
        times += [now] if look._accept_at != before else []
    waits = [after - before for before, after in itertools.pairwise(times)]

    assert FIRST_S == times[0]
    assert sorted(waits) == waits
    assert LONGEST_S == waits[-1]


def test_without_discover_a_person_accepts(tmp_path):
    """What was heard is on disk; what fits the pattern joins, and the machine begins again."""
    look = looking(tmp_path, ears(), discover=False)
    look.look(FIRST_S)
    assert not look.grows
    said = []
    accept(config(tmp_path), ["plug/*"], said.append)

    assert ["plug/power", "plug/linkquality", "plug/energy"] == accepted(tmp_path)
    assert any("plug/power: accepted" in line for line in said)
    assert any("constant" in line for line in said)
    look.look(FIRST_S + 60)
    assert look.grows


@pytest.mark.parametrize(
    ("minutes", "pattern", "expected"),
    [
        (60, "lamp/*", "heard: plug/power"),
        (60, "plug/voltage", CONSTANT),
        (60, "plug/secret", "include and exclude in .sensor. let through, got plug/secret"),
        (0, "x", "nothing new"),
    ],
)
def test_what_cannot_be_accepted_is_one_line(tmp_path, minutes, pattern, expected):
    """Nothing is written."""
    look = looking(tmp_path, ears(minutes), discover=False)
    look.look(FIRST_S)
    with pytest.raises(UsageError, match=expected) as refused:
        accept(config(tmp_path, exclude='["*/secret"]'), [pattern], lambda _: None)

    assert "\n" not in str(refused.value)
    assert [] == accepted(tmp_path)


def test_a_person_who_says_yes_does_not_wait(tmp_path):
    """A field of one minute joins, with a scale that its few readings do not make small."""
    look = looking(tmp_path, ears(1), discover=False)
    look.look(FIRST_S)
    said = []
    accept(config(tmp_path), ["plug/power"], said.append)

    (field,) = read(tmp_path / ACCEPTED)
    assert ("plug/power", 41.0, pytest.approx(4.1)) == (field.name, field.offset, field.scale)
    assert "plug/power: accepted, with 4.1 for its scale, a first guess" in said


@pytest.mark.parametrize(
    ("discover", "at", "joins"),
    [
        (True, 0.0, "in 32 min by itself, if it changes; at once by submerge up --accept NAME"),
        (True, 60.0, "in 31 min by itself, if it changes; at once by submerge up --accept NAME"),
        (True, 180.0, "in 93 min by itself, if it changes; at once by submerge up --accept NAME"),
        (False, 0.0, "at once by submerge up --accept NAME"),
    ],
)
def test_the_log_says_when_a_new_field_joins(tmp_path, caplog, discover, at, joins):
    """Once; and nothing of what is no measurement."""
    look = looking(tmp_path, ears(), discover=discover)
    for seconds in (at, at + 1):
        look.look(seconds)

    (line,) = [each for each in caplog.records if each.getMessage() == "new fields"]
    assert {"names": "plug/power, plug/voltage", "joins": joins} == line.facts


def test_what_an_earlier_process_heard_is_not_forgotten(tmp_path):
    """A restart hears from zero; the file keeps what has more readings."""
    looking(tmp_path, ears(60), discover=False).look(FIRST_S)
    later = looking(tmp_path, ears(3), discover=False)
    later.look(KEEP_S)
    known = {each.name: each.readings for each in read(tmp_path / HEARD)}

    assert 60 == known["plug/power"]


def test_a_new_field_can_be_accepted_a_minute_after_it_was_announced(tmp_path):
    """What was heard is kept sooner than usual then, and else as seldom as ever."""
    heard = newcomers_of(ears(60))
    look = Looking(tmp_path, lambda: now_heard, discover=False, now=0.0)
    now_heard = heard[:1]
    look.look(60.0)
    now_heard = heard[:2]
    look.look(120.0)
    assert heard[:2] == list(read(tmp_path / HEARD))

    now_heard = [replace(heard[0], readings=999), heard[1]]
    look.look(180.0)
    assert heard[:2] == list(read(tmp_path / HEARD))


def test_accepted_channels_join_the_configuration(tmp_path):
    """With their scaling; without those that it has by now, or that its sensor excludes."""
    looking(tmp_path, ears(), discover=True).look(FIRST_S)
    new = [each.channel for each in read(tmp_path / ACCEPTED)]
    grown = config(tmp_path).with_channels(new)

    assert ("a", "plug/power") == grown.schema.names
    assert {"plug/power"} == grown.schema.given.keys()
    plain = config(tmp_path, scaling="none").with_channels(new)
    assert {} == plain.schema.given
    units = config(tmp_path, scaling="units").with_channels(new)
    assert (0.0, 20.0) == units.schema.given["plug/power"]
    listed = config(tmp_path, channels='["a", "plug/power"]')
    assert ("a", "plug/power") == listed.with_channels(new).schema.names
    without = config(tmp_path, exclude='["plug/*"]')
    assert ("a",) == without.with_channels(new).schema.names


def test_a_damaged_file_is_one_line(tmp_path):
    """At a start it stops; in a running program it is said, and nothing else happens."""
    look = looking(tmp_path, ears(), discover=False)
    (tmp_path / ACCEPTED).write_bytes(b"{")
    look.look(FIRST_S)

    assert not look.grows
    with pytest.raises(UsageError, match=r"channels\.json: expected JSON of channels"):
        looking(tmp_path, ears(), discover=False)
    (tmp_path / ACCEPTED).write_bytes(b'{"form": 2, "channels": []}')
    with pytest.raises(UsageError, match="form 2"):
        read(tmp_path / ACCEPTED)


def test_only_a_sensor_that_hears_devices_discovers(tmp_path):
    """One line at the start, and not a setting that does nothing."""
    assert config(tmp_path, top="discover = true").discover
    with pytest.raises(UsageError, match="discover"):
        BoxConfig(**_host(discover=True))
    assert not BoxConfig(**_host(discover=False)).discover


def _host(**settings):
    from submerge_client.config.schemas import SchemaConfig
    from submerge_client.config.sensors import HostSensor

    return {
        "node": "desk",
        "sensor": HostSensor(),
        "schema": SchemaConfig(channels=("load.1", "load.5")),
        **settings,
    }


def test_a_machine_that_has_begun_again_goes_on_waiting_for_longer(tmp_path):
    """Else a device with a new name each half hour would keep limits provisional for ever."""
    pace, now, waits = Pace(), 0.0, []
    for i in range(9):
        sensor = Ears(**{f"plug{i}_power": lambda m: 40.0 + m % 7}).hear(60)
        heard, begun = partial(newcomers_of, sensor), now
        look = Looking(tmp_path, heard, discover=True, now=now, pace=pace)
        while not look.grows:
            now += 120.0
            look.look(now)
        waits.append(now - begun)

    assert waits[:3] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S]
    assert LONGEST_S == waits[-1]


def test_names_from_the_network_are_bounded_on_disk_and_in_the_schema(tmp_path):
    """Each beginning hears other names; those of now stay."""
    for i in range(3):
        values = {f"d{i}x{j}_power": lambda m: float(m % 7) for j in range(900)}
        look = looking(tmp_path, Ears(**values).hear(32), discover=True)
        look.look(FIRST_S)

    names = [each.name for each in read(tmp_path / HEARD)]
    assert MOST_NAMES == len(names)
    assert {f"d2x{j}/power" for j in range(900)} <= set(names)
    assert MOST_CHANNELS == len(accepted(tmp_path))
