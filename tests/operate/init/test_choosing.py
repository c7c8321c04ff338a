"""Which fields of a broker become channels, and what is said of the others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from submerge_client.sensors.mqtt.decoder import Heard
from submerge_client.sensors.mqtt.descriptions import DescribedField
from submerge_client.sensors.mqtt.topics import NamePatterns
from submerge_operate.init import proposal as choosing
from submerge_operate.init.mqtt import period_of
from submerge_operate.init.proposal import Choice, FoundChannel, choose, exclusions


def heard(**values: list[float]) -> Heard:
    """Numbers of device d, one a second."""
    fields = Heard()
    for name, numbers in values.items():
        for second, number in enumerate(numbers):
            fields.add(f"d/{name}", number, float(second))
    return fields


def described(kind: str, *, unit: str = "", minor: bool = False) -> DescribedField:
    return DescribedField("z/d", "x", unit, kind, minor)


def of(
    fields: Heard | None = None,
    descriptions: dict[str, DescribedField] | None = None,
    words: dict[str, set[str]] | None = None,
    *,
    retained: tuple[str, ...] = (),
    states: bool = False,
) -> Choice:
    numbers = {} if fields is None else fields.fields
    return choose(
        numbers, descriptions or {}, dict.fromkeys(retained), words or {}, with_states=states
    )


def why(choice: Choice) -> dict[str, str]:
    return {each.name: each.why for each in choice.left_out}


def names(choice: Choice) -> list[str]:
    return [each.name for each in choice.found]


UP = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


def test_what_is_no_measurement_is_left_out_by_its_name() -> None:
    """Whatever its values do."""
    jumps = [1.0, 5.0, 2.0, 9.0]
    choice = of(heard(temperature=jumps, linkquality=jumps, last_seen=jumps, UptimeSec=jumps))

    assert ["d/temperature"] == names(choice)
    assert {
        "d/UptimeSec": "clocks, not measurements",
        "d/last_seen": "clocks, not measurements",
        "d/linkquality": "quality of the radio link",
    } == why(choice)


def test_what_no_name_explains_is_judged_by_its_values() -> None:
    """A field that says what it measures is taken although it has not changed yet."""
    choice = of(heard(p1=[3.0], p2=[3.0, 3.0], p3=UP, p4=[1.0, 2.0, 1.0], humidity=[50.0, 50.0]))

    assert ["d/humidity", "d/p4"] == names(choice)
    assert {
        "d/p1": choosing.ONCE,
        "d/p2": choosing.CONSTANT,
        "d/p3": choosing.GROWS,
    } == why(choice)
    assert {"d/humidity": choosing.CONSTANT} == why(of(heard(humidity=[50.0] * choosing.ENOUGH)))


def test_a_description_tells_of_what_has_not_spoken() -> None:
    """It joins once it speaks: a channel that never comes would keep all others waiting."""
    choice = of(
        None,
        {
            "d/co2": described("number", unit="ppm"),
            "d/offset": described("number", minor=True),
            "d/used": described("number", unit="kWh"),
            "d/state": described("state"),
            "d/unclear": described(""),
        },
        retained=("d/kept",),
    )

    assert () == choice.found
    assert {
        "d/co2": choosing.NOT_HEARD,
        "d/kept": choosing.SAID_BEFORE,
        "d/offset": choosing.MINOR,
        "d/used": choosing.GROWS,
        "d/state": choosing.STATE,
    } == why(choice)


def test_states_are_taken_if_they_are_asked_for() -> None:
    """Both words of a pair get a number; other texts do not."""
    words = {
        "d/door": {"open"},
        "d/state": {"ON", "OFF"},
        "d/note": {"hello"},
        "d/odd": {"on", "x"},
    }
    without, choice = of(words=words), of(words=words, states=True)

    assert [] == names(without)
    assert choosing.STATE == why(without)["d/door"]
    assert ["d/door", "d/state"] == names(choice)
    assert {"open": 1, "closed": 0, "ON": 1, "OFF": 0} == choice.states
    assert {"d/note": choosing.TEXT, "d/odd": choosing.STATE} == why(choice)


def test_there_are_no_more_channels_than_the_limit(monkeypatch) -> None:
    """The rest is listed."""
    monkeypatch.setattr(choosing, "MOST_CHANNELS", 2)
    choice = of(heard(**{f"v{i}": [1.0, 2.0, 1.0] for i in range(4)}))

    assert ["d/v0", "d/v1"] == names(choice)
    assert {"d/v2": choosing.MANY, "d/v3": choosing.MANY} == why(choice)


lasts = st.sampled_from(["temperature", "energy", "myenergy", "id", "grid", "rssi", "x", "battery"])


@given(st.dictionaries(lasts, st.lists(st.floats(-9, 9), min_size=1, max_size=9), min_size=1))
def test_no_channel_is_excluded(values) -> None:
    """What the sensor is to pass over never covers a channel; each field is in one list."""
    fields = heard(**values)
    choice = of(fields)
    patterns = NamePatterns(("*",), exclusions(choice))

    assert all(patterns.take(name) for name in names(choice))
    assert set(fields.fields) == {*names(choice), *why(choice)}


def test_the_period_follows_from_what_speaks_often() -> None:
    """What has spoken once is slow, however fast the few are that spoke twice."""
    fast = FoundChannel("d/a", every_s=0.5)

    assert 1.0 == period_of([fast, fast, FoundChannel("d/b")])
    assert 10.0 == period_of([fast, FoundChannel("d/b"), FoundChannel("d/c", every_s=90.0)])
    assert 5.0 == period_of([FoundChannel("d/a", every_s=6.0)])


def test_what_is_excluded_shuts_out_no_other_word() -> None:
    """Watts and heat may come later: only whole last parts of names are shut out."""
    clocks = heard(ts=[1.0, 2.0], t=[5.0, 6.0], uptime=UP, x=[1.0, 2.0, 1.0])
    patterns = NamePatterns(("*",), exclusions(of(clocks)))
    later = ["d/watts", "d/heat", "plug/ENERGY.Watts", "d/counts", "e/mounts.t2", "d/ts.power"]

    assert later == [name for name in later if patterns.take(name)]
    assert not any(map(patterns.take, ("d/ts", "e/ts", "e/status.ts", "e/switch:0.uptime")))


def test_a_total_of_one_device_is_excluded_by_its_whole_name() -> None:
    """Its last part, `value`, may be a temperature elsewhere; and it may look like a pattern."""
    names = ("meter/value", "meter[1]/value")
    fields = Heard()
    for second, number in enumerate(UP):
        for name in names:
            fields.add(name, number, float(second), unit="kWh")
        fields.add("x/y", number % 2, float(second))
    patterns = NamePatterns(("*",), exclusions(of(fields)))

    assert patterns.take("stove/value")
    assert not any(map(patterns.take, names))


def test_a_unix_time_is_a_clock_whatever_it_is_called() -> None:
    """In seconds or milliseconds; a frequency of that size has a unit."""
    now = [1764329820.0, 1764329880.0, 1764329880.0]
    fields = heard(a=now, b=[1000 * each for each in now], c=[4e8, 5e8, 4e8])
    for second, number in enumerate(now):
        fields.add("d/hertz", number, float(second), unit="Hz")
    choice = of(fields)

    assert ["d/c", "d/hertz"] == names(choice)
    assert {"clocks, not measurements"} == set(why(choice).values())
